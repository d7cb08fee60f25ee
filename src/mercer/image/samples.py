"""A synthetic image whose true segments are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._run.random import as_generator
from mercer._run.types import FloatArray, IdArray, RandomState

SKY, SUN, HILLS, MEADOW, LAKE = range(5)


def landscape(
    height: int = 240, width: int = 360, *, noise: float = 8.0, random_state: RandomState = None
) -> tuple[NDArray[np.uint8], IdArray]:
    """An image of sky, sun, hills, meadow and lake.

    Parameters
    ----------
    height, width : int, default=240 and 360
        Size in pixels.
    noise : float, default=8.0
        Standard deviation of the grain; the hills have twice as much.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the grain.

    Returns
    -------
    image : ndarray of uint8 of shape (height, width, 3)
        RGB colours.
    segments : ndarray of int of shape (height, width)
        The true segments, 0 to 4.

    Examples
    --------
    >>> image, segments = landscape(60, 90, random_state=0)
    >>> image.shape, np.unique(segments).tolist()
    ((60, 90, 3), [0, 1, 2, 3, 4])
    """
    rng = as_generator(random_state)
    y = np.linspace(0.0, 1.0, height)[:, None]
    x = np.linspace(0.0, 1.5, width)[None, :]
    segments = _regions(y, x)
    image = _colors(y, x)[segments, np.arange(height)[:, None], np.arange(width)[None, :]]
    grain = np.where(segments == HILLS, 2.0 * noise, noise)
    image = image + grain[:, :, None] * rng.standard_normal((height, width, 1))
    image += 0.5 * noise * rng.standard_normal(image.shape)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8), segments


def _regions(y: FloatArray, x: FloatArray) -> IdArray:
    """The segment at each place; later ones hide earlier ones."""
    segments = np.full(np.broadcast_shapes(y.shape, x.shape), SKY, np.intp)
    segments[(x - 1.12) ** 2 + (y - 0.2) ** 2 < 0.1**2] = SUN
    ridge = 0.45 + 0.09 * np.sin(5.0 * x + 0.4) + 0.04 * np.sin(13.0 * x)
    segments[y > ridge] = HILLS
    segments[y > 0.64 + 0.03 * np.sin(4.0 * x + 2.0)] = MEADOW
    segments[((x - 0.5) / 0.42) ** 2 + ((y - 0.84) / 0.11) ** 2 < 1.0] = LAKE
    return segments


def _colors(y: FloatArray, x: FloatArray) -> FloatArray:
    """The colour of each segment at each place: (segment, height, width, 3)."""
    flat = np.ones(np.broadcast_shapes(y.shape, x.shape))[:, :, None]
    down = (y * flat[:, :, 0])[:, :, None]
    return np.stack(
        [
            flat * (108.0, 164.0, 224.0) + down * (120.0, 70.0, 20.0),
            flat * (252.0, 226.0, 120.0),
            flat * (84.0, 82.0, 110.0) + (down - 0.5) * (30.0, 40.0, 20.0),
            flat * (112.0, 158.0, 66.0) - (down - 0.8) * (90.0, 60.0, 60.0),
            flat * (44.0, 92.0, 150.0) + (down - 0.84) * (120.0, 160.0, 160.0),
        ]
    )
