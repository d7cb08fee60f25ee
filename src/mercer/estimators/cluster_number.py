"""The parameter `n_clusters`: a number, "auto", or the least and the most."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from mercer._run.recorder import Recorder
from mercer.selection.cluster_count import Candidate


def is_open(n_clusters: Any) -> bool:
    """Whether the number of clusters is to be found."""
    return not isinstance(n_clusters, Integral)


def least_clusters(n_clusters: Any) -> int:
    """Clusters that there must be at least."""
    return open_bounds(n_clusters)[0] if is_open(n_clusters) else int(n_clusters)


def open_bounds(n_clusters: Any) -> tuple[int, int | None]:
    """The least and the most clusters; None: as many as the rows show."""
    if isinstance(n_clusters, str):
        return 1, None
    is_pair = len(n_clusters) == 2 and all(isinstance(k, Integral) for k in n_clusters)
    if not is_pair or not 1 <= n_clusters[0] <= n_clusters[1]:
        raise ValueError(
            f"n_clusters={n_clusters!r} must be a number, 'auto', or the least and the most "
            "clusters, such as (2, 40)"
        )
    return int(n_clusters[0]), int(n_clusters[1])


def tell_choice(found: list[Candidate], record: Recorder, *, is_clear: bool = False) -> None:
    """How the first of these was chosen, and a warning where that is not clear."""
    best = found[0]
    words = ", ".join(f"{c.n_clusters} ({c.probability:.2f})" for c in found[:4])
    record.note(
        f"n_clusters={best.n_clusters} was chosen on a sample of the rows; "
        f"the most probable numbers: {words}"
    )
    if not (best.is_clear or is_clear):
        record.warn(
            f"the number of clusters is not clear: the most probable ones are {words}; "
            "choose n_clusters yourself"
        )
