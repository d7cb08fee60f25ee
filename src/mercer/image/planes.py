"""An image as three planes in which equal steps look alike: lightness and two of colour."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.records import Record, expect, stored
from mercer._run.types import FloatArray
from mercer.image.pixels import RGB, ColorRange, Pixels

GRAY = 1
LIGHTEST = 100.0  # of lightness
COLORFUL = 2.0  # as in CIELAB, whose a and b have twice the steps of lightness
PER_LEVEL = 16  # steps of a level of sRGB that are told apart
SRGB_LINEAR = np.array(
    [
        s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4
        for s in np.linspace(0.0, 1.0, 255 * PER_LEVEL + 1)
    ],
    np.float32,
)
TO_XYZ = np.array(  # linear sRGB to XYZ, each relative to the white of D65
    [
        [0.412453 / 0.95047, 0.357580 / 0.95047, 0.180423 / 0.95047],
        [0.212671, 0.715160, 0.072169],
        [0.019334 / 1.08883, 0.119193 / 1.08883, 0.950227 / 1.08883],
    ],
    np.float32,
)


@frozen
class Planes(Record):
    """CIELAB of RGB and grey images, three principal components of images with other channels."""

    scale: ColorRange = stored(ColorRange)
    n_channels: int = stored("int, in [1, 65536]")
    mean: FloatArray | None = stored("(c,) float64, finite or None")
    axes: FloatArray | None = stored("(3, c) float64, finite or None")

    def sizes(self) -> dict[str, int]:
        """d: features; c: channels."""
        return {"d": 3, "c": self.n_channels}

    def check(self) -> None:
        has_axes = self.n_channels not in (GRAY, RGB)
        is_whole = (self.axes is not None, self.mean is not None) == (has_axes, has_axes)
        expect(is_whole, f"{self.n_channels} channels {'need' if has_axes else 'have no'} axes")

    @classmethod
    def fit(cls, pixels: Pixels, values: FloatArray, inside: NDArray[np.bool_]) -> Planes:
        """Scales of the image, from its values between 0 and 255: (rows, columns, channels)."""
        scale, n_channels = pixels.color_range(), pixels.n_channels
        if n_channels in (GRAY, RGB):
            return cls(scale, n_channels, None, None)
        rows = values[inside].astype(np.float64)
        mean = rows.mean(axis=0)
        _, vectors = np.linalg.eigh((rows - mean).T @ (rows - mean))
        axes = np.zeros((3, n_channels))
        kept = vectors[:, ::-1][:, :3].T
        largest = np.abs(kept).argmax(axis=1)
        axes[: len(kept)] = kept * np.sign(kept[np.arange(len(kept)), largest])[:, None]
        axes[1:] *= COLORFUL
        # any number of channels weighs like three
        return cls(scale, n_channels, mean, axes * (LIGHTEST / 255.0 * np.sqrt(3.0 / n_channels)))

    @property
    def span(self) -> float:
        return LIGHTEST

    @property
    def names(self) -> tuple[str, ...]:
        if self.axes is None:
            return "lightness", "a", "b"
        return "component 1", "component 2", "component 3"

    def of(self, pixels: Pixels, given: Any = None) -> FloatArray:
        """The planes as features of each pixel: (height · width, 3)."""
        if given is not None:
            raise ValueError("this model makes its features from the image; pass no features")
        self.check_channels(pixels)
        values = np.empty((*pixels.shape, pixels.n_channels), np.float32)
        pixels.write_colors(self.scale, values)
        return np.ascontiguousarray(self.planes(values).reshape(3, -1).T)

    def planes(self, values: FloatArray) -> FloatArray:
        """(3, rows, columns) from values between 0 and 255: (rows, columns, channels)."""
        if self.axes is not None and self.mean is not None:
            found = np.einsum("pc,yxc->pyx", self.axes, values - self.mean, optimize=True)
            found[0] += LIGHTEST / 2.0
            return found.astype(np.float32)
        return _lab(values)

    def check_channels(self, pixels: Pixels) -> None:
        if pixels.n_channels != self.n_channels:
            raise ValueError(
                f"this model was fitted on images of {self.n_channels} channels, but this one has "
                f"{pixels.n_channels}; convert it first"
            )


def _lab(values: FloatArray) -> FloatArray:
    """CIELAB of sRGB or grey between 0 and 255."""
    steps = np.clip(values * np.float32(PER_LEVEL) + np.float32(0.5), 0, 255 * PER_LEVEL)
    linear = SRGB_LINEAR[steps.astype(np.int32)]
    if linear.shape[2] == GRAY:
        found = np.zeros((3, *linear.shape[:2]), np.float32)
        found[0] = 116.0 * _response(linear[:, :, 0]) - 16.0
        return found
    X, Y, Z = (_response(linear @ row) for row in TO_XYZ)
    return np.stack([116.0 * Y - 16.0, 500.0 * (X - Y), 200.0 * (Y - Z)])


def _response(t: FloatArray) -> FloatArray:
    """CIE's cube root, straight near black."""
    return np.where(t > 0.008856, np.cbrt(t), np.float32(7.787) * t + np.float32(16.0 / 116.0))
