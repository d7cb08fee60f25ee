"""Random binning: the Laplacian kernel as the chance that two rows fall into one bin of a grid.

A grid has a random width and offset in each dimension; k(x, y) is the share of grids in which x and
y fall into the same bin [rahimi2007, wu2018]. Z has one entry, 1/√R, per row and grid, so only the
numbers of bins are kept: never the entries, never K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Allowance, Record, expect, stored, unstored
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import (
    Approximation,
    ConeLabeller,
    Factor,
    SpectralMap,
    as_sample,
    check_whole,
)
from mercer.factors.dense import FeatureFactor
from mercer.kernels.base import Kernel
from mercer.kernels.domain import check_kernel
from mercer.linalg.eigen import Solver, leading_eigenpairs
from mercer.linalg.eigenpairs import Eigenpairs
from mercer.linalg.lloyd import nearest_center
from mercer.linalg.numbering import content_order
from mercer.linalg.products import row_products, unit_rows
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, cast, take
from mercer.rows.sample import Sample
from mercer.rows.source import spans

MOST_CELLS = 4096  # of joined grids: their sums fit into the first cache
ROWS_PER_CELL = 4  # with fewer, going over the cells costs more than is won
BUNDLE_GROUPS = 8  # of bundles; their sums are added in order, so threads do not change the bits
AT_ONCE = 4  # bundles that one loop goes through

_jit = LazyModule("mercer.factors._binning_jit")

TOL = 1e-4  # of the singular vectors of the scaled Z, as in the paper
ROUGH_TOL = 1e-2  # of principal directions, of which the last matter little
LEAST_VALUE = 1e-10  # eigenvalues below are rounding
HEAVY = 0.01  # rows with this share of the weight keep bins of their own
REFERENCES = 256  # rows that others without a known bin are compared with
MOST_BINS = 2**31 - 1
# Of model files, whose tables of bins are made anew:
MOST_GRIDS = 2**16
MOST_RUN = 512  # slots: half of them are free, so honest hashes make runs of a hundred at most
KEY_BYTES = 56  # for each key of a grid, while its hashes are checked
LEAST_SLOTS = 1024  # of a hash table; it grows
GROUP, BLOCK = 16, 2**16  # grids that number a block of rows while it is in the cache


class RandomBinning(Approximation):
    """K ≈ Z Zᵀ for the Laplacian exp(-γ‖x - y‖₁), Z sparse: one bin per row and grid.

    Algorithm 1 of [wu2018]: a grid draws a width from p(w) ∝ w k''(w) for each dimension, which is
    Gamma(2, 1/γ), and an offset from U[0, w]; two rows share its bin with probability k(x, y). Only
    kernels that are products of convex functions of |x - y| have such a p; a Gaussian is not one.

    Exact savings: dimensions in which all rows fall into one cell of a grid are skipped, and a bin
    that holds one row alone is a number on the diagonal. Rows beyond the range of the fit count as
    if at its border, so the skipping is exact for them too. A row that shares no bin with another
    is ignored by the graph (unless it holds 1 % of the weight); it, and any new row that falls
    into no known bin, is treated as the nearest (by ‖·‖₁) of 256 reference rows.

    Estimators make the graph of at most 100,000 rows and label all others through the tables of
    known bins; `fit` on an array of any length puts every row into it, as the paper does.

    Cost: O(n·rank·d) time with small constants (5-30 ns per row and grid for up to 20 features),
    4·n·rank bytes.

    Parameters
    ----------
    rank : int, default=256
        Number of grids R; the error falls as 1/√R, in the embedding faster (Theorem 2).
    components : int, default=32
        Principal directions of Z that `KernelKMeans`, `KernelFeatures` and `KernelPCA` use, which
        need dense features; `SpectralClustering` does not.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Laplacian
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> factor = RandomBinning(rank=4000).fit(Laplacian(0.5), X, rng=np.random.default_rng(0))
    >>> Z = factor.rows(X)
    >>> bool(np.abs((Z @ Z.T).toarray() - Laplacian(0.5)(X)).max() < 0.1)
    True
    """

    default_kernel = "laplacian"
    takes_cosine = False
    is_sparse = True
    labels_training = True

    def __init__(self, rank: int = 256, *, components: int = 32) -> None:
        self.rank = rank
        self.components = components

    @classmethod
    def records(cls) -> tuple[type[Record], ...]:
        return (BinningFactor, BinComponents)

    def fit(
        self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1
    ) -> BinningFactor:
        """Draw grids for rows like those of X, and number the bins that these fall into."""
        self.check(kernel)
        sample = as_sample(kernel, X)
        rows = _table(kernel.select(sample.rows))
        grids = draw_grids(kernel, *_box(rows), self.rank, rng=rng)
        is_heavy = sample.weights >= HEAVY * sample.weights.sum()
        bins, training = _number_bins(rows, grids, is_heavy, threads)
        if not len(bins.keys):  # no two rows share a bin: each is a part of the graph on its own
            bins, training = _number_bins(rows, grids, np.ones(len(sample), bool), threads)
        connected = np.flatnonzero(training.n_alone < self.rank)[:REFERENCES]
        references = cast(take(sample.rows, connected), np.float64)
        return BinningFactor(
            kernel, sample.format, grids, bins, references, self.components, training
        )

    def memory(self, n_rows: int, n_features: int, itemsize: int) -> int:
        bins = n_rows * self.rank * (4 + 8)
        return bins + n_rows * (n_features * itemsize + 32) + 20 * self.rank * n_features

    def width(self, n_rows: int) -> int:
        return min(int(self.components), n_rows)

    def dense_bytes(self, n_rows: int, itemsize: int) -> int:
        return n_rows * (8 * self.width(n_rows) + 4 * self.rank)

    def dense_memory(self, n_rows: int, itemsize: int) -> int:
        return self.eigen_memory(n_rows, self.width(n_rows), itemsize)

    def eigen_memory(self, n_rows: int, n_vectors: int, itemsize: int) -> int:
        """Bin numbers and their bundles, Lanczos vectors, those that are found and their sums."""
        basis = max(2 * n_vectors + 20, 3 * n_vectors) + 1
        return n_rows * (6 * self.rank + 8 * (basis + 2 * n_vectors + 6))

    def check(self, kernel: Any) -> None:
        check_whole("rank", self.rank)
        check_whole("components", self.components)
        if not kernel.has_bins:
            raise ValueError(
                f"random binning cannot represent {type(kernel).__name__}: the probability that "
                "two rows share a bin of a random grid is a product of convex functions of |x - y| "
                "(k'' ≥ 0 in every dimension), as the Laplacian is and a Gaussian is not; use "
                "kernel='laplacian', or another approximation such as 'cholesky' or 'fourier'"
            )


@frozen
class Grids(Record):
    """Random grids over a box; of each, only the dimensions that it divides."""

    low: FloatArray = stored("(d,) float64, finite")  # the box of the rows
    high: FloatArray = stored("(d,) float64, finite")
    starts: IdArray = stored("(R+1,) int64, sorted")  # where each grid's dimensions begin
    dims: IdArray = stored("(e?,) int32, in [0, d)")
    scales: FloatArray = stored("(e?,) float64, finite, > 0")  # 1 / width
    biases: FloatArray = stored("(e?,) float64, in [0, 1)")  # offset / width

    def sizes(self) -> dict[str, int]:
        """R: grids; c: columns of the box."""
        return {"R": len(self), "c": len(self.low)}

    def check(self) -> None:
        expect((self.low <= self.high).all(), "the box of the grids is empty")
        _check_starts(self.starts, len(self.dims))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def grid(self, g: int) -> tuple[Any, ...]:
        """What the loops want to know of one grid."""
        mine = slice(int(self.starts[g]), int(self.starts[g + 1]))
        return self.low, self.high, self.dims[mine], self.scales[mine], self.biases[mine]


@frozen
class BinList(Record):
    """Known bins as a file holds them.

    Loops without bounds checks follow the slots of known bins, so those of a file are not trusted
    but made anew from the hashes. What is found is the same.
    """

    keys: IdArray = stored("(D,) int64")  # the bits of their hashes
    starts: IdArray = stored("(R+1,) int64, sorted")

    def check(self) -> None:
        expect(len(self.starts) <= MOST_GRIDS, f"there are {MOST_GRIDS:,} grids or more")
        expect(len(self.keys) <= MOST_BINS, f"there are {len(self.keys):,} known bins")
        _check_starts(self.starts, len(self.keys))

    def rebuild(self, allowance: Allowance) -> KnownBins:
        n_bins = np.diff(self.starts)
        allowance.hold(16 * len(self.keys))  # slots
        allowance.borrow(KEY_BYTES * max(int(n_bins.max()), 1))
        for start, stop in pairwise(self.starts.tolist()):
            is_again = np.diff(np.sort(self.keys[start:stop])) == 0
            expect(not is_again.any(), "a bin is listed twice")
        keys = self.keys.view(np.uint64)
        for g in np.flatnonzero(n_bins > MOST_RUN):
            run = longest_run(keys[self.starts[g] : self.starts[g + 1]])
            expect(run <= MOST_RUN, f"the hashes of {run:,} bins collide")
        return KnownBins.of(keys, self.starts)


def longest_run(keys: NDArray[np.uint64]) -> int:
    """The longest run of slots without a free one, in a circle, if these keys are filled in."""
    size = n_slots(len(keys))
    places = np.sort((keys & np.uint64(size - 1)).astype(np.int64))
    numbers = np.arange(len(keys))
    first = int(np.argmax(places - numbers))  # no run leads from before into this one's slot
    places = np.concatenate([places[first:], places[:first] + size])
    taken = np.maximum.accumulate(places - numbers) + numbers
    ends = np.flatnonzero(np.diff(taken, append=taken[-1] + 2) > 1)
    return int(np.diff(ends, prepend=-1).max())


def _check_starts(starts: IdArray, n_items: int) -> None:
    is_whole = starts[0] == 0 and starts[-1] == n_items
    expect(is_whole, f"starts does not divide {n_items:,} items among the grids")


@frozen
class KnownBins(Record):
    """The bins of each grid that count, found by their hashes."""

    stored_as = BinList

    keys: NDArray[np.uint64]  # (D,) hash of each bin, grid after grid
    starts: IdArray  # (R + 1,) int64: where the bins of each grid begin
    slots: NDArray[np.int32]  # open addressing, a power of two of slots per grid: number, or -1
    slot_starts: IdArray  # (R + 1,) int64

    @classmethod
    def of(cls, keys: NDArray[np.uint64], starts: IdArray) -> KnownBins:
        sizes = [n_slots(int(n)) for n in np.diff(starts)]
        slot_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        slots = np.full(slot_starts[-1], -1, np.int32)
        for g in range(len(sizes)):
            mine = keys[starts[g] : starts[g + 1]]
            _jit.fill_slots(mine, 0, slots[slot_starts[g] : slot_starts[g + 1]])
        return cls(keys, starts, slots, slot_starts)

    def __len__(self) -> int:
        return len(self.keys)

    def sizes(self) -> dict[str, int]:
        """D: known bins; R: grids."""
        return {"D": len(self), "R": len(self.starts) - 1}

    def stored_form(self) -> BinList:
        if len(self.starts) > MOST_GRIDS:
            raise ValueError(f"a model file holds fewer than {MOST_GRIDS:,} grids; lower rank")
        return BinList(self.keys.view(np.int64), self.starts)

    def find(self, g: int, codes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The numbers of bins within grid g, -1 where not known."""
        ids = np.empty(len(codes), np.int32)
        keys = self.keys[self.starts[g] : self.starts[g + 1]]
        slots = self.slots[self.slot_starts[g] : self.slot_starts[g + 1]]
        _jit.find_codes(codes, keys, slots, ids)
        return ids


