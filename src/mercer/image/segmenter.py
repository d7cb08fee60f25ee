"""A segmenter: fitted on one image, it labels that one and others alike."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer._run.budget import Budget
from mercer._run.progress import LineWriter, listening
from mercer._run.random import as_generator
from mercer._run.recorder import Recorder
from mercer._run.threads import n_threads, single_threaded_blas
from mercer._run.types import FloatArray, IdArray, RandomState
from mercer.embeddings.gaps import relative_gap
from mercer.image.features import Given, PixelFeatures, fit_features, given_features
from mercer.image.models import RADIUS, SIGMA, EstimatorModel, QuantizedModel, fit_quantized
from mercer.image.pixels import BoolImage, Pixels, as_pixels
from mercer.image.regions import connected_regions, merge_small_regions
from mercer.kernels.exponential import RBF, Chi2
from mercer.report import Report

SPECK = 5e-4  # of the image: regions below this are merged, by min_size="auto"
TRAIN_PIXELS = 10_000  # of ksc: more did not improve the segmentations of paper 004
PIXEL_BYTES = 40  # beside the features: labels, regions, masks


class Segmenter(BaseEstimator):
    """Segments of an image as clusters of its pixels, and a model that labels other images.

    Parameters
    ----------
    n_segments : number of segments; "auto" by the spectrum's largest gap (ksc: by its criterion).
        A segment may consist of several regions, unless `connected`.
    method : "quantized" solves the normalised cut of all pixels on a few hundred representatives
        [zhang2006] and is by far the fastest; "landmarks" is `SpectralClustering`; "ksc" is
        `KernelSpectralClustering` [novak2023].
    features : "rgbxy" and "labxy" (colour and place, 0 … 255 each), "histogram" (shares of
        `n_colors` colours in the window around a pixel), or an array (height, width, d) of your
        own. "auto": "histogram" for ksc, else "rgbxy".
    radius : a pixel within this distance of a representative needs none of its own (quantized);
        "auto" is 50 for colours and places, and as large beside the range of other features.
    gamma : bandwidth: RBF exp(-γ‖x - y‖²); χ² for the histograms of ksc. "auto" is
        1/(2·30²) for colours and places (quantized), else the method's own rule.
    channel_axis : where the channels are; two-dimensional images are grey.
    alpha : whether the last channel is alpha (wholly transparent pixels do not count); None: if
        there are four.
    min_size : smaller regions take the label of the neighbour with the longest common border;
        "auto" is 0.05 % of the pixels, 0 keeps all.
    connected : number each connected region as a segment of its own.
    connectivity : 1: pixels touch at edges; 2: at corners too.
    start_label : the first label; pixels outside the mask get the number before it.
    window, n_colors, dither : of "histogram".
    n_init : starts of k-means on the eigenvectors.
    max_memory, n_jobs, verbose, random_state : as in `SpectralClustering`.

    Attributes
    ----------
    labels_ : (height, width) labels of the fitted image.
    n_segments_ : how many clusters there are.
    features_, model_ : what predict needs.
    report_ : the story of the fit.

    Examples
    --------
    >>> from mercer.image import landscape
    >>> from mercer.image import Segmenter
    >>> image, truth = landscape(80, 120, random_state=0)
    >>> segmenter = Segmenter(4, random_state=0).fit(image)
    >>> segmenter.predict(image[:, ::-1]).shape
    (80, 120)
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_segments": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "method": [StrOptions({"quantized", "landmarks", "ksc"})],
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
        method: str = "quantized",
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

        mask : (height, width) of booleans: False where a pixel does not count.
        """
        self._validate_params()
        if self.radius != "auto" and self.method != "quantized":
            raise ValueError(f"radius= belongs to method='quantized', not to {self.method!r}")
        record, threads = Recorder(), n_threads(self.n_jobs)
        pixels = self._pixels(image, mask)
        self._check_size(pixels)
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            with record.stage("features"):
                fitted, F = self._features(pixels)
            model, labels = self._cluster(pixels, fitted, F, record, threads=threads)
            with record.stage("regions"):
                cleaned = self._cleaned(labels, pixels)
        report = self._report(pixels, F, model, record)
        record.raise_warnings()
        self.features_, self.model_, self.labels_, self.report_ = fitted, model, cleaned, report
        self.n_segments_ = model.n_segments
        return self

    def fit_predict(self, image: Any, y: Any = None, *, mask: Any = None) -> IdArray:
        """`fit`, then the labels of the image."""
        labels: IdArray = self.fit(image, mask=mask).labels_
        return labels

    def predict(self, image: Any, *, mask: Any = None, features: Any = None) -> IdArray:
        """Labels of any image by the clusters of the fitted one; a number means the same in both.

        features : the image's own array, where the model was fitted on one.
        """
        check_is_fitted(self, "model_")
        pixels = self._pixels(image, mask)
        self._check_memory(pixels)
        with listening(LineWriter() if self.verbose else None), single_threaded_blas():
            F = self._features_of(pixels, features)
            inside, width = pixels.mask().ravel(), pixels.shape[1]
            labels = self.model_.labels(F, inside, width, n_threads(self.n_jobs))
            return self._cleaned(labels, pixels)

    def _pixels(self, image: Any, mask: Any) -> Pixels:
        return as_pixels(image, mask, channel_axis=self.channel_axis, alpha=self.alpha)

    def _check_size(self, pixels: Pixels) -> None:
        """Refuse, before any work, what the image is too small or the memory too little for."""
        n = pixels.n_inside
        if self.n_segments != "auto" and int(self.n_segments) > n:
            raise ValueError(
                f"n_segments={self.n_segments} exceeds the {n:,} pixels of the image; lower it"
            )
        self._check_memory(pixels)

    def _check_memory(self, pixels: Pixels) -> None:
        n_features = self.n_colors if self._is_histogram() else pixels.n_channels + 2
        if not isinstance(self.features, str):
            n_features = max(np.shape(self.features)[-1:] or (1,))
        height, width = pixels.shape
        Budget.of(self.max_memory).demand(
            height * width * (PIXEL_BYTES + 4 * n_features),
            what=f"an image of {height:,} × {width:,} pixels",
            advice="raise max_memory, or scale the image down first",
        )

    def _feature_name(self) -> Any:
        if isinstance(self.features, str) and self.features == "auto":
            return "histogram" if self.method == "ksc" else "rgbxy"
        return self.features

    def _features(self, pixels: Pixels) -> tuple[PixelFeatures, FloatArray]:
        return fit_features(
            self._feature_name(),
            pixels,
            window=self.window,
            n_colors=self.n_colors,
            dither=self.dither,
        )

    def _features_of(self, pixels: Pixels, features: Any) -> FloatArray:
        if not isinstance(self.features_, Given):
            if features is not None:
                raise ValueError("this model makes its features from the image; pass no features")
            return self.features_.of(pixels)
        if features is None:
            return self.features_.of(pixels)  # says what is missing
        F = given_features(features, pixels)
        if F.shape[1] != self.features_.n_features:
            raise ValueError(
                f"features has {F.shape[1]} numbers per pixel, the model was fitted on "
                f"{self.features_.n_features}"
            )
        return F

    def _cluster(
        self,
        pixels: Pixels,
        fitted: PixelFeatures,
        F: FloatArray,
        record: Recorder,
        *,
        threads: int,
    ) -> tuple[QuantizedModel | EstimatorModel, IdArray]:
        """The model, and the label of each pixel (-1 outside)."""
        inside = pixels.mask().ravel()
        if self.n_segments == 1:
            record.warn("n_segments=1 makes one segment of the whole image")
        if self.method == "quantized":
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
            return model, model.paint(blocks.owner)
        rng = as_generator(self.random_state)
        estimator = self._estimator(rng)
        estimator.fit(self._training_rows(F, inside, rng))
        record.stages += estimator.report_.stages
        by_rows = EstimatorModel(estimator, estimator.cluster_weights_)
        with record.stage("labels of all pixels"):
            return by_rows, by_rows.labels(F, inside, pixels.shape[1], threads)

    def _training_rows(
        self, F: FloatArray, inside: BoolImage, rng: np.random.Generator
    ) -> FloatArray:
        """All pixels; for ksc a draw of them, so that frequent colours keep their weight."""
        if self.method != "ksc" or np.count_nonzero(inside) <= TRAIN_PIXELS:
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
        if self.method == "landmarks":
            return SpectralClustering(
                self.n_segments, gamma=self.gamma, n_init=self.n_init, **shared
            )
        gamma: Any = self.gamma
        kernel = Chi2(gamma) if self._is_histogram() else RBF(gamma)
        return KernelSpectralClustering(self.n_segments, kernel=kernel, **shared)

    def _is_histogram(self) -> bool:
        name = self._feature_name()
        return isinstance(name, str) and name == "histogram"

    def _cleaned(self, labels: IdArray, pixels: Pixels) -> IdArray:
        """Specks merged, regions told apart if asked, numbers from `start_label`."""
        picture = labels.reshape(pixels.shape)
        least = round(SPECK * pixels.n_inside) if self.min_size == "auto" else int(self.min_size)
        picture = merge_small_regions(picture, least, outside=-1, connectivity=self.connectivity)
        if self.connected:
            picture = connected_regions(picture, outside=-1, connectivity=self.connectivity)
        picture += self.start_label
        return picture

    def _report(self, pixels: Pixels, F: FloatArray, model: Any, record: Recorder) -> Report:
        told: dict[str, Any] = {
            "estimator": f"Segmenter(n_segments={self.n_segments!r}, method={self.method!r})",
            "n_rows": pixels.n_inside,
            "n_features": F.shape[1],
            "dtype": str(pixels.values.dtype),
            "cluster_weights": tuple(map(float, model.weights)),
            "stages": tuple(record.stages),
        }
        if isinstance(model, EstimatorModel):
            inner = model.estimator.report_
            names: tuple[str, ...] = ("n_distinct", "kernel", "bandwidth", "approximation", "rank")
            names += ("trace_error", "residuals", "solver", "gap", "quality")
            return Report(
                **told | {name: getattr(inner, name) for name in names},
                notes=(*inner.notes, *record.notes),
                warnings=(*inner.warnings, *record.warnings),
                eigenvalues=inner.eigenvalues,
            )
        return Report(
            **told,
            n_distinct=pixels.n_inside,
            kernel=repr(model.kernel),
            bandwidth="gamma fixed beside the range of features" if self.gamma == "auto" else "",
            approximation="blocks of pixels",
            rank=len(model.segment_of),
            trace_error=None,
            notes=tuple(record.notes),
            warnings=tuple(record.warnings),
            eigenvalues=tuple(map(float, model.eigenvalues)),
            gap=relative_gap(np.asarray(model.eigenvalues), model.n_segments),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)
