"""Are the quantised factors and principal components of a model file sound?"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.preimage import PreImage
from mercer.factors.quantized import QuantizedFactor
from mercer.io.check_models import check_factor_model, check_pivot_factor
from mercer.io.check_rows import is_array
from mercer.io.damage import demand


def check_quantized_factor(factor: QuantizedFactor) -> None:
    """Each representative has a weight and variances."""
    check_pivot_factor(factor)
    pivots, weights, variances = factor.pivots, factor.block_weights, factor.block_variances
    demand(isinstance(pivots, np.ndarray), "the representatives are no dense table")
    demand(
        is_array(weights, 1) and len(weights) == len(pivots) and bool((weights > 0).all()),
        "the weights of the blocks do not match the representatives",
    )
    demand(
        is_array(variances, 2) and variances.shape == pivots.shape and bool((variances >= 0).all()),
        "the variances of the blocks do not match the representatives",
    )
    demand(isinstance(factor.correction, bool), "the correction is neither on nor off")
    for name in ("kernel_error", "perturbation", "normalized_perturbation"):
        demand(isinstance(getattr(factor, name), float), f"the factor's {name} is no number")


def check_preimage(preimage: PreImage) -> None:
    """Scores lead back to rows."""
    gamma, centers, B = preimage.gamma, preimage.centers, preimage.coefficients
    demand(isinstance(gamma, float) and 0 < gamma < np.inf, "the pre-image has no bandwidth")
    demand(is_array(centers, 2) and min(centers.shape) > 0, "the pre-image has no centres")
    demand(
        is_array(B, 2) and len(B) == len(centers),
        "the pre-image's coefficients do not match its centres",
    )
    demand(
        is_array(preimage.mean, 1) and len(preimage.mean) == B.shape[1],
        "the pre-image's mean does not match its coefficients",
    )


def check_kernel_pca(model: Any) -> None:
    """The components live in the factor's space."""
    check_factor_model(model)
    components, rank = model.components_, model.factor_.rank
    demand(
        is_array(components, 2) and min(components.shape) > 0 and len(components) == rank,
        f"the components do not match the factor, which has rank {rank}",
    )
    k = components.shape[1]
    for name in ("offset_", "eigenvalues_", "explained_variance_ratio_"):
        value = getattr(model, name)
        demand(is_array(value, 1) and len(value) == k, f"{name} does not match the components")
    preimage = model.preimage_
    demand(
        preimage is None
        or (
            preimage.centers.shape[1] == k
            and preimage.coefficients.shape[1] == model.n_features_in_
        ),
        "the pre-image does not lead from scores to rows",
    )