@frozen
class TrainingBins:
    """Z of the rows of the fit."""

    ids: NDArray[np.int32]  # (R, n) bin within each grid; the number of its bins if in none kept
    n_alone: IdArray  # (n,) grids in which the row is in none that is kept: alone in its bin

    def part(self, start: int, stop: int) -> NDArray[np.int32]:
        return self.ids[:, start:stop]


@frozen
class BinningFactor(Factor):
    """Puts any row into the bins of the grids: K ≈ Z Zᵀ, z = 1/√R in each of its bins."""

    vector_dtype = np.float32

    kernel: Kernel = stored(Kernel)
    format: RowFormat = stored(RowFormat)
    grids: Grids = stored(Grids)
    bins: KnownBins = stored(KnownBins)
    references: Rows = stored("(n, d) rows")  # in `format`: stand for rows in no known bin
    components: int = stored("int, >= 1")
    training_bins: TrainingBins | None = unstored()

    def sizes(self) -> dict[str, int]:
        """r: known bins, each of which has a vector."""
        return {"r": len(self.bins)}

    def check(self) -> None:
        rows, kernel = self.references, self.kernel
        expect(rows.shape[0] <= REFERENCES, f"there are {rows.shape[0]:,} reference rows")
        self.format.check_fits(rows)
        expect(kernel.has_bins, "the kernel is not one of random binning")
        check_kernel(kernel, rows)
        found, wanted = kernel.select(rows).shape[1], len(self.grids.low)
        expect(found == wanted, f"the kernel looks at {found} columns, the grids have {wanted}")

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        """Rows have the columns of the reference rows, and the kernel is the factor's."""
        found = self.references.shape[1]
        expect(found == n_features, f"references have {found} columns, but X has {n_features}")
        own, is_unit = kernel.of_unit_rows(), self.format.unit_length
        is_same = own.has_bins and kernel.scales_rows == is_unit
        is_same = is_same and kernel.gamma == self.raw_kernel().gamma
        expect(is_same, "the kernel is not that of the grids")
        check_kernel(kernel, self.references)

    @property
    def rank(self) -> int:
        return len(self.grids)

    @property
    def trace_error(self) -> None:
        return None

    def dense(self, sample: Sample, *, rng: np.random.Generator, threads: int = 1) -> Any:
        """The leading principal directions of the bins."""
        return bin_components(self, sample, rng=rng, threads=threads)

    def spectral_map(
        self,
        sample: Sample,
        n_vectors: int,
        *,
        solver: Solver,
        rng: np.random.Generator,
        threads: int = 1,
    ) -> SpectralMap:
        """Algorithm 2 of [wu2018]: D^-½ Z Zᵀ D^-½ u = λu by products, then Zᵀ D^-½ u / λ for bins.

        Rows without edges are ignored. A row's coordinates are the sums over its bins, and these
        are what is clustered, so a label is the same function of a row in the fit and after it.
        """
        graph, w = BinGraph(self, threads), sample.weights
        alone, is_connected = graph.diagonal(), graph.is_connected()
        degrees = graph.product(w) + alone * w  # eq. 6: d = Z(Zᵀ1)
        scale = np.sqrt(np.where(is_connected, w / np.where(is_connected, degrees, 1.0), 0.0))
        m = min(n_vectors, int(is_connected.sum()))
        known = part_vectors(graph, np.where(is_connected, w * degrees, 0.0), m)
        A = graph.operator(scale, alone)
        pairs = leading_eigenpairs(
            A, m, solver=solver, tol=TOL, known=known, complete=True, rng=rng
        )
        kept = pairs.values > LEAST_VALUE
        U, values = pairs.vectors[:, kept], pairs.values[kept]
        vectors = graph.bin_vectors(scale[:, None] * U / values)
        trimmed = Eigenpairs(values, U, pairs.residuals[kept], pairs.solver)
        points = self.sums_of_training(sample, vectors, threads)
        return SpectralMap.of_pairs(vectors, points, w, trimmed)

    def labeller(self, vectors: FloatArray, directions: FloatArray) -> BinningLabeller:
        return BinningLabeller(self, vectors, directions)

    def mass(self, sample: Sample) -> FloatArray | None:
        """The weight in each bin, in units in which the mean density is 1."""
        if self.training_bins is None:
            return None
        counts = BinGraph(self).bin_vectors(sample.weights[:, None])
        found = self._sums(enumerate(self.training_bins.part(0, len(sample))), counts, len(sample))
        mean = float(np.average(found[0][:, 0], weights=sample.weights))
        return counts[:, 0].astype(np.float64) / (mean or 1.0)

    def densities(self, mass: FloatArray | None) -> Callable[[Rows], FloatArray]:
        """Raw rows → the weight in their bins; 0 for a row in no known bin."""
        table = np.zeros((len(self.bins), 1), np.float32)
        table[:, 0] = 0.0 if mass is None else mass

        def weigh(rows: Rows) -> FloatArray:
            X = self.format.apply(rows)
            return self._sums(self._ids(X), table, rows.shape[0])[0][:, 0]

        return weigh

    def sums(self, rows: Rows, table: FloatArray) -> FloatArray:
        """Σ over grids of the table's entry for the row's bin; rows are in `format`.

        The table is (D, m). Sums are made in float64 in the order of the grids: a row's bits are
        its own. A row in no known bin has the sums of the nearest reference row.
        """
        return self._borrowed(rows, table, *self._sums(self._ids(rows), table, rows.shape[0]))

    def sums_of_training(self, sample: Sample, table: FloatArray, threads: int = 1) -> FloatArray:
        """The same, bit by bit, for the rows of the fit, whose bins are at hand."""
        training = self.training_bins
        assert training is not None
        n = training.ids.shape[1]
        out, hits = np.empty((n, table.shape[1])), np.empty(n, np.int32)

        def fill(span: tuple[int, int]) -> None:
            tile = slice(*span)
            out[tile], hits[tile] = self._sums(
                enumerate(training.part(*span)), table, span[1] - span[0]
            )

        for _ in in_order(fill, spans(n), threads):
            pass
        return self._borrowed(sample.rows, table, out, hits)

    def rows(self, X: Any) -> sp.csr_array:
        """Z for any rows, seen or new: CSR (n, D), 1/√R in each known bin."""
        source = as_source(X)
        blocks = [self._entries(source.read(*span)) for span in spans(source.n_rows)]
        return sp.csr_array(sp.vstack(blocks))

    def _ids(self, rows: Rows) -> Iterator[tuple[int, NDArray[np.int32]]]:
        """(g, bins of the rows in grid g), -1 where not known."""
        codes = _Codes(_table(self.kernel.select(rows)), self.grids)
        for g in range(len(self.grids)):
            yield g, self.bins.find(g, codes.of_grid(g))

    def _sums(self, ids: Any, table: FloatArray, n: int) -> tuple[FloatArray, NDArray[np.int32]]:
        """Sums, and how many grids know the row."""
        out, hits, starts = np.zeros((n, table.shape[1])), np.zeros(n, np.int32), self.bins.starts
        for g, of_grid in ids:
            _jit.add_bins(of_grid, starts[g], starts[g + 1] - starts[g], table, out, hits)
        return out, hits

    def _borrowed(
        self, rows: Rows, table: FloatArray, out: FloatArray, hits: NDArray[np.int32]
    ) -> FloatArray:
        """Rows in no known bin take what the nearest reference row has."""
        unknown = np.flatnonzero(hits == 0)
        if len(unknown):
            known = self._sums(self._ids(self.references), table, self.references.shape[0])[0]
            distances = self.kernel.distances(
                cast(take(rows, unknown), np.float64), self.references
            )
            out[unknown] = known[distances.argmin(axis=1)]
        return out

    def _entries(self, raw: Rows) -> sp.csr_array:
        rows = self.format.apply(raw)
        ids = np.array([of_grid for _, of_grid in self._ids(rows)]).T
        row, grid = np.nonzero(ids >= 0)
        columns = self.bins.starts[grid] + ids[row, grid]
        values = np.full(len(row), 1.0 / np.sqrt(self.rank))
        return sp.csr_array((values, (row, columns)), shape=(rows.shape[0], len(self.bins)))


