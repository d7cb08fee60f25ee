"""What a pixel is clustered by: colour and place, or the colours around it, or any array.

Features are fitted to one image and then computed for any other by the same rule.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from mercer._run.extras import require
from mercer._run.frozen import frozen
from mercer._run.lazy import LazyModule
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray
from mercer.image.colors import minimum_variance_palette, quantize
from mercer.image.pixels import ColorRange, Pixels

_jit = LazyModule("mercer.image._jit")

FeatureName: TypeAlias = Literal["rgbxy", "labxy", "histogram"]

SIDE = 255.0  # colours and places run from 0 to here
WINDOW, COLORS = 5, 8  # of local histograms [novak2023]
MOST_WINDOW = 4095  # pixels: counts of larger windows leave the whole numbers of float32


class PixelFeatures(Protocol):
    """Fitted features: (height · width, d) numbers of any image."""

    @property
    def span(self) -> float: ...  # how far one feature reaches: radii and bandwidths refer to it

    @property
    def names(self) -> tuple[str, ...]: ...  # (d,)

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        """Features of the image; `given` is the caller's array, where the model needs one."""


@frozen
class ColorAndPlace(Record):
    """Channels and (x, y), all scaled to 0 … 255 [zhang2006]; any number of channels weighs as 3.

    So a grey image has the distances of its RGB copy.
    """

    scale: ColorRange = stored(ColorRange)
    n_channels: int = stored("int, in [1, 65536]")
    span: float = stored("float, finite", SIDE)

    def sizes(self) -> dict[str, int]:
        """d: features."""
        return {"d": len(self.names)}

    @classmethod
    def fit(cls, pixels: Pixels) -> ColorAndPlace:
        return cls(pixels.color_range(), pixels.n_channels)

    @property
    def names(self) -> tuple[str, ...]:
        if self.n_channels == 3:
            return "red", "green", "blue", "x", "y"
        return (*(f"channel {j}" for j in range(self.n_channels)), "x", "y")

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        _check_image(pixels, self.n_channels, given)
        height, width = pixels.shape
        F = np.empty((height, width, self.n_channels + 2), np.float32)
        pixels.write_colors(self.scale, F[:, :, :-2])
        if self.n_channels != 3:
            F[:, :, :-2] *= np.float32(np.sqrt(3.0 / self.n_channels))
        _write_places(F)
        return F.reshape(-1, F.shape[2])


@frozen
class LabAndPlace(Record):
    """CIELAB, in which distances are those the eye sees, and (x, y) scaled to 0 … 255.

    L runs from 0 to 255 instead of 100, a and b are stretched alike.
    """

    scale: ColorRange = stored(ColorRange)
    n_channels: int = stored("int, in [1, 3]")
    span: float = stored("float, finite", SIDE)

    def sizes(self) -> dict[str, int]:
        """d: features."""
        return {"d": len(self.names)}

    @classmethod
    def fit(cls, pixels: Pixels) -> LabAndPlace:
        if pixels.n_channels not in (1, 3):
            raise ValueError(
                f"features='labxy' needs RGB or grey, but the image has {pixels.n_channels} "
                "channels; use features='rgbxy', which takes any number"
            )
        return cls(pixels.color_range(), pixels.n_channels)

    @property
    def names(self) -> tuple[str, ...]:
        return "lightness", "a", "b", "x", "y"

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        _check_image(pixels, self.n_channels, given)
        color = require("skimage.color", "image", "features='labxy'")
        height, width = pixels.shape
        F = np.empty((height, width, 5), np.float32)
        pixels.write_colors(self.scale, F[:, :, :3], top=1.0)
        F[:, :, :3] = color.rgb2lab(F[:, :, :3]) * np.float32(SIDE / 100.0)
        _write_places(F)
        return F.reshape(-1, 5)


@frozen
class LocalHistograms(Record):
    """Shares of few colours in a window around the pixel [novak2023], for the χ² kernel."""

    scale: ColorRange = stored(ColorRange)
    palette: FloatArray = stored("(c, h) float, finite")  # (n_colors, channels)
    window: int = stored("int, in [1, 4095]")
    dither: bool = stored("bool")
    span: float = stored("float, finite", 1.0)

    def sizes(self) -> dict[str, int]:
        """d: features."""
        return {"d": len(self.palette)}

    def check(self) -> None:
        expect(self.window % 2 == 1, f"window={self.window} has no middle pixel")
        expect(len(self.palette) <= 256, f"the palette has {len(self.palette)} colours")

    @classmethod
    def fit(
        cls, pixels: Pixels, *, window: int = WINDOW, n_colors: int = COLORS, dither: bool = False
    ) -> LocalHistograms:
        _check_window(window, n_colors)
        scale = pixels.color_range()
        P = _colors(pixels, scale)
        seen = P if pixels.inside is None else P[pixels.inside.ravel()]
        return cls(scale, minimum_variance_palette(seen, n_colors), window, dither)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"feature {j}" for j in range(len(self.palette)))

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        _check_image(pixels, self.palette.shape[1], given)
        codes = quantize(
            _colors(pixels, self.scale), pixels.shape, self.palette, dither=self.dither
        )
        counts = np.empty((*pixels.shape, len(self.palette)), np.float32)
        _jit.window_counts(codes, pixels.mask(), self.window // 2, counts)
        F = counts.reshape(-1, len(self.palette))
        F /= np.maximum(F.sum(axis=1, keepdims=True), 1.0)
        return F


@frozen
class Given(Record):
    """An array of the caller's own: one row of numbers for each pixel, taken as it is."""

    span: float = stored("float, finite")
    n_features: int = stored("int, >= 1")

    def sizes(self) -> dict[str, int]:
        """d: features."""
        return {"d": self.n_features}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"feature {j}" for j in range(self.n_features))

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        if given is None:
            raise ValueError(
                "this model was fitted on an array of features; pass predict(image, features=…) "
                "the array that belongs to the image"
            )
        F = given_features(given, pixels)
        if F.shape[1] != self.n_features:
            raise ValueError(
                f"features has {F.shape[1]} numbers per pixel, the model was fitted on "
                f"{self.n_features}"
            )
        return F


