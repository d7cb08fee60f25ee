"""The graph that suits the data: between the rows themselves, or from rows to landmarks."""

from __future__ import annotations

from typing import Any

from mercer._run.records import Record
from mercer.factors.base import Approximation, as_sample
from mercer.factors.given_affinity import AffinityGraph
from mercer.factors.landmarks import Landmarks, ManyLandmarks
from mercer.factors.neighbors import Neighbors
from mercer.kernels.base import Kernel
from mercer.rows.distinct import sample_size

# A graph between rows gives the better labels (mean ARI on 77 public sets: .83 against .80; mnist,
# 70,000 × 784: NMI .82 against .73), but its eigenvectors take longer. In the plane a thousand
# landmarks are enough for shapes (rings, spirals and moons of 30,000 and 100,000 rows: ARI ≥ .99).
MOST_ROWS = 100_000  # beyond, a sample of the rows is fitted, which landmarks stand for best
MOST_FLAT_ROWS = 20_000  # of up to FLAT columns
FLAT = 3
# More clusters are merged from landmarks [bonald2018], not cut by as many eigenvectors: on one
# set of 200 directions of zipf sizes (60,000 × 256, 6,000 landmarks for both) NMI .73 for K = 200,
# by eigenvectors .70; the number itself was not tuned.
MANY_CLUSTERS = 128
ROWS_PER_CLUSTER = 20  # at least, where clusters are merged
SAMPLED_PER_CLUSTER = 200  # rows, if memory allows


class AutoGraph(Approximation):
    """`Neighbors` for up to 100,000 rows (20,000 of up to 3 columns), else `Landmarks`.

    More than 128 clusters are merged from the landmarks of a `Landmarks` graph, ten per cluster.

    A rank is a number of landmarks, so that with one `Landmarks` is used for any number of rows.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Number of landmarks; "auto" leaves the choice of the graph open.
    """

    default_rank = "auto"
    scales_itself = True
    takes_cosine = False
    is_sparse = True
    has_dense_form = False
    labels_training = True

    def __init__(self, rank: int | str = "auto") -> None:
        self.rank = rank

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (AffinityGraph,)  # where X is the graph; others are records of their own names

    def check(self, kernel: Kernel | None) -> None:
        Landmarks(self.rank).check(kernel)

    def sample_rows(self, n_clusters: int) -> int:
        """So many rows of the sample are wanted for so many clusters."""
        return SAMPLED_PER_CLUSTER * n_clusters if n_clusters > MANY_CLUSTERS else 0

    def for_rows(self, n_rows: int, n_features: int, *, n_clusters: int = 1) -> Approximation:
        is_many = n_clusters > MANY_CLUSTERS and n_rows >= ROWS_PER_CLUSTER * n_clusters
        if self.rank == "auto" and is_many:
            wanted = self.sample_rows(n_clusters)
            return ManyLandmarks.for_clusters(sample_size(n_rows, n_features, wanted), n_clusters)
        most = MOST_ROWS if n_features > FLAT else MOST_FLAT_ROWS
        if self.rank != "auto" or n_rows > most:
            return Landmarks(self.rank)
        return Neighbors()

    def for_given_matrix(self, *, by_name: bool) -> Approximation:
        return Landmarks(self.rank).for_given_matrix(by_name=by_name)

    def for_ensemble(self) -> Approximation:
        return self

    def fit(self, kernel: Any, X: Any, **how: Any) -> Any:
        """The graph of these rows, all of which are given."""
        sample = as_sample(kernel, X)
        return self.for_rows(len(sample), sample.rows.shape[1]).fit(kernel, sample, **how)

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        return self.for_rows(n_rows, n_features).memory(n_rows, n_features, itemsize)

    def width(self, n_rows: int) -> int:
        return self.for_rows(n_rows, FLAT + 1).width(n_rows)