class _Codes:
    """Hashes of the bins of rows, grid by grid."""

    def __init__(self, rows: Rows, grids: Grids) -> None:
        self.rows, self.grids, self.n = rows, grids, rows.shape[0]
        self.is_sparse = sp.issparse(rows)
        self.columns = None if self.is_sparse else np.ascontiguousarray(rows.T)
        self.cells = np.empty(self.n)
        self.place = np.full(rows.shape[1], -1, np.int64)

    def of_grid(self, g: int) -> NDArray[np.uint64]:
        codes = np.empty(self.n, np.uint64)
        grid = self.grids.grid(g)
        if self.is_sparse:
            X = self.rows
            _jit.sparse_codes(X.data, X.indices, X.indptr, *grid, self.place, codes)
        else:
            _jit.dense_codes(self.columns, 0, self.n, *grid, self.cells, codes)
        return codes


def draw_grids(
    kernel: Kernel, low: FloatArray, high: FloatArray, n_grids: int, *, rng: np.random.Generator
) -> Grids:
    """Widths from Gamma(2, 1/γ), offsets uniform (Algorithm 1); whole cells begin at the box."""
    starts, kept = [0], []
    for _ in range(n_grids):
        scales = kernel.bin_scales(len(low), rng=rng)
        biases = rng.random(len(low))
        dims = np.flatnonzero(np.floor((high - low) * scales + biases) >= 1)
        kept.append((dims.astype(np.int32), scales[dims], biases[dims]))
        starts.append(starts[-1] + len(dims))
    dims, scales, biases = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return Grids(low, high, np.array(starts, np.int64), dims, scales, biases)