def fit_features(
    features: FeatureName | Any,
    pixels: Pixels,
    *,
    window: int = WINDOW,
    n_colors: int = COLORS,
    dither: bool = False,
) -> tuple[PixelFeatures, FloatArray]:
    """Features by name, or the caller's array, and their values for this image: (h · w, d)."""
    fitted: PixelFeatures
    if isinstance(features, str):
        if features == "rgbxy":
            fitted = ColorAndPlace.fit(pixels)
        elif features == "labxy":
            fitted = LabAndPlace.fit(pixels)
        elif features == "histogram":
            fitted = LocalHistograms.fit(pixels, window=window, n_colors=n_colors, dither=dither)
        else:
            raise ValueError(
                f"features={features!r} is not known; choose 'rgbxy', 'labxy' or 'histogram', or "
                "pass an array of shape (height, width, d)"
            )
        return fitted, fitted.of(pixels)
    F = given_features(features, pixels)
    seen = F if pixels.inside is None else F[pixels.inside.ravel()]
    ranges = seen.max(axis=0) - seen.min(axis=0)
    return Given(float(np.sqrt(np.mean(ranges.astype(np.float64) ** 2))), F.shape[1]), F


def given_features(features: Any, pixels: Pixels) -> FloatArray:
    """The caller's array as rows, checked against the image."""
    F = np.asarray(features)
    if F.dtype.kind not in "buif":
        raise TypeError(f"features holds {F.dtype}, not numbers")
    if F.ndim == 2:
        F = F[:, :, None]
    if F.ndim != 3 or F.shape[:2] != pixels.shape or F.shape[2] == 0:
        raise ValueError(
            f"features has shape {F.shape} for an image of {pixels.shape}; pass "
            "(height, width, d), one row of numbers per pixel"
        )
    rows: FloatArray = np.array(F.reshape(-1, F.shape[2]), np.float32)
    bad = ~np.isfinite(rows).all(axis=1)
    if pixels.inside is not None:
        rows[~pixels.inside.ravel()] = 0.0
        bad &= pixels.inside.ravel()
    if bad.any():
        row, column = divmod(int(bad.argmax()), pixels.shape[1])
        raise ValueError(
            f"features of {np.count_nonzero(bad):,} pixels are NaN or beyond float32, the first in "
            f"row {row}, column {column}; fill them or leave these pixels out by mask="
        )
    return rows


def _write_places(F: FloatArray) -> None:
    """x and y into the last two features: 0 … 255 over the image's own width and height."""
    height, width, _ = F.shape
    F[:, :, -2] = np.linspace(0.0, SIDE, width, dtype=np.float32)[None, :]
    F[:, :, -1] = np.linspace(0.0, SIDE, height, dtype=np.float32)[:, None]


def _colors(pixels: Pixels, scale: ColorRange) -> FloatArray:
    P = np.empty((*pixels.shape, pixels.n_channels), np.float32)
    pixels.write_colors(scale, P)
    return P.reshape(-1, pixels.n_channels)


def _check_image(pixels: Pixels, wanted: int, given: Any) -> None:
    """Refuse an image with other channels than that of the fit, and features beside it."""
    if given is not None:
        raise ValueError("this model makes its features from the image; pass no features")
    if pixels.n_channels != wanted:
        raise ValueError(
            f"this model was fitted on images of {wanted} channels, but this one has "
            f"{pixels.n_channels}; convert it first"
        )


def _check_window(window: int, n_colors: int) -> None:
    if window < 1 or window % 2 == 0:
        raise ValueError(f"window={window} has no middle pixel; pass an odd number such as 5")
    if window > MOST_WINDOW:
        raise ValueError(f"window={window} is larger than {MOST_WINDOW}; pass a smaller one")
    if not 2 <= n_colors <= 256:
        raise ValueError(f"n_colors={n_colors} is not between 2 and 256")
