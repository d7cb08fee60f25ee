"""K ≈ F Fᵀ without ever forming K."""

from __future__ import annotations

from mercer.factors.auto import AutoGraph
from mercer.factors.base import Approximation, Factor
from mercer.factors.binning import BinningFactor, RandomBinning
from mercer.factors.cholesky import IncompleteCholesky
from mercer.factors.dense import PivotFactor
from mercer.factors.exact import Exact
from mercer.factors.fourier import FourierFactor, RandomFourier
from mercer.factors.landmarks import LandmarkGraph, Landmarks
from mercer.factors.neighbors import NeighborGraph, Neighbors
from mercer.factors.nystrom import Nystrom
from mercer.factors.quantized import Quantized, QuantizedFactor

__all__ = [
    "Approximation",
    "AutoGraph",
    "BinningFactor",
    "Exact",
    "Factor",
    "FourierFactor",
    "IncompleteCholesky",
    "LandmarkGraph",
    "Landmarks",
    "NeighborGraph",
    "Neighbors",
    "Nystrom",
    "PivotFactor",
    "Quantized",
    "QuantizedFactor",
    "RandomBinning",
    "RandomFourier",
]