def _number_bins(
    rows: Rows, grids: Grids, is_heavy: NDArray[np.bool_], threads: int
) -> tuple[KnownBins, TrainingBins]:
    """Bins of two or more rows, or of a heavy one, numbered by first appearance."""
    n = rows.shape[0]
    ids = np.empty((len(grids), n), np.int32)
    columns = None if sp.issparse(rows) else np.ascontiguousarray(rows.T)
    heavy = np.flatnonzero(is_heavy)

    def numbered(group: range) -> list[NDArray[np.uint64]]:
        """Codes of all bins of some grids, by number."""
        keys = [np.empty(n, np.uint64) for _ in group]
        slots = [np.full(LEAST_SLOTS, -1, np.int32) for _ in group]
        counts = [0] * len(group)
        if columns is None:
            codes = _Codes(rows, grids)
            for j, g in enumerate(group):
                counts[j] = _jit.bins_of_codes(codes.of_grid(g), slots[j], ids[g], keys[j])
            return [keys[j][: counts[j]] for j in range(len(group))]
        for span in spans(n, BLOCK):  # read from memory once for the whole group
            for j, g in enumerate(group):
                counts[j], slots[j] = _jit.bins_of_grid(
                    columns, *span, *grids.grid(g), counts[j], slots[j], ids[g], keys[j]
                )
        return [keys[j][: counts[j]] for j in range(len(group))]

    def shared(group: range) -> tuple[list[NDArray[np.uint64]], NDArray[np.int32]]:
        """Of bins that are kept only, ids numbered anew; and in how many a row is alone."""
        kept, alone = [], np.zeros(n, np.int32)
        for g, codes in zip(group, numbered(group), strict=True):
            sizes = np.zeros(len(codes), np.int64)
            _jit.keep_shared(ids[g], heavy, sizes, alone)
            kept.append(codes[sizes > 0])
        return kept, alone

    groups = [range(g, min(g + GROUP, len(grids))) for g in range(0, len(grids), GROUP)]
    keys, n_alone = [], np.zeros(n, np.int64)
    for of_group, alone in in_order(shared, groups, threads):
        keys += of_group
        n_alone += alone
    widths = [len(part) for part in keys]
    if sum(widths) > MOST_BINS:
        raise ValueError(f"the grids have {sum(widths):,} bins, too many; lower rank or gamma")
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return KnownBins.of(np.concatenate(keys), starts), TrainingBins(ids, n_alone)


