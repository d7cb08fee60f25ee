"""Images as checked arrays: one form for grey, RGB, RGBA and many channels, of any dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.frozen import frozen
from mercer._run.records import Record, stored
from mercer._run.types import FloatArray

BoolImage = NDArray[np.bool_]

RGB = 3
MANY_CHANNELS = 16  # with another axis of at most four: that one was probably meant


@frozen
class ColorRange(Record):
    """Which values are dark and light: they become 0 and 255."""

    low: float = stored("float, finite")
    high: float = stored("float, finite")

    @classmethod
    def of(cls, values: NDArray[Any], inside: BoolImage | None) -> ColorRange:
        """Of the dtype; of floats: 0 to 1 if they keep to it, else what occurs."""
        if values.dtype == bool:
            return cls(0.0, 1.0)
        if values.dtype.kind == "u":
            return cls(0.0, float(np.iinfo(values.dtype).max))
        seen = values if inside is None else values[inside]
        low, high = float(seen.min()), float(seen.max())
        if values.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
            return cls(0.0, 1.0)
        return cls(low, high)

    @property
    def width(self) -> float:
        return self.high - self.low if self.high > self.low else 1.0


@frozen
class Pixels:
    """A checked image: (height, width, channels) of numbers, and which pixels count."""

    values: NDArray[Any]
    inside: BoolImage | None  # (height, width); None where all are

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def n_channels(self) -> int:
        return int(self.values.shape[2])

    @property
    def n_inside(self) -> int:
        height, width = self.shape
        return height * width if self.inside is None else int(np.count_nonzero(self.inside))

    def mask(self) -> BoolImage:
        """(height, width): which pixels count."""
        return np.ones(self.shape, bool) if self.inside is None else self.inside

    def color_range(self) -> ColorRange:
        return ColorRange.of(self.values, self.inside)

    def write_colors(self, scale: ColorRange, out: FloatArray, *, top: float = 255.0) -> None:
        """The channels scaled to 0 … top into `out`, pixels that do not count as 0."""
        factor = top / scale.width
        if scale.low == 0.0 and factor == 1.0:
            out[...] = self.values
        else:
            np.subtract(self.values, scale.low, out=out, casting="unsafe")
            out *= out.dtype.type(factor)
        if self.inside is not None and self.values.dtype.kind == "f":
            out[~self.inside] = 0.0


def as_pixels(
    image: Any, mask: Any = None, *, channel_axis: int | None = -1, alpha: bool | None = None
) -> Pixels:
    """Check an image and bring it into one form."""
    values = _channels_last(_numbers(image), channel_axis)
    if 0 in values.shape:
        raise ValueError(f"the image has shape {np.shape(image)}: no pixels; pass one with some")
    inside = None if mask is None else _checked_mask(mask, values.shape[:2])
    values, inside = _without_alpha(values, inside, alpha)
    if inside is not None and not inside.any():
        raise ValueError(
            "no pixel is left: the mask (or the alpha channel) leaves out the whole image; "
            "pass a mask that is True where the image counts"
        )
    _check_finite(values, inside)
    return Pixels(values, inside)


def _numbers(image: Any) -> NDArray[Any]:
    values = np.asarray(image)
    if values.dtype.kind not in "buif":
        raise TypeError(
            f"the image holds {values.dtype}, not numbers; pass an array of uint8, uint16 or float "
            "(mercer.image.read_image reads files)"
        )
    return values


def _channels_last(values: NDArray[Any], channel_axis: int | None) -> NDArray[Any]:
    """(height, width, channels), whichever way it came."""
    if values.ndim == 2:  # grey, whatever channel_axis says
        return values[:, :, None]
    if channel_axis is None:
        raise ValueError(
            f"channel_axis=None means a grey image of two dimensions, but this one has shape "
            f"{values.shape}; pass channel_axis=-1 if the channels come last"
        )
    if values.ndim != 3:
        raise ValueError(
            f"the image has shape {values.shape}; pass (height, width), (height, width, channels), "
            "or one image after the other to segment_batch"
        )
    if not -3 <= channel_axis < 3:
        raise ValueError(f"channel_axis={channel_axis} is not an axis of shape {values.shape}")
    moved = np.moveaxis(values, channel_axis, -1)
    if moved.shape[2] >= MANY_CHANNELS and min(moved.shape[:2]) <= RGB + 1:
        likely = int(np.argmin(values.shape))
        raise ValueError(
            f"channel_axis={channel_axis} makes {moved.shape[2]} channels of an image of shape "
            f"{values.shape}; did you mean channel_axis={likely}?"
        )
    return moved


def _checked_mask(mask: Any, shape: tuple[int, ...]) -> BoolImage:
    given = np.asarray(mask)
    if given.shape != tuple(shape):
        raise ValueError(
            f"mask has shape {given.shape}, the image {tuple(shape)}; pass one value per pixel"
        )
    if given.dtype != bool and not np.isin(given, (0, 1)).all():
        raise ValueError(f"mask holds {given.dtype} other than 0 and 1; pass booleans")
    return given.astype(bool)


def _without_alpha(
    values: NDArray[Any], inside: BoolImage | None, alpha: bool | None
) -> tuple[NDArray[Any], BoolImage | None]:
    """Four channels are RGBA unless alpha=False: wholly transparent pixels do not count."""
    has_alpha = values.shape[2] == RGB + 1 if alpha is None else alpha
    if not has_alpha:
        return values, inside
    if values.shape[2] not in (2, RGB + 1):
        raise ValueError(
            f"alpha=True needs 2 or 4 channels (grey or RGB, and alpha), not {values.shape[2]}"
        )
    visible = values[:, :, -1] > 0
    colors = values[:, :, :-1]
    if visible.all():
        return colors, inside
    return colors, visible if inside is None else visible & inside


def _check_finite(values: NDArray[Any], inside: BoolImage | None) -> None:
    if values.dtype.kind != "f":
        return
    bad = ~np.isfinite(values).all(axis=2)
    if inside is not None:
        bad &= inside
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"{np.count_nonzero(bad):,} pixels are NaN or infinite, the first in row {row}, column "
            f"{column}; fill them, or leave them out with mask=np.isfinite(image)…"
        )
    largest = float(np.abs(values, where=np.isfinite(values), out=np.zeros(values.shape)).max())
    if largest > 1e30:
        raise ValueError(f"pixel values reach {largest:g}, too large to square; scale them down")
