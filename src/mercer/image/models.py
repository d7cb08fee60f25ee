"""The fitted models of a segmenter: they label pixels by their features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.recorder import Recorder
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray, IdArray
from mercer.embeddings.gaps import ranked_gaps, relative_gap
from mercer.estimators.base import Clusterer
from mercer.factors.quantized import Quantization, block_values
from mercer.image.blocks import Centers, PixelBlocks, find_blocks
from mercer.image.features import PixelFeatures
from mercer.image.pixels import Pixels
from mercer.kernels.exponential import RBF
from mercer.linalg.eigen import leading_eigenpairs
from mercer.linalg.eigenpairs import Eigenpairs
from mercer.linalg.numbering import numbering
from mercer.linalg.products import unit_rows
from mercer.partitions.cones import find_cones

RADIUS, SIGMA = 50.0 / 255.0, 30.0 / 255.0  # of the span of a feature [zhang2006]
MOST_SEGMENTS = 15  # that n_segments="auto" considers
INNER_FIELDS = (  # of the report of an estimator of rows
    *("n_distinct", "kernel", "bandwidth", "approximation", "rank", "trace_error"),
    *("residuals", "solver", "gap", "quality", "eigenvalues", "notes", "warnings"),
)


class RowModel(Record):
    """A model that labels each pixel by its features alone."""

    __slots__ = ()

    def label_pixels(
        self, features: PixelFeatures, pixels: Pixels, given: Any, threads: int
    ) -> IdArray:
        """Segments of the pixels of any image, -1 outside."""
        inside, width = pixels.mask().ravel(), pixels.shape[1]
        return self.labels(features.of(pixels, given), inside, width, threads)

    def labels(self, F: FloatArray, inside: NDArray[np.bool_], width: int, threads: int) -> IdArray:
        """Segments of pixels by their features, -1 outside."""
        raise NotImplementedError


@frozen
class QuantizedModel(RowModel):
    """A pixel belongs to the segment of its nearest representative."""

    centers: Centers = stored(Centers)
    segment_of: IdArray = stored("(m,) int, >= 0")
    eigenvalues: FloatArray = stored("(e?,) float, finite")
    kernel: RBF = stored(RBF)
    weights: FloatArray = stored("(k,) float64, finite")  # pixels of each segment

    def sizes(self) -> dict[str, int]:
        """d: features; k: segments."""
        return {"d": self.centers.points.shape[1], "k": len(self.weights)}

    def check(self) -> None:
        is_segment = self.segment_of.max() < len(self.weights)
        expect(is_segment, f"segment_of is not among {len(self.weights)} segments")

    def report_fields(self) -> dict[str, Any]:
        """What the fit report says about the clustering."""
        return {
            "kernel": repr(self.kernel),
            "approximation": "blocks of pixels",
            "rank": len(self.segment_of),
            "trace_error": None,
            "eigenvalues": tuple(map(float, self.eigenvalues)),
            "gap": relative_gap(np.asarray(self.eigenvalues), len(self.weights)),
        }

    def labels(self, F: FloatArray, inside: NDArray[np.bool_], width: int, threads: int) -> IdArray:
        """Segments of pixels, -1 outside."""
        return self.paint(self.centers.owners(F, inside, width, threads))

    def paint(self, owner: NDArray[np.int32]) -> IdArray:
        """Segments from representatives, -1 outside."""
        labels: IdArray = np.append(self.segment_of, -1)[owner]
        return labels


@frozen
class EstimatorModel(RowModel):
    """Any clusterer of rows: it sees the features of the pixels inside, in scan order."""

    estimator: Any = stored(Clusterer)
    weights: FloatArray = stored("(k,) float64, finite")

    def sizes(self) -> dict[str, int]:
        """d: features; k: segments."""
        return {"d": self.estimator.n_features_in_, "k": len(self.weights)}

    def check(self) -> None:
        is_same = len(self.estimator.cluster_weights_) == len(self.weights)
        expect(is_same, "the weights of the segments are not those of the clusters")

    def report_fields(self) -> dict[str, Any]:
        """What the fit report says about the clustering."""
        inner = self.estimator.report_
        return {name: getattr(inner, name) for name in INNER_FIELDS}

    def labels(self, F: FloatArray, inside: NDArray[np.bool_], width: int, threads: int) -> IdArray:
        """Segments of pixels, -1 outside."""
        if inside.all():
            found: IdArray = self.estimator.predict(F)
            return found
        labels = np.full(len(F), -1, np.intp)
        labels[inside] = self.estimator.predict(F[inside])
        return labels


def fit_quantized(
    F: FloatArray,
    inside: NDArray[np.bool_],
    width: int,
    n_segments: int | str,
    *,
    radius: float,
    gamma: float,
    n_init: int,
    budget: Budget,
    record: Recorder,
    rng: np.random.Generator,
    threads: int = 1,
) -> tuple[QuantizedModel, PixelBlocks]:
    """Normalised cut of the block-quantised kernel matrix of all pixels [zhang2006, 5.2]."""
    with record.stage("blocks"):
        blocks = find_blocks(F, inside, width, radius, budget=budget, threads=threads)
    held, kernel = blocks.quantization, RBF(gamma)
    most = MOST_SEGMENTS if n_segments == "auto" else int(n_segments)
    if len(held) < most and n_segments != "auto":
        record.warn(
            f"radius={radius:g} leaves {len(held)} representatives for n_segments={most}; "
            f"{len(held)} segments were made: lower radius"
        )
    with record.stage("eigenvectors"):
        found = _normalized_cut(held, kernel, most + 1, rng=rng)
    k = _choose_number(found.values, min(most, len(held)), n_segments, record)
    with record.stage("segments"):
        Y = unit_rows(found.vectors[:, :k])
        cones = find_cones(Y, held.weights, k, assign_labels="kmeans", n_init=n_init, rng=rng)
        segment_of = (Y @ cones.directions.T).argmax(axis=1)
        segment_of, weights = _number_segments(segment_of, held.weights, held.representatives)
    return QuantizedModel(blocks.centers, segment_of, found.values, kernel, weights), blocks


def _normalized_cut(
    blocks: Quantization, kernel: RBF, k: int, *, rng: np.random.Generator
) -> Eigenpairs:
    """Leading eigenpairs of D^-½ W D^-½ on all pixels, by the factor's block matrix β.

    W is constant on blocks, so its eigenproblem is S = √(n_i/d_i) β_ij √(n_j/d_j), d = β n
    [zhang2006, section 4.5].
    """
    beta = block_values(blocks, kernel, correction=True)
    roots = np.sqrt(blocks.weights / (beta @ blocks.weights))
    found = leading_eigenpairs(roots[:, None] * beta * roots, k, rng=rng)
    kept = found.values > len(blocks) * np.finfo(np.float64).eps * found.values[0]
    return Eigenpairs(
        found.values[kept], found.vectors[:, kept], found.residuals[kept], found.solver
    )


def _choose_number(values: FloatArray, most: int, asked: int | str, record: Recorder) -> int:
    """As many segments as asked, or as the largest relative gap of the spectrum says."""
    if asked != "auto":
        return most
    ranking = ranked_gaps(values, most)
    if not ranking:
        return 1
    best, gap = ranking[0]
    record.note(f"n_segments={best} by the largest relative gap of the spectrum ({gap:.2f})")
    return best


def _number_segments(
    segment_of: IdArray, weights: FloatArray, representatives: FloatArray
) -> tuple[IdArray, FloatArray]:
    """Segments by decreasing size, ties by their mean features; empty ones are left out."""
    used, segment_of = np.unique(segment_of, return_inverse=True)
    sizes = np.bincount(segment_of, weights=weights, minlength=len(used)).astype(np.float64)
    means = np.stack(
        [
            np.average(representatives[segment_of == s], axis=0, weights=weights[segment_of == s])
            for s in range(len(used))
        ]
    )
    order = numbering(sizes, means)
    return np.argsort(order)[segment_of], sizes[order]