def n_slots(n_bins: int) -> int:
    """A power of two, at least twice as many."""
    return 1 << max(2 * n_bins - 1, 1).bit_length()


def _table(rows: Rows) -> Rows:
    if isinstance(rows, BlockRows):
        raise ValueError("random binning needs one table; set Laplacian(columns=…) to one block")
    return rows


def _box(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """The range of each column."""
    if sp.issparse(rows):
        low, high = (rows.min(axis=0), rows.max(axis=0))
        return tuple(np.asarray(end.toarray(), np.float64).ravel() for end in (low, high))  # type: ignore[return-value]
    return rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)


@frozen
class Bundles:
    """Grids that are read as one: of each bundle, a cell for every row."""

    ids: Any  # (·, n) uint16 or int32
    rows: IdArray  # (T,) which of the ids are bundle t's
    starts: IdArray  # (T + 1,) where its grids' widths begin
    widths: IdArray  # values of each digit of a cell, the last of them for "in no kept bin"

    def __len__(self) -> int:
        return len(self.rows)

    def most_cells(self) -> int:
        sizes = np.multiply.reduceat(self.widths, self.starts[:-1]) if len(self) else [1]
        return int(np.max(sizes))

    def ends(self) -> IdArray:
        """Where groups of bundles end: whole fours."""
        fours = -(-len(self) // AT_ONCE)
        ends = AT_ONCE * (np.arange(BUNDLE_GROUPS + 1) * fours // BUNDLE_GROUPS)
        return np.minimum(ends, len(self))


def bundled(ids: Any, n_bins: IdArray) -> tuple[Bundles, Bundles]:
    """Grids joined, the coarsest first, while their cells are few; and those left alone."""
    n, widths = ids.shape[1], np.asarray(n_bins, np.int64) + 1
    most = min(MOST_CELLS, n // ROWS_PER_CELL)
    groups: list[list[int]] = []
    cells = most + 1
    for g in np.argsort(widths, kind="stable"):
        cells *= int(widths[g])
        if cells > most:
            groups.append([])
            cells = int(widths[g])
        groups[-1].append(int(g))
    shared = [group for group in groups if len(group) > 1]
    alone = [group for group in groups if len(group) == 1]
    joined = np.zeros((len(shared), n), np.uint16)
    for t, group in enumerate(shared):
        for g in group:
            _jit.join(ids[g], widths[g], joined[t])
    rows = np.array([g for (g,) in alone], np.int64)
    return (
        _bundles(joined, np.arange(len(shared)), shared, widths),
        _bundles(ids, rows, alone, widths),
    )


def _bundles(ids: Any, rows: IdArray, groups: list[list[int]], widths: IdArray) -> Bundles:
    starts = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    digits = np.array([widths[g] for group in groups for g in group], np.int64)
    return Bundles(ids, np.asarray(rows, np.int64), starts, digits)


def neighbor_sums(kinds: tuple[Bundles, ...], v: FloatArray, threads: int = 1) -> FloatArray:
    """Σ over grids of Z_g(Z_gᵀv), Z_g having a one in each row's kept bin."""
    ends = [kind.ends() for kind in kinds]
    most = max(kind.most_cells() for kind in kinds)

    def group(number: int) -> FloatArray:
        tables, rests, parts = np.empty((AT_ONCE, most)), np.empty(2 * most), np.empty(2 * most)
        out = np.zeros_like(v)
        for kind, end in zip(kinds, ends, strict=True):
            first, last = end[number], end[number + 1]
            if first < last:
                grids = kind.ids, kind.rows, kind.starts, kind.widths
                _jit.add_neighbor_sums(*grids, first, last, v, tables, rests, parts, out)
        return out

    total = np.zeros_like(v)
    for part in in_order(group, range(BUNDLE_GROUPS), threads):
        total += part
    return total


def parts_of_rows(ids: Any, n_bins: IdArray, is_connected: Any) -> IdArray:
    """The part of the graph that each row is in: its first row. Rows without edges: their own.

    The coarsest grids connect most, so it is seen early that there is but one part.
    """
    parents = np.arange(ids.shape[1])
    firsts = np.empty(int(np.max(n_bins)), np.int64)
    n_parts = int(np.sum(is_connected))
    for g in np.argsort(n_bins, kind="stable"):
        if n_parts == 1:
            break
        n_parts -= _jit.unite_bins(ids[g], n_bins[g], parents, firsts)
    while not np.array_equal(parents, parents[parents]):
        parents = parents[parents]
    return parents


@frozen
class BinGraph:
    """K ≈ Z Zᵀ on the rows of a fit, as products with vectors."""

    factor: BinningFactor
    threads: int = 1
    bundles: tuple[Bundles, Bundles] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bundles = bundled(self._training().ids, np.diff(self.factor.bins.starts))
        object.__setattr__(self, "bundles", bundles)

    def product(self, V: FloatArray) -> FloatArray:
        """Z Zᵀ V over the kept bins: sums over bins, read by the rows in them."""
        if V.ndim == 2:
            return np.stack([self.product(v) for v in V.T], axis=1)
        v = np.ascontiguousarray(V, np.float64)
        return neighbor_sums(self.bundles, v, self.threads) / self.factor.rank

    def diagonal(self) -> FloatArray:
        """What bins with one row alone add to the diagonal of Z Zᵀ; 0 for rows without edges."""
        n_alone = self._training().n_alone
        return np.where(n_alone < self.factor.rank, n_alone, 0) / self.factor.rank

    def is_connected(self) -> Any:
        """Which rows are in a kept bin at all."""
        return self._training().n_alone < self.factor.rank

    def parts(self) -> Any:
        """The unconnected part of the graph that each row is in, as the number of a row."""
        n_bins = np.diff(self.factor.bins.starts)
        return parts_of_rows(self._training().ids, n_bins, self.is_connected())

    def operator(self, scale: FloatArray, diagonal: FloatArray) -> Any:
        """diag(s) (Z Zᵀ + diag) diag(s) as scipy's linear operator."""
        from scipy.sparse.linalg import LinearOperator

        def apply(V: FloatArray) -> FloatArray:
            s, on_diagonal = (x if V.ndim == 1 else x[:, None] for x in (scale, diagonal))
            scaled = s * V
            return s * (self.product(scaled) + on_diagonal * scaled)

        n = len(scale)
        return LinearOperator((n, n), matvec=apply, matmat=apply, rmatvec=apply, dtype=np.float64)

    def bin_vectors(self, V: FloatArray) -> FloatArray:
        """Zᵀ V (unscaled) over the kept bins: a vector for each, (D, m) float32."""
        ids, starts = self._training().ids, self.factor.bins.starts
        out = np.empty((len(self.factor.bins), V.shape[1]), np.float32)

        def fill(g: int) -> None:
            Y = np.empty((int(starts[g + 1] - starts[g]) + 1, V.shape[1]))
            _jit.sums_of_bins(ids[g], V, Y)
            out[starts[g] : starts[g + 1]] = Y[:-1]

        for _ in in_order(fill, range(len(ids)), self.threads):
            pass
        return out

    def _training(self) -> Any:
        assert self.factor.training_bins is not None
        return self.factor.training_bins


def part_vectors(graph: BinGraph, masses: FloatArray, m: int) -> FloatArray:
    """Eigenvectors of D^-½ W D^-½ that are known: one for each of the ≤ m heaviest parts (rows).

    D^½ 1 on an unconnected part belongs to the eigenvalue 1; masses are the squares, w·d.
    """
    parts = graph.parts()
    weights = np.bincount(parts, masses)
    heaviest = np.argsort(-weights, kind="stable")[: min(m, np.count_nonzero(weights))]
    return np.array([np.sqrt(np.where(parts == c, masses, 0.0) / weights[c]) for c in heaviest])


@frozen
class BinComponents(FeatureFactor):
    """F = Z V, the leading principal directions of the bins: a dense factor K ≈ F Fᵀ."""

    binning: BinningFactor = stored(BinningFactor)
    vectors: FloatArray = stored("(r, q) float32, finite")  # one for each known bin
    trace_error: float = stored("float")  # trace(K - F Fᵀ) / trace(K)
    training_rows: FloatArray | None = unstored()

    def check_model(self, kernel: Kernel, n_features: int) -> None:
        self.binning.check_model(kernel, n_features)

    @property
    def rank(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def kernel(self) -> Kernel:
        return self.binning.kernel

    @property
    def format(self) -> RowFormat:  # type: ignore[override]
        return self.binning.format

    def features(self, dtype: Any) -> Callable[[Rows], FloatArray]:
        """F for rows in `format`, from the bins that rows of the fit's type fall into."""

        def sums(rows: Rows) -> FloatArray:
            F = self.binning.sums(cast(rows, self.format.dtype), self.vectors)
            F /= self.binning.rank
            return F.astype(dtype, copy=False)

        return sums

    def kept_share(self) -> float:
        """A few directions: what they miss is not explained by them."""
        return 1.0 - self.trace_error

    def forget_training(self) -> BinComponents:
        return replace(self, binning=self.binning.forget_training(), training_rows=None)


def bin_components(
    factor: BinningFactor, sample: Sample, *, rng: np.random.Generator, threads: int = 1
) -> BinComponents:
    """Principal directions: Z Zᵀ = U Λ Uᵀ (weighted) gives F = Z (Zᵀ U Λ^-½) ≈ U Λ^½."""
    graph, roots = BinGraph(factor, threads), np.sqrt(sample.weights)
    A = graph.operator(roots, np.zeros(len(sample)))
    pairs = leading_eigenpairs(A, factor.components, tol=ROUGH_TOL, complete=True, rng=rng)
    kept = pairs.values > LEAST_VALUE * pairs.values[0]
    values, U = pairs.values[kept], pairs.vectors[:, kept]
    vectors = graph.bin_vectors(roots[:, None] * U / np.sqrt(values))
    F = factor.sums_of_training(sample, vectors, threads) / factor.rank
    error = max(1.0 - float(values.sum() / sample.weights.sum()), 0.0)
    return BinComponents(factor, vectors, error, F)


@frozen
class BinningLabeller(ConeLabeller):
    """Coordinates are sums of the vectors of a row's bins, which are float32."""

    def labels(self) -> Callable[[Rows], IdArray]:
        """Raw rows → labels."""
        decide = self._labels_of_sums()
        return lambda rows: decide(self._sums(rows))

    def labels_of_training(self, fitted: BinningFactor, sample: Sample) -> IdArray | None:
        """Their bins are at hand."""
        if fitted.training_bins is None:
            return None
        return self._labels_of_sums()(fitted.sums_of_training(sample, self.vectors))

    def coordinates(self) -> Callable[[Rows], FloatArray]:
        """Raw rows → unit coordinates."""
        return lambda rows: unit_rows(self._sums(rows))

    def _sums(self, rows: Rows) -> FloatArray:
        return self.factor.sums(self.factor.format.apply(rows), self.vectors)

    def _labels_of_sums(self) -> Callable[[FloatArray], IdArray]:
        order = content_order(self.directions)
        against = np.ascontiguousarray(-self.directions[order].T)
        return lambda sums: order[nearest_center(row_products(sums, against))[0]]
