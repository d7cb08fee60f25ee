"""What a kernel is: the similarity of two rows, as an object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from mercer._run.tally import kernel_values
from mercer._run.types import FloatArray
from mercer.rows.rows import BlockRows, Rows

ColumnChoice: TypeAlias = Any  # None, slice, ints, names, or a block's name or number
RowsAgainst: TypeAlias = Callable[[Rows], FloatArray]

ROUNDING = float(np.finfo(float).eps)
NOTHING = 1e-290  # sums of similarities below are zero: exponentials underflow at 3e-308


class Kernel(BaseEstimator):
    """How similar two rows are: k(x, y) = ⟨φ(x), φ(y)⟩.

    Kernels add, multiply and scale: ``0.5 * Cosine(columns="text") + 0.5 * RBF(columns="image")``.
    Subclasses define `_against` and `diagonal`; the base class does the rest and counts values.
    What else an approximation may need of a kernel (frequencies, bins, a bandwidth) is a verb here,
    beside a property that says whether the kernel has it.
    """

    gamma: Any = None  # bandwidth: a number, the name of a rule, or None for kernels without one
    columns: ColumnChoice = None
    matrix_of_items: Any = None  # that a precomputed kernel is looked up in while fitting

    stationary = False  # depends on x - y only, so that rows may be centred first
    nonnegative = False  # defined for values ≥ 0 only
    has_units = False  # `in_units` is defined
    has_bandwidth = False  # exp(-γ·D(x, y)): `distances` gives D, and γ is one number
    has_spectrum = False  # `frequencies` can be drawn
    has_bins = False  # `bin_scales` can be drawn
    is_precomputed = False  # looks similarities up in a matrix: there are no rows to look at
    is_function = False  # calls the user's function: slow, and model files do not hold it
    is_gaussian = False  # exp(-γ‖x - y‖²): isotropic, differentiable, γ in Euclidean terms
    is_cosine = False  # the cosine of the angle between whole rows
    scales_rows = False  # looks at rows scaled to unit length: see `of_unit_rows`

    @property
    def is_automatic(self) -> bool:
        """Whether one bandwidth is left to the estimator (``gamma="auto"``)."""
        return bool(self.has_bandwidth and isinstance(self.gamma, str) and self.gamma == "auto")

    def against(self, Y: Rows) -> RowsAgainst:
        """A function of X that returns the matrix k(X, Y), with what depends on Y done once."""
        matrix = self._against(Y)

        def counted(X: Rows) -> FloatArray:
            K = matrix(X)
            kernel_values.add(K.size)
            return K

        return counted

    def _against(self, Y: Rows) -> RowsAgainst:
        """What `against` returns, before it counts."""
        raise NotImplementedError

    def diagonal(self, X: Rows) -> FloatArray:
        """k(x, x) for each row."""
        raise NotImplementedError

    def sees(self, X: Rows, K: FloatArray) -> NDArray[np.bool_]:
        """Which rows have a similarity in K, to some other rows, that is not negligible.

        A row is not seen where all of them vanish beside k(x, x); one with k(x, x) = 0 is at the
        origin of feature space, where zeros are right.
        """
        own = np.asarray(self.diagonal(X), np.float64)
        return np.asarray((np.abs(K).max(axis=1) > ROUNDING * own) | (own <= 0))

    def matrix(self, X: Rows, Y: Rows | None = None) -> FloatArray:
        """k(x, y) for each row of X and of Y (of X itself by default)."""
        return self.against(X if Y is None else Y)(X)

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """`matrix` for anything array-like: rows are checked, and centred where that helps."""
        from mercer.rows.format import RowFormat
        from mercer.rows.inputs import as_source

        sources = [as_source(part) for part in ([X] if Y is None else [X, Y])]
        raw = [source.read(0, source.n_rows) for source in sources]
        rows = RowFormat.centred(raw[-1], sources[-1].dtype, self.movable(raw[-1]))
        formatted = [rows.apply(part) for part in raw]
        return self.matrix(formatted[0], formatted[-1])

    def resolve(self, X: Rows, weights: FloatArray, **how: Any) -> Kernel:
        """A copy whose parameters are numbers (``gamma="auto"`` becomes one).

        `how` are keywords for the bandwidth rule: `rng`, and `least_mean`, the mean of k over pairs
        of rows that an automatic bandwidth must reach.
        """
        return clone(self)

    def in_units(self, exponent: int) -> Kernel:
        """The kernel that sees rows divided by 2^exponent as this one sees the rows themselves."""
        if exponent:
            raise NotImplementedError(f"{type(self).__name__} has no units")
        return self

    def of_unit_rows(self) -> Kernel:
        """The kernel that sees rows scaled to unit length as this one sees the rows themselves.

        Where `scales_rows`; other kernels return themselves.
        """
        return self

    def named_columns(self, names: tuple[str, ...] | None) -> Kernel:
        """A copy whose `columns`, where given by feature names, are column numbers."""
        if isinstance(self.columns, list | tuple) and any(isinstance(c, str) for c in self.columns):
            missing = [c for c in self.columns if names is None or c not in names]
            if missing:
                have = "X has no feature names" if names is None else f"X has {names}"
                raise ValueError(f"{type(self).__name__} needs the columns {missing}, but {have}")
            assert names is not None
            return clone(self).set_params(columns=[names.index(c) for c in self.columns])
        return clone(self)

    def select(self, X: Rows) -> Rows:
        """The columns of X that this kernel uses."""
        if isinstance(X, BlockRows):
            return self._select_block(X)
        if self.columns is None:
            return X
        if isinstance(self.columns, str | int):
            raise ValueError(
                f"{type(self).__name__}(columns={self.columns!r}) names a column block, but X is "
                "one table; pass X as a dict or tuple of blocks, or columns as a slice or list"
            )
        index = column_index(self.columns, X.shape[1])
        return sparse_columns(X, index) if sp.issparse(X) else np.ascontiguousarray(X[:, index])

    def movable(self, X: Rows) -> Any:
        """Which columns may be centred without changing the kernel (one mask per block)."""
        if isinstance(X, BlockRows):
            return tuple(self._movable_block(X, number) for number in range(len(X.parts)))
        mask = np.ones(X.shape[1], bool)
        if not self.stationary and not isinstance(self.columns, str | int):
            mask[column_index(self.columns, X.shape[1])] = False
        return mask

    def check_values(self, low: float) -> None:
        """Refuse values this kernel is not defined for."""
        if self.nonnegative and low < 0:
            raise ValueError(
                f"{type(self).__name__} is defined for values ≥ 0 (counts, histograms), but X has "
                f"{low:g}; shift or clip the columns, or use another kernel such as RBF"
            )

    def with_gamma(self, gamma: float) -> Kernel:
        """A copy with this bandwidth."""
        if "gamma" not in self.get_params():
            raise ValueError(
                f"{self!r} has no gamma to search over; use one kernel such as RBF, Laplacian or "
                "Chi2, or search over n_clusters alone"
            )
        copy: Kernel = clone(self).set_params(gamma=float(gamma))
        return copy

    def distances(self, X: Rows, Y: Rows) -> FloatArray:
        """D(x, y), which γ multiplies, where `has_bandwidth`."""
        raise NotImplementedError

    def frequencies(
        self, shape: tuple[int, int], *, rng: np.random.Generator, orthogonal: bool = False
    ) -> FloatArray:
        """(n, d) frequencies ω with E cos ω·(x - y) = k(x, y), where `has_spectrum`.

        `orthogonal` makes every d of them orthogonal, which an isotropic spectrum allows.
        """
        raise NotImplementedError

    def bin_scales(self, n_features: int, *, rng: np.random.Generator) -> FloatArray:
        """1 / widths of a random grid in which x and y share a bin with probability k(x, y)."""
        raise NotImplementedError

    def block_scale(self, variances: Rows) -> FloatArray:
        """g with mean k(x, y) ≈ k(t_i, t_j) g_i g_j over rows x, y of blocks i, j around t_i, t_j.

        `variances` has a row per block and the columns of X; 1 where no correction is known.
        """
        return np.ones(variances.shape[0])

    def for_new_rows(self) -> Kernel:
        """The kernel that compares new rows with training rows, once fitting is over."""
        return self

    def check_structure(self) -> None:
        """Refuse a combination of things that are not kernels (TypeError)."""

    def check_parameters(self) -> None:
        """Refuse parameters that no data could make right, before any data are read."""

    def parts(self) -> list[Kernel]:
        """The simple kernels this one is made of."""
        return [self]

    def _select_block(self, X: BlockRows) -> Rows:
        if not isinstance(self.columns, str | int) or (
            self.columns not in X.names and self.columns not in range(len(X.parts))
        ):
            raise ValueError(
                f"X has the column blocks {X.names}, and {type(self).__name__} has "
                f"columns={self.columns!r}; choose one of them, e.g. columns={X.names[0]!r}"
            )
        selected: Rows = X.block(self.columns)
        return selected

    def _movable_block(self, X: BlockRows, number: int) -> FloatArray:
        mine = self.columns in (number, X.names[number])
        return np.full(X.parts[number].shape[1], not mine or self.stationary)

    def __add__(self, other: Kernel) -> Kernel:
        from mercer.kernels.algebra import Sum

        return Sum([*_terms(self, Sum), *_terms(other, Sum)])

    def __mul__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product([*_terms(self, Product), *_terms(other, Product)])
        return Scaled(float(other), self)

    __rmul__ = __mul__


def column_index(columns: ColumnChoice, n_features: int) -> Any:
    """A slice or column numbers that are there."""
    if columns is None or isinstance(columns, slice):
        return slice(None) if columns is None else columns
    if isinstance(columns, range) and columns and min(columns[0], columns[-1]) >= 0:
        stop = columns.stop if columns.stop >= 0 else None
        if max(columns[0], columns[-1]) < n_features:  # a range may be as long as a row is wide
            return slice(columns.start, stop, columns.step)
    numbers = np.asarray(columns)
    if numbers.dtype == bool and numbers.shape == (n_features,):
        numbers = np.flatnonzero(numbers)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers):
        raise ValueError(
            f"columns={columns!r} is not understood; pass a slice, a list of column numbers or of "
            "feature names, or the name or number of a column block"
        )
    if numbers.min() < -n_features or numbers.max() >= n_features:
        raise ValueError(f"columns={columns!r} is out of range: X has {n_features} columns")
    return numbers.astype(np.intp)


def sparse_columns(X: Any, index: Any) -> sp.csr_array:
    """X[:, index] by the stored entries: scipy's own takes memory for every declared column."""
    csr = sp.csr_array(X)
    n_columns, columns = csr.shape[1], csr.indices.astype(np.int64)
    if isinstance(index, slice):
        chosen: Any = range(n_columns)[index]
        places, rest = np.divmod(columns - chosen.start, chosen.step)
        is_chosen = (rest == 0) & (places >= 0) & (places < len(chosen))
        selected = _entries(csr, places, is_chosen, len(chosen))
        selected.sort_indices()  # a step may lead backwards
        return selected
    chosen = np.unique(index % n_columns)
    places = np.minimum(np.searchsorted(chosen, columns), len(chosen) - 1)
    distinct = _entries(csr, places, chosen[places] == columns, len(chosen))
    return sp.csr_array(distinct[:, np.searchsorted(chosen, index % n_columns)])


def _entries(csr: sp.csr_array, places: Any, is_kept: Any, n_columns: int) -> sp.csr_array:
    """The entries that are kept, in other columns."""
    indptr = np.concatenate([[0], np.cumsum(is_kept)])[csr.indptr]
    shape = (csr.shape[0], n_columns)
    return sp.csr_array((csr.data[is_kept], places[is_kept], indptr), shape=shape)


def _terms(kernel: Kernel, kind: Any) -> list[Kernel]:
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernels combine with kernels, not with {type(kernel).__name__}")
    return list(kernel.kernels) if isinstance(kernel, kind) else [kernel]
