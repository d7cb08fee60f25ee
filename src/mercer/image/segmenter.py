"""A segmenter: fitted on one image, it labels that one and others alike."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer._run.budget import Budget
from mercer._run.frozen import frozen
from mercer._run.progress import listening, shown
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.image.contours import TreeModel, TreeRule, WorkImage, find_segments
from mercer.image.features import (
    ColorAndPlace,
    Given,
    LabAndPlace,
    LocalHistograms,
    PixelFeatures,
    fit_features,
)
from mercer.image.models import RADIUS, SIGMA, EstimatorModel, QuantizedModel, fit_quantized
from mercer.image.pixels import BoolImage, Pixels, as_pixels
from mercer.image.planes import Planes
from mercer.image.regions import connected_regions, merge_small_regions
from mercer.image.tree import RegionTree
from mercer.kernels.exponential import RBF, Chi2
from mercer.report import Report

SPECK = 5e-4  # of the image: regions below this are merged, by min_size="auto"
EVEN = 0.5  # the scale at which people would probably draw the contours that are left
WORK_BYTES = 400_000_000  # that the tree of regions of a large image takes at most
TRAIN_PIXELS = 10_000  # of ksc: more did not improve the segmentations of [novak2023]
PIXEL_BYTES = 40  # beside the features: labels, regions, masks


@frozen
class Method:
    """What a method of segmentation needs to know of itself."""

    features: str  # by default
    has_radius: bool = False  # works on blocks of pixels
    has_levels: bool = False  # works on a tree of regions
    train_pixels: float = np.inf  # that it is fitted on at most


METHODS = {
    "contours": Method("planes", has_levels=True),
    "quantized": Method("rgbxy", has_radius=True),
    "landmarks": Method("rgbxy"),
    "ksc": Method("histogram", train_pixels=TRAIN_PIXELS),
}


class Segmenter(BaseEstimator):
    """Segment an image; the fitted model labels other images too.

    Parameters
    ----------
    n_segments : int or "auto", default="auto"
        The number of segments. "auto": as many as have contours stronger than `scale`
        ("contours"), the largest gap of the spectrum ("quantized", "landmarks"), or the criterion
        of "ksc". A segment of the latter three may consist of several regions, unless `connected`.
    method : {"auto", "contours", "quantized", "landmarks", "ksc"}, default="auto"
        "contours" merges neighbouring regions by the contrast along their common border and is
        nearest to what people draw; all its levels are in `levels_`. "quantized" clusters pixels
        by colour and place: it solves the normalised cut of all pixels on a few hundred
        representatives [zhang2006] and is by far the fastest; "landmarks" is `SpectralClustering`;
        "ksc" is `KernelSpectralClustering` [novak2023]. "auto" is "quantized" where features,
        radius or gamma are given, else "contours".
    scale : float or None, default=None
        How strong a contour must be to be kept, between 0 (all) and 1 (none), for "contours" with
        n_segments="auto"; None is 0.5: what people would probably draw.
    features : {"auto", "rgbxy", "labxy", "histogram"} or array, default="auto"
        "rgbxy" and "labxy" are colour and place, 0 … 255 each; "histogram" holds the shares of
        `n_colors` colours in the window around a pixel; an array of shape (height, width, d) is
        used as it is. "auto" is "histogram" for "ksc", else "rgbxy"; "contours" has its own.
    radius : float or "auto", default="auto"
        A pixel within this distance of a representative needs none of its own ("quantized");
        "auto" is 50 for colours and places, and in proportion to the range of other features.
    gamma : float or "auto", default="auto"
        Bandwidth of the RBF kernel exp(-γ‖x - y‖²), or of χ² for the histograms of "ksc". "auto"
        is 1/(2·30²) for colours and places ("quantized"), else the rule of the method.
    channel_axis : int or None, default=-1
        The axis of the channels; two-dimensional images are grey.
    alpha : bool or None, default=None
        Whether the last channel is alpha: wholly transparent pixels are ignored. None: if there
        are four channels.
    min_size : int or "auto", default="auto"
        Smaller regions take the label of the neighbour with the longest common boundary
        ("contours": the least contrast); "auto" is 0.05 % of the pixels, 0 keeps all.
    connected : bool, default=False
        Number each connected region as a segment of its own.
    connectivity : {1, 2}, default=1
        Pixels touch at edges (1), or at corners too (2).
    start_label : int, default=1
        The first label; pixels outside the mask get the number before it.
    window : int, default=5
        Side of the window of "histogram", in pixels.
    n_colors : int, default=8
        Number of colours of "histogram".
    dither : bool, default=False
        Whether rounding to these colours carries the error on to the next pixels.
    n_init : int, default=10
        Number of starts of k-means on the eigenvectors.
    max_memory : int, str or None, default=None
        Bytes, or text such as "500MB"; None is half of the free memory.
    n_jobs : int or None, default=None
        Number of threads.
    verbose : int, default=0
        Whether stages are reported while they run.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all random draws.

    Attributes
    ----------
    labels_ : ndarray of shape (height, width)
        Labels of the fitted image.
    n_segments_ : int
        Number of segments found.
    levels_ : RegionTree
        All levels of the fitted image, each nested in the next: ``levels_.labels(12)``,
        ``levels_.labels(scale=0.7)`` ("contours" only; not part of model files).
    features_ : PixelFeatures
        How features are computed from pixels.
    model_ : TreeModel, QuantizedModel or EstimatorModel
        How features become labels.
    report_ : Report
        The fit report.

    Examples
    --------
    >>> from mercer.image import landscape
    >>> from mercer.image import Segmenter
    >>> image, truth = landscape(80, 120, random_state=0)
    >>> segmenter = Segmenter(4, random_state=0).fit(image)
    >>> segmenter.predict(image[:, ::-1]).shape
    (80, 120)
    """

    _reads_rows = False

    _fitted_fields: ClassVar[dict[str, Any]] = {
        "features_": ColorAndPlace | LabAndPlace | LocalHistograms | Given | Planes,
        "model_": QuantizedModel | EstimatorModel | TreeModel,
        "n_segments_": "int k",
    }
    _optional_fields: ClassVar[dict[str, Any]] = {}
    _retired_parameters: ClassVar[dict[str, Any]] = {}
    _parameter_constraints = {  # noqa: RUF012
        "n_segments": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "method": [StrOptions({"auto", "contours", "quantized", "landmarks", "ksc"})],
        "scale": [Interval(Real, 0, 1, closed="both"), None],
        "features": "no_validation",
        "radius": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "channel_axis": [None, Integral],
        "alpha": [None, "boolean"],
        "min_size": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "connected": ["boolean"],
        "connectivity": [Interval(Integral, 1, 2, closed="both")],
        "start_label": [Integral],
        "window": [Interval(Integral, 1, None, closed="left")],
        "n_colors": [Interval(Integral, 2, 256, closed="both")],
        "dither": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_memory": "no_validation",
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        n_segments: int | str = "auto",
        *,
        method: str = "auto",
        scale: float | None = None,
        features: Any = "auto",
        radius: float | str = "auto",
        gamma: float | str = "auto",
        channel_axis: int | None = -1,
        alpha: bool | None = None,
        min_size: int | str = "auto",
        connected: bool = False,
        connectivity: int = 1,
        start_label: int = 1,
        window: int = 5,
        n_colors: int = 8,
        dither: bool = False,
        n_init: int = 10,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
    ) -> None:
        self.n_segments = n_segments
        self.method = method
        self.scale = scale
        self.features = features
        self.radius = radius
        self.gamma = gamma
        self.channel_axis = channel_axis
        self.alpha = alpha
        self.min_size = min_size
        self.connected = connected
        self.connectivity = connectivity
        self.start_label = start_label
        self.window = window
        self.n_colors = n_colors
        self.dither = dither
        self.n_init = n_init
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, image: Any, y: Any = None, *, mask: Any = None) -> Segmenter:
        """Find the segments of an image.

        Parameters
        ----------
        image : array of shape (height, width) or (height, width, channels)
            The image, of uint8, uint16, float or bool.
        y : ignored
        mask : array of bool of shape (height, width) or None, default=None
            False where a pixel is ignored.

        Returns
        -------
        Segmenter
            The fitted segmenter itself.
        """
        self._validate_params()
        self._check_options()
        record, threads = Recorder(), n_threads(self.n_jobs)
        pixels = self._pixels(image, mask)
        self._check_size(pixels)
        if self.n_segments == 1:
            record.warn("n_segments=1 makes one segment of the whole image")
        fitted: PixelFeatures
        model: QuantizedModel | EstimatorModel | TreeModel
        levels: RegionTree | None = None
        with listening(shown(self.verbose)), single_threaded_blas():
            if METHODS[self._method()].has_levels:
                fitted, model, labels, levels = self._build_tree(pixels, record, threads=threads)
            else:
                fitted, model, labels = self._cluster(pixels, record, threads=threads)
            with record.stage("regions"):
                cleaned = self._clean(labels, pixels)
        report = self._build_report(pixels, fitted, model, record)
        record.raise_warnings()
        self.features_, self.model_, self.labels_, self.report_ = fitted, model, cleaned, report
        self.n_segments_ = len(model.weights)
        if levels is not None:
            self.levels_ = levels
        elif "levels_" in vars(self):
            del self.levels_
        return self

    def fit_predict(self, image: Any, y: Any = None, *, mask: Any = None) -> IdArray:
        """`fit`, then the labels of the image."""
        labels: IdArray = self.fit(image, mask=mask).labels_
        return labels

    def predict(self, image: Any, *, mask: Any = None, features: Any = None) -> IdArray:
        """Label any image by the clusters of the fitted one; a label means the same in both.

        Parameters
        ----------
        image : array of shape (height, width) or (height, width, channels)
            An image with the channels of the fitted one.
        mask : array of bool of shape (height, width) or None, default=None
            False where a pixel is ignored.
        features : array of shape (height, width, d) or None, default=None
            The features of this image, if the model was fitted on an array of features.

        Returns
        -------
        ndarray of shape (height, width)
            The labels.
        """
        check_is_fitted(self, "model_")
        pixels = self._pixels(image, mask)
        self._check_memory(pixels)
        with listening(shown(self.verbose)), single_threaded_blas():
            threads = n_threads(self.n_jobs)
            labels = self.model_.label_pixels(self.features_, pixels, features, threads)
            return self._clean(labels, pixels)

    def save(self, path: Any) -> None:
        """Write the fitted segmenter to one file; `mercer.load` reads it.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        from mercer.io.model import save

        save(self, path)

    def fitted_features(self, image: Any) -> FloatArray:
        """Features of the pixels of the image of the fit: (height · width, d)."""
        pixels = self._pixels(image, None)
        if pixels.shape != self.labels_.shape:
            raise ValueError(
                f"the image has shape {pixels.shape}, but the segmenter was fitted on one of "
                f"{self.labels_.shape}; pass the image of the fit"
            )
        return self.features_.of(pixels, None if isinstance(self.features, str) else self.features)

    def _pixels(self, image: Any, mask: Any) -> Pixels:
        return as_pixels(image, mask, channel_axis=self.channel_axis, alpha=self.alpha)

    def _method(self) -> str:
        if self.method != "auto":
            return self.method
        is_given = not isinstance(self.features, str) or self.features != "auto"
        return "quantized" if is_given or {self.radius, self.gamma} != {"auto"} else "contours"

    def _check_options(self) -> None:
        """Refuse options of another method."""
        method = self._method()
        if self.radius != "auto" and not METHODS[method].has_radius:
            raise ValueError(f"radius= belongs to method='quantized', not to {method!r}")
        if self.scale is not None and self.n_segments != "auto":
            raise ValueError(
                f"n_segments={self.n_segments} and scale={self.scale} both choose the level; pass "
                "one of them"
            )
        if not METHODS[method].has_levels:
            if self.scale is not None:
                raise ValueError(f"scale= belongs to method='contours', not to {method!r}")
            return
        if self.gamma != "auto" or not isinstance(self.features, str) or self.features != "auto":
            raise ValueError(
                "method='contours' has features and weights of its own; leave out features= and "
                "gamma=, or choose method='quantized'"
            )

    def _check_size(self, pixels: Pixels) -> None:
        """Refuse, before any work, what the image is too small or the memory too little for."""
        n = pixels.n_inside
        if self.n_segments != "auto" and int(self.n_segments) > n:
            raise ValueError(
                f"n_segments={self.n_segments} exceeds the {n:,} pixels of the image; lower it"
            )
        self._check_memory(pixels)

    def _check_memory(self, pixels: Pixels) -> None:
        has_levels = METHODS[self._method()].has_levels
        n_features = self.n_colors if self._is_histogram() else pixels.n_channels + 2
        if not isinstance(self.features, str):
            n_features = max(np.shape(self.features)[-1:] or (1,))
        height, width = pixels.shape
        Budget.of(self.max_memory).demand(
            min(2_000 * height * width, WORK_BYTES) + PIXEL_BYTES * height * width
            if has_levels
            else height * width * (PIXEL_BYTES + 4 * n_features),
            what=f"an image of {height:,} × {width:,} pixels",
            advice="raise max_memory, or scale the image down first",
        )

    def _feature_name(self) -> Any:
        if isinstance(self.features, str) and self.features == "auto":
            return METHODS[self._method()].features
        return self.features

    def _build_tree(
        self, pixels: Pixels, record: Recorder, *, threads: int
    ) -> tuple[Planes, TreeModel, IdArray, RegionTree]:
        """The tree of regions, and the label of each pixel (-1 outside)."""
        asked = None if self.n_segments == "auto" else int(self.n_segments)
        least = SPECK if self.min_size == "auto" else float(self.min_size)
        rule = TreeRule(asked, EVEN if self.scale is None else float(self.scale), least)
        with record.stage("features"):
            work = WorkImage.of(pixels, pixels.color_range())
            fitted = Planes.fit(pixels, work.values, work.inside)
        found = find_segments(pixels, work, fitted, rule, threads=threads, record=record)
        k = len(found.weights)
        if asked is None:
            record.note(f"n_segments={k} have contours stronger than scale={rule.scale:g}")
        elif k < asked:
            record.warn(
                f"only {k} of n_segments={asked} were found: no other part of the image has a "
                f"contour and {rule.least(pixels.n_inside):g} pixels; lower n_segments or min_size"
            )
        model = TreeModel(rule, found.looks, found.weights, found.tree.n_regions)
        return fitted, model, found.labels, found.tree

    def _cluster(
        self, pixels: Pixels, record: Recorder, *, threads: int
    ) -> tuple[PixelFeatures, QuantizedModel | EstimatorModel, IdArray]:
        """Features and model, and the label of each pixel (-1 outside)."""
        with record.stage("features"):
            how: Any = {"window": self.window, "n_colors": self.n_colors, "dither": self.dither}
            fitted, F = fit_features(self._feature_name(), pixels, **how)
        inside = pixels.mask().ravel()
        if METHODS[self._method()].has_radius:
            span = fitted.span if fitted.span > 0 else 1.0
            model, blocks = fit_quantized(
                F,
                inside,
                pixels.shape[1],
                self.n_segments,
                radius=RADIUS * span if self.radius == "auto" else float(self.radius),
                gamma=0.5 / (SIGMA * span) ** 2 if self.gamma == "auto" else float(self.gamma),
                n_init=self.n_init,
                budget=Budget.of(self.max_memory),
                record=record,
                rng=as_generator(self.random_state),
                threads=threads,
            )
            return fitted, model, model.paint(blocks.owner)
        rng = as_generator(self.random_state)
        estimator = self._estimator(rng)
        estimator.fit(self._training_rows(F, inside, rng))
        record.stages += estimator.report_.stages
        by_rows = EstimatorModel(estimator, estimator.cluster_weights_)
        with record.stage("labels of all pixels"):
            return fitted, by_rows, by_rows.labels(F, inside, pixels.shape[1], threads)

    def _training_rows(
        self, F: FloatArray, inside: BoolImage, rng: np.random.Generator
    ) -> FloatArray:
        """All pixels, or a draw of them, so that frequent colours keep their weight."""
        if np.count_nonzero(inside) <= METHODS[self._method()].train_pixels:
            return F[inside]
        return F[np.sort(rng.choice(np.flatnonzero(inside), TRAIN_PIXELS, replace=False))]

    def _estimator(self, rng: np.random.Generator) -> Any:
        """The clusterer of rows behind the method."""
        from mercer.estimators import KernelSpectralClustering, SpectralClustering

        shared: dict[str, Any] = {
            "max_memory": self.max_memory,
            "n_jobs": self.n_jobs,
            "random_state": rng,
        }
        if METHODS[self._method()].features == "rgbxy":
            return SpectralClustering(
                self.n_segments, gamma=self.gamma, n_init=self.n_init, **shared
            )
        gamma: Any = self.gamma
        kernel = Chi2(gamma) if self._is_histogram() else RBF(gamma)
        return KernelSpectralClustering(self.n_segments, kernel=kernel, **shared)

    def _is_histogram(self) -> bool:
        name = self._feature_name()
        return isinstance(name, str) and name == "histogram"

    def _clean(self, labels: IdArray, pixels: Pixels) -> IdArray:
        """Merge specks, number connected regions if asked, start at `start_label`."""
        picture = labels.reshape(pixels.shape)
        least = round(SPECK * pixels.n_inside) if self.min_size == "auto" else int(self.min_size)
        if not METHODS[self._method()].has_levels:  # a tree has none
            picture = merge_small_regions(
                picture, least, outside=-1, connectivity=self.connectivity
            )
        if self.connected:
            picture = connected_regions(picture, outside=-1, connectivity=self.connectivity)
        picture += self.start_label
        return picture

    def _build_report(
        self, pixels: Pixels, features: PixelFeatures, model: Any, record: Recorder
    ) -> Report:
        fields = {
            "n_distinct": pixels.n_inside,
            "bandwidth": "gamma fixed by the range of features" if self.gamma == "auto" else "",
            "notes": (),
            "warnings": (),
        } | model.report_fields()
        fields["notes"] += tuple(record.notes)
        fields["warnings"] += tuple(record.warnings)
        return Report(
            estimator=f"Segmenter(n_segments={self.n_segments!r}, method={self._method()!r})",
            n_rows=pixels.n_inside,
            n_features=len(features.names),
            dtype=str(pixels.values.dtype),
            cluster_weights=tuple(map(float, model.weights)),
            stages=tuple(record.stages),
            **fields,
        )

    def _check_fitted(self) -> None:
        """Nothing beside what the specifications of the fitted attributes say."""

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)
