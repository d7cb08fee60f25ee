"""What every reader demands of a table: two dimensions, real numbers, indices within bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

ADVICE = {
    1: "reshape(-1, 1) makes one column, reshape(1, -1) one row",
    3: "reshape(len(X), -1) makes each item one row",
}


def demand_numbers(dtype: Any, what: str) -> None:
    """Refuse types other than real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(
            f"{what} holds values of type {dtype}, which is not numeric; real numbers are wanted: "
            "convert dates, text and categories to numbers first"
        )


def demand_table(shape: tuple[Any, ...], what: str, *, least_rows: int = 1) -> None:
    """Refuse shapes other than (rows, columns), and tables without any."""
    if len(shape) != 2:
        advice = ADVICE.get(len(shape), "reshape it to (n_rows, n_features)")
        raise ValueError(
            f"{what} is a {len(shape)}-d array of shape {shape}; a 2-d array (rows, columns) is "
            f"wanted: {advice}"
        )
    for count, of, least in ((shape[0], "rows", least_rows), (shape[1], "columns", 1)):
        if count < least:
            raise ValueError(f"{what} has no {of} (shape {shape}); at least one is wanted")


def refuse_mask(X: Any, what: str) -> None:
    """Refuse a masked array: its mask would be ignored."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            f"{what} is a masked array, whose mask would be ignored; fill it (X.filled(value)) or "
            "drop the masked rows"
        )


def checked_csr(X: Any, what: str) -> sp.csr_array:
    """A CSR whose indices are within bounds (others crash compiled code), sorted and summed."""
    _check_indices(X, what)
    csr = sp.csr_array(X)
    if X.format != "csr":
        _check_indices(csr, what)  # some formats have no indices to check before
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _check_indices(X: Any, what: str) -> None:
    """Refuse positions outside the matrix: compiled code would read and write there."""
    sound = True
    if X.format == "coo":
        sound = all(
            len(places) == len(X.data) and _are_below(places, length)
            for places, length in zip(X.coords, X.shape, strict=True)
        )
    elif X.format in ("csr", "csc", "bsr"):
        rows, columns = X.blocksize if X.format == "bsr" else (1, 1)
        n_major, n_minor = X.shape[0] // rows, X.shape[1] // columns
        if X.format == "csc":
            n_major, n_minor = n_minor, n_major
        pointers, indices = X.indptr, X.indices
        sound = (
            len(pointers) == n_major + 1
            and pointers[0] == 0
            and pointers[-1] <= min(len(indices), len(X.data))
            and bool((np.diff(pointers) >= 0).all())
            and _are_below(indices, n_minor)
        )
    if not sound:
        raise ValueError(
            f"{what} is a corrupt sparse {X.format.upper()}: its indices or indptr point outside "
            f"its shape {X.shape}; build it again"
        )


def _are_below(places: Any, length: int) -> bool:
    return len(places) == 0 or bool(places.min() >= 0 and places.max() < length)
