"""The contingency table of two labellings, and the one place where labels are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._run.types import IdArray


def contingency(y_true: ArrayLike, y_pred: ArrayLike) -> Any:
    """Counts n_ck of the rows of class c in cluster k: scipy CSR, (n_classes, n_clusters)."""
    from scipy.sparse import coo_array

    classes, clusters = paired_codes(y_true, y_pred)
    shape = (int(classes.max()) + 1, int(clusters.max()) + 1)
    ones = np.ones(len(classes), dtype=np.int64)
    return coo_array((ones, (classes, clusters)), shape=shape).tocsr()


def mean_best(table: Any, score: Callable[[Any, Any, Any], Any]) -> float:
    """Σ_c (n_c / n) · max_k score(n_ck, n_c, n_k): the best cluster of each class."""
    n_c, n_k, cells = table.sum(axis=1), table.sum(axis=0), table.tocoo()
    best = np.zeros(len(n_c))
    np.maximum.at(best, cells.row, score(cells.data, n_c[cells.row], n_k[cells.col]))
    return float(best @ n_c / n_c.sum())


def paired_codes(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[IdArray, IdArray]:
    """Both labellings as ids 0, 1, ... in the order of their sorted labels; checked."""
    classes, clusters = _codes(y_true, name="y_true"), _codes(y_pred, name="y_pred")
    if len(classes) != len(clusters):
        raise ValueError(
            f"y_true has {len(classes)} labels and y_pred {len(clusters)}; "
            "pass one label per row in both"
        )
    if len(classes) == 0:
        raise ValueError("y_true and y_pred are empty; pass at least one label")
    return classes, clusters


def check_label_images(humans: Sequence[ArrayLike], shape: tuple[int, ...]) -> list[NDArray[Any]]:
    """Label images of this shape, at least one."""
    maps = [np.asarray(human) for human in humans]
    if not maps:
        raise ValueError("humans is empty; pass at least one label image to compare with")
    for number, labels in enumerate(maps):
        if labels.shape != shape:
            raise ValueError(
                f"humans[{number}] has shape {labels.shape}, the segments {shape}; pass label "
                "images of one size (a single one as [labels])"
            )
    return maps


def _codes(labels: ArrayLike, *, name: str) -> IdArray:
    """One labelling as ids; labels may be numbers, strings or booleans."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; pass a one-dimensional array of labels")
    if array.dtype.kind == "f" and not _are_whole(array):
        raise ValueError(f"{name} holds fractions, NaN or infinity; pass discrete labels")
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise TypeError(
            f"{name} mixes labels that cannot be compared (missing values, perhaps); "
            "pass labels of one type"
        ) from error


def _are_whole(array: NDArray[np.floating[Any]]) -> bool:
    """Whether all are finite whole numbers."""
    return bool(np.isfinite(array).all() and (array == np.rint(array)).all())
