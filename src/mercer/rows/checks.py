"""What estimators demand of X and of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._run.printable import PrintableErrors
from mercer._run.types import FloatArray
from mercer._run.warn import warn
from mercer.rows.inputs import as_source
from mercer.rows.source import Source


def checked_source(X: Any, least_rows: int = 1) -> Source:
    """A source with at least one column and so many rows."""
    source = as_source(X)
    for count, what in ((source.n_rows, "sample(s)"), (source.n_features, "feature(s)")):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={(source.n_rows, source.n_features)}) while a "
                "minimum of 1 is required."
            )
    if source.n_rows < least_rows:
        raise ValueError(
            f"n_samples={source.n_rows} should be >= n_clusters={least_rows}: "
            "there are fewer rows than clusters; ask for fewer clusters"
        )
    return source


def checked_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Weights as float64, non-negative and of a finite sum, in the user's units; None for None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, np.ma.MaskedArray):
        raise TypeError(
            "sample_weight is a masked array, whose mask would be ignored; fill it "
            "(sample_weight.filled(0) leaves the masked rows out)"
        )
    weights = np.asarray(sample_weight)
    if weights.ndim == 0 and weights.dtype.kind in "fiu":
        weights = np.full(n_rows, weights)
    if weights.dtype.kind not in "fiub" or weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} and dtype {weights.dtype}; "
            f"one number per row is wanted: shape ({n_rows},)"
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight contains NaN or infinity; give each row a finite weight")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has the negative value {weights.min():g} at row "
            f"{int(weights.argmin())}; weights count rows and cannot be below 0"
        )
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight has values up to {weights.max():.3g}, whose sum overflows; divide them "
            "by their mean"
        )
    if not (weights > 0).any():
        raise ValueError("every sample_weight is zero: there is nothing to cluster")
    return weights


@PrintableErrors()
def check_features(estimator: Any, source: Source) -> None:
    """Refuse rows whose columns are not those of the fit; warn where names are missing."""
    name = type(estimator).__name__
    fitted = getattr(estimator, "feature_names_in_", None)
    given = source.feature_names
    if given is not None and fitted is None:
        warn(f"X has feature names, but {name} was fitted without feature names", UserWarning)
    elif given is None and fitted is not None:
        warn(
            f"X does not have valid feature names, but {name} was fitted with feature names",
            UserWarning,
        )
    elif given is not None and fitted is not None and tuple(fitted) != given:
        raise ValueError(_names_differ(tuple(fitted), given))
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _names_differ(fitted: tuple[str, ...], given: tuple[str, ...]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    for title, names in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if names:
            lines += [title, *(f"- {name}" for name in names[:5])]
            lines += ["- ..."] if len(names) > 5 else []
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
