"""`--scaler`: columns or rows of a file brought to one scale, as part of the model."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

SAMPLE_ROWS = 100_000  # rows whose quartiles a robust scaler takes, at most


def fit_scaler(name: str, source: Any) -> Any:
    """A scaler of scikit-learn that has seen the rows of a source, block by block."""
    from sklearn.preprocessing import Normalizer, RobustScaler, StandardScaler

    from mercer.rows.sample import evenly
    from mercer.rows.source import spans

    is_sparse = sp.issparse(source.read(0, 1))
    if name == "standard":
        scaler = StandardScaler(with_mean=not is_sparse)
        for span in spans(source.n_rows):
            scaler.partial_fit(source.read(*span))
        return scaler
    if name == "robust":
        some = source.take(np.asarray(evenly(source.n_rows, SAMPLE_ROWS)))
        return RobustScaler(with_centering=not is_sparse).fit(some)
    return Normalizer().fit(source.read(0, 1))


def split_model(model: Any, source: Any = None) -> tuple[Any, Any]:
    """The estimator at the end of a model, and the rows as the steps before leave them.

    Names of columns, which the first step of a pipeline knows, are the estimator's again.
    """
    from sklearn.pipeline import Pipeline

    from mercer.rows.transformed import TransformedSource

    if not isinstance(model, Pipeline):
        return model, source
    estimator, names = copy(model[-1]), getattr(model, "feature_names_in_", None)
    if names is not None and len(names) == estimator.n_features_in_:
        estimator.feature_names_in_ = names
    is_alone = source is None or len(model.steps) == 1
    return estimator, source if is_alone else TransformedSource(source, model[:-1])
