"""Random binning: the Laplacian kernel as the chance that two rows fall into one bin of a grid.

A grid has a random width and offset in each dimension; k(x, y) is the share of grids in which x and
y fall into the same bin [rahimi2007, wu2018]. Z has one entry, 1/√R, per row and grid, so only the
numbers of bins are kept: never the entries, never K.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from mercer._run.lazy import LazyModule
from mercer._run.threads import in_order
from mercer._run.types import FloatArray, IdArray
from mercer.factors.base import DenseSizes, as_sample
from mercer.kernels.base import Kernel
from mercer.kernels.exponential import Laplacian
from mercer.rows.format import RowFormat
from mercer.rows.inputs import as_source
from mercer.rows.rows import BlockRows, Rows, cast, take
from mercer.rows.sample import Sample
from mercer.rows.source import spans

_jit = LazyModule("mercer.factors._binning_jit")

HEAVY = 0.01  # rows with this share of the weight keep bins of their own
REFERENCES = 256  # rows that others without a known bin are compared with
MOST_BINS = 2**31 - 1
LEAST_SLOTS = 1024  # of a hash table; it grows
GROUP, BLOCK = 16, 2**16  # grids that number a block of rows while it is in the cache


class RandomBinning(DenseSizes, BaseEstimator):
    """K ≈ Z Zᵀ for the Laplacian exp(-γ‖x - y‖₁), Z sparse: one bin per row and grid.

    Algorithm 1 of [wu2018]: a grid draws a width from p(w) ∝ w k''(w) for each dimension, which is
    Gamma(2, 1/γ), and an offset from U[0, w]; two rows share its bin with probability k(x, y). Only
    kernels that are products of convex functions of |x - y| have such a p: a Gaussian has not.

    Exact savings: dimensions in which all rows fall into one cell of a grid are skipped, and a bin
    that holds one row alone is a number on the diagonal. Rows beyond the range of the fit count as
    if at its border, so the skipping is exact for them too. A row that shares no bin with another
    has no say in the graph (unless it holds 1 % of the weight); it, and any new row that falls
    into no known bin, is treated as the nearest (by ‖·‖₁) of 256 reference rows.

    Estimators make the graph of at most 100,000 rows and label all others through the tables of
    known bins; `fit` on an array of any length puts every row into it, as the paper does.

    Cost: O(n·rank·d) time with small constants (5-30 ns per row and grid for up to 20 features),
    4·n·rank bytes.

    Parameters
    ----------
    rank : number of grids R; the error falls as 1/√R, in the embedding faster (Theorem 2).
    components : principal directions of Z that `KernelKMeans` and `KernelFeatures` use, which want
        dense features; `SpectralClustering` does not need them.

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

    def __init__(self, rank: int = 256, *, components: int = 32) -> None:
        self.rank = rank
        self.components = components

    def fit(
        self, kernel: Kernel, X: Any, *, rng: np.random.Generator, threads: int = 1
    ) -> BinningFactor:
        """Draw grids for rows like those of X, and number the bins that these fall into."""
        laplacian = self.check(kernel)
        sample = as_sample(kernel, X)
        rows = _table(kernel.select(sample.rows))
        grids = draw_grids(laplacian._number(), *_box(rows), self.rank, rng=rng)
        is_heavy = sample.weights >= HEAVY * sample.weights.sum()
        bins, training = _number_bins(rows, grids, is_heavy, threads)
        if not len(bins.keys):  # no two rows share a bin: each is a part of the graph on its own
            bins, training = _number_bins(rows, grids, np.ones(len(sample), bool), threads)
        tied = np.flatnonzero(training.n_alone < self.rank)[:REFERENCES]
        references = cast(take(sample.rows, tied), np.float64)
        return BinningFactor(
            kernel, sample.format, grids, bins, references, self.components, training
        )

    def enough_rows(self) -> int | None:
        """Only bins of rows that were seen are known."""
        return None

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

    def check(self, kernel: Kernel | None) -> Laplacian:
        """Refuse parameters and kernels that no data could make right."""
        for name in ("rank", "components"):
            value: Any = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= 1):
                raise ValueError(f"{name}={value!r} must be a whole number of 1 or more")
        if not isinstance(kernel, Laplacian):
            raise ValueError(
                f"random binning cannot stand for {type(kernel).__name__}: the chance that two "
                "rows share a bin of a random grid is a product of convex functions of |x - y| "
                "(k'' ≥ 0 in every dimension), as the Laplacian is and a Gaussian is not; use "
                "kernel='laplacian', or another approximation such as 'cholesky' or 'fourier'"
            )
        return kernel


