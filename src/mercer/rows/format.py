"""How raw rows become the rows that kernels see: centred and scaled in float64, then cast."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._run.frozen import frozen
from mercer._run.lazy import FEW_VALUES, LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray
from mercer.rows.rows import BlockRows, Rows
from mercer.rows.source import TILE

_jit = LazyModule("mercer.rows._jit")

NO_LENGTH = 1e-3  # of a row of unit length or none, after rounding


@frozen
class RowFormat(Record):
    """Subtract `shift` and divide by 2^exponent in float64, then cast to `dtype`.

    A kernel of differences does not see the shift, but float32 does: values near 10⁹ lose
    everything the kernel looks at unless their mean goes first. `shift` is None where the kernel
    needs the values as they are, and for CSR rows, which must stay sparse.

    The power of two brings the largest values near 1, so that no square leaves the range of a
    float32, and X times a power of two becomes the same rows, bit for bit. Kernels follow by
    `Kernel.in_units`.

    With `unit_length`, each row is divided by its length before its shift is subtracted, so that
    distances between rows are those of their angles: ‖x - y‖² = 2 - 2 cos. A row of zeros stays
    zero. The length is found in units of the row's largest value, so that a row times a power of
    two becomes the same row, bit for bit.
    """

    dtype: np.dtype[Any] = stored("dtype")
    shift: FloatArray | None = stored("(d?,) float, finite, or None", None)
    blocks: tuple[RowFormat, ...] = stored("tuple", ())  # one per column block, if there are any
    names: tuple[str, ...] = stored("tuple of text", ())  # of the blocks
    widths: tuple[int, ...] = stored("tuple of int", ())  # and how many columns each has
    # of the unit that values are measured in, the same for all blocks; beyond, squares overflow
    exponent: int = stored("int, in [-500, 500]", 0)
    unit_length: bool = stored("bool", False)

    def check(self) -> None:
        is_formats = all(isinstance(block, RowFormat) for block in self.blocks)
        expect(is_formats, "a block of RowFormat is not a RowFormat")
        is_shared = all(block.exponent == self.exponent for block in self.blocks)
        expect(is_shared, "the blocks of RowFormat have different exponents")
        is_named = len(self.names) == len(self.widths) == len(self.blocks)
        expect(is_named, "RowFormat does not name each block and its width")
        is_alike = all(block.unit_length == self.unit_length for block in self.blocks)
        expect(is_alike, "only some blocks of RowFormat are scaled to unit length")
        is_free = self.exponent == 0 or not self.unit_length
        expect(is_free, "rows of unit length have no other unit")

    def is_same(self, other: RowFormat) -> bool:
        """Whether rows become the same in the other format (names and widths aside)."""
        if len(self.blocks) != len(other.blocks) or self.dtype != other.dtype:
            return False
        is_shifted = self.shift is not None, other.shift is not None
        is_moved = is_shifted[0] == is_shifted[1] and np.array_equal(self.shift, other.shift)  # type: ignore[arg-type]
        pairs = zip(self.blocks, other.blocks, strict=True)
        is_same = is_moved and self.exponent == other.exponent
        is_same = is_same and self.unit_length == other.unit_length
        return is_same and all(one.is_same(two) for one, two in pairs)

    def check_fits(self, rows: Rows) -> None:
        """Refuse (ValueError) rows that cannot be brought into this format."""
        if isinstance(rows, BlockRows):
            widths = tuple(int(table.shape[1]) for table in rows.parts)
            is_same = self.names == rows.names and self.widths == widths and self.shift is None
            expect(is_same, "the row format has other column blocks, or other widths of them")
            for block, table in zip(self.blocks, rows.parts, strict=True):
                block.check_fits(table)
            return
        expect(not self.blocks, "the row format has column blocks, but the rows have none")
        is_shifted = self.shift is None or (
            not sp.issparse(rows) and len(self.shift) == rows.shape[1]
        )
        expect(is_shifted, "the shift of the row format does not match the columns of the rows")

    @classmethod
    def centred(
        cls, X: Rows, dtype: Any, movable: Any, exponent: int = 0, *, unit_length: bool = False
    ) -> RowFormat:
        """The format that centres the columns marked `movable` on their mean over X."""
        dtype = np.dtype(dtype)
        scaling: Any = {"exponent": exponent, "unit_length": unit_length}
        if isinstance(X, BlockRows):
            pairs = zip(X.parts, movable, strict=True)
            blocks = tuple(cls.centred(part, dtype, mask, **scaling) for part, mask in pairs)
            widths = tuple(int(part.shape[1]) for part in X.parts)
            return cls(dtype, None, blocks, X.names, widths, **scaling)
        if sp.issparse(X) or not np.any(movable):
            return cls(dtype, **scaling)
        mean = _mean_unit_row(X) if unit_length else X.mean(axis=0, dtype=np.float64)
        return cls(dtype, np.where(movable, mean, 0.0), **scaling)

    def apply(self, X: Rows, dtype: Any = None) -> Rows:
        """The rows as kernels see them (`dtype` overrules: labels are decided in float64)."""
        if self.blocks or isinstance(X, BlockRows):
            pairs = zip(self._parts(X), self.blocks, strict=True)
            return BlockRows(self.names, tuple(f.apply(part, dtype) for part, f in pairs))
        dtype = np.dtype(dtype or self.dtype)
        if self._keeps_values:
            return X.astype(dtype, copy=False)
        if sp.issparse(X) and self.shift is not None:
            X = X.toarray()  # rows of a dense fit
        if sp.issparse(X):
            scaled = self._scaled_entries(X).astype(dtype, copy=False)
            return sp.csr_array((scaled, X.indices, X.indptr), shape=X.shape)
        return self._move(np.ascontiguousarray(X), np.empty(X.shape, dtype))

    def undo(self, X: Rows) -> Rows:
        """Rows as they came (of unit length: up to their length), from rows as kernels see them."""
        if isinstance(X, BlockRows):
            pairs = zip(X.parts, self.blocks, strict=True)
            return BlockRows(X.names, tuple(f.undo(part) for part, f in pairs))
        raw = X * 2.0**self.exponent
        if self.shift is None:
            return raw
        raw = raw + self.shift
        if self.unit_length:  # rounding must not give a row of zeros a direction
            raw[np.linalg.norm(raw, axis=-1) < NO_LENGTH] = 0.0
        return raw

    def apply_in_place(self, X: Rows) -> Rows:
        """`apply` tile by tile, into X itself where its type allows (X must be ours)."""
        if isinstance(X, BlockRows):
            pairs = zip(self._parts(X), self.blocks, strict=True)
            return BlockRows(self.names, tuple(f.apply_in_place(part) for part, f in pairs))
        if sp.issparse(X):
            return self.apply(X)
        out = X if X.dtype == self.dtype else np.empty(X.shape, self.dtype)
        if self._keeps_values:
            out[:] = X
            return out
        return self._move(X, out)

    @property
    def _scale(self) -> float:
        return 2.0**-self.exponent

    def _move(self, X: FloatArray, out: FloatArray) -> FloatArray:
        """out = (X - shift) / 2^exponent, or X / ‖X‖ - shift."""
        shift = np.zeros(X.shape[1]) if self.shift is None else self.shift
        if self.unit_length:
            _jit.unit_rows(X, shift, out)
        elif X.size <= FEW_VALUES:  # the same, without compiling it
            with np.errstate(all="ignore"):
                moved = np.subtract(X, shift, dtype=np.float64)
                np.multiply(moved, self._scale, out=out, casting="same_kind")
        else:
            _jit.move_columns(X, shift, self._scale, out)
        return out

    def _scaled_entries(self, X: Any) -> FloatArray:
        """The entries of CSR rows, in float64."""
        if not self.unit_length:
            return np.multiply(X.data, self._scale, dtype=np.float64)
        scaled = np.empty(len(X.data))
        _jit.unit_rows_sparse(X.data, X.indices, X.indptr, X.shape[1], scaled)
        return scaled

    @property
    def _keeps_values(self) -> bool:
        return self.shift is None and self.exponent == 0 and not self.unit_length

    def in_double(self) -> RowFormat:
        """The same in float64."""
        blocks = tuple(block.in_double() for block in self.blocks)
        return replace(self, dtype=np.dtype(np.float64), blocks=blocks)

    def _parts(self, X: Rows) -> list[Any]:
        """The blocks of X in the order of the fit, whatever order they come in."""
        found = dict(zip(X.names, X.parts, strict=True)) if isinstance(X, BlockRows) else {}
        wanted = dict(zip(self.names, self.widths, strict=True))
        given = {name: int(part.shape[1]) for name, part in found.items()}
        if given != wanted:
            raise ValueError(
                f"X has the column blocks {given or 'of one table'} (name: columns), "
                f"but {wanted or 'one table'} was fitted; pass the same blocks"
            )
        return [found[name] for name in self.names]


def unit_rows(X: Rows) -> Rows:
    """The rows scaled to unit length, float64; rows of zeros stay zero."""
    return RowFormat(np.dtype(np.float64), unit_length=True).apply(X)


def _mean_unit_row(X: FloatArray) -> FloatArray:
    """The mean of the rows scaled to unit length, block by block."""
    total = np.zeros(X.shape[1])
    for start in range(0, len(X), TILE):
        total += unit_rows(X[start : start + TILE]).sum(axis=0)
    return total / len(X)