@dataclass(frozen=True, slots=True)
class Grids:
    """Random grids over a box; of each, only the dimensions that it divides."""

    low: FloatArray  # (d,) float64: the box of the rows
    high: FloatArray  # (d,)
    starts: IdArray  # (R + 1,) int64: where each grid's dimensions begin
    dims: IdArray  # int32
    scales: FloatArray  # float64: 1 / width
    biases: FloatArray  # float64: offset / width, in [0, 1)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def grid(self, g: int) -> tuple[Any, ...]:
        """What the loops want to know of one grid."""
        mine = slice(int(self.starts[g]), int(self.starts[g + 1]))
        return self.low, self.high, self.dims[mine], self.scales[mine], self.biases[mine]


@dataclass(frozen=True, slots=True)
class KnownBins:
    """The bins of each grid that count, found by their hashes."""

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

    def find(self, g: int, codes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The numbers of bins within grid g, -1 where not known."""
        ids = np.empty(len(codes), np.int32)
        keys = self.keys[self.starts[g] : self.starts[g + 1]]
        slots = self.slots[self.slot_starts[g] : self.slot_starts[g + 1]]
        _jit.find_codes(codes, keys, slots, ids)
        return ids


@dataclass(frozen=True, slots=True)
class TrainingBins:
    """Z of the rows of the fit."""

    ids: NDArray[np.int32]  # (R, n) bin within each grid; the number of its bins if in none kept
    n_alone: IdArray  # (n,) grids in which the row is in none that is kept: alone in its bin

    def part(self, start: int, stop: int) -> NDArray[np.int32]:
        return self.ids[:, start:stop]


@dataclass(frozen=True, slots=True)
class BinningFactor:
    """Puts any row into the bins of the grids: K ≈ Z Zᵀ, z = 1/√R in each of its bins."""

    kernel: Kernel
    format: RowFormat
    grids: Grids
    bins: KnownBins
    references: Rows  # (≤ 256, n_features) float64 in `format`: stand for rows in no known bin
    components: int
    training_bins: TrainingBins | None = field(default=None, repr=False, compare=False)

    @property
    def rank(self) -> int:
        return len(self.grids)

    @property
    def trace_error(self) -> None:
        return None

    def forget_training(self) -> BinningFactor:
        """The same without the bins of the rows it was fitted on: what a model keeps."""
        return replace(self, training_bins=None)

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
            laplacian: Any = self.kernel
            distances = laplacian.distances(cast(take(rows, unknown), np.float64), self.references)
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
    gamma: float, low: FloatArray, high: FloatArray, n_grids: int, *, rng: np.random.Generator
) -> Grids:
    """Widths from Gamma(2, 1/γ), offsets uniform (Algorithm 1); whole cells begin at the box."""
    starts, kept = [0], []
    for _ in range(n_grids):
        scales = gamma / np.maximum(rng.gamma(2.0, 1.0, len(low)), np.finfo(float).tiny)
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
        raise ValueError("random binning looks at one table; tell Laplacian its column block")
    return rows


def _box(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """The range of each column."""
    if sp.issparse(rows):
        low, high = (rows.min(axis=0), rows.max(axis=0))
        return tuple(np.asarray(end.toarray(), np.float64).ravel() for end in (low, high))  # type: ignore[return-value]
    return rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
