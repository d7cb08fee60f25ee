"""Read and write image files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._run.atomic import replacing
from mercer._run.extras import require
from mercer._run.paths import check_links
from mercer._run.printable import PrintableErrors
from mercer.image.pixels import BoolImage

SIXTEEN_BITS = ("I;16", "I;16B", "I;16L", "I;16N")
EXACT = (".png", ".tif", ".tiff")  # lossless formats
TRANSPARENT = ("RGBA", "LA", "PA", "RGBa", "La")


@PrintableErrors()
def read_image(path: str | os.PathLike[str]) -> tuple[NDArray[Any], BoolImage | None]:
    """Read an image, upright, and where it is not transparent.

    Parameters
    ----------
    path : str or path
        A grey, RGB, palette, CMYK, 16-bit grey or float image; the first one of an animation.

    Returns
    -------
    image : ndarray of shape (height, width) or (height, width, 3)
        The pixels.
    mask : ndarray of bool of shape (height, width) or None
        Where the image is not wholly transparent; None: everywhere.
    """
    Image = require("PIL.Image", "image", "reading images")
    file = Path(path)
    check_links(file)
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a directory; pass the path of an image")
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with Image.open(file) as opened:
            return _pixels_of(opened)
    except Image.UnidentifiedImageError:
        raise ValueError(f"{path} is damaged or not an image; save it as png, jpg or tif") from None
    except Image.DecompressionBombError as error:
        raise ValueError(f"{path} is too large to be read: {error}") from None
    except (OSError, SyntaxError, EOFError, ValueError, TypeError, IndexError, KeyError) as error:
        if isinstance(error, PermissionError):
            raise
        words = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is damaged or cut short: {words}") from error


@PrintableErrors()
def write_image(path: str | os.PathLike[str], image: NDArray[np.uint8]) -> None:
    """Write an image; the file appears once it is complete.

    Parameters
    ----------
    path : str or path
        The file; its suffix names the format.
    image : ndarray of uint8 of shape (height, width) or (height, width, 3)
        The pixels.
    """
    _write(path, require("PIL.Image", "image", "writing images").fromarray(image))


@PrintableErrors()
def write_labels_image(path: str | os.PathLike[str], labels: NDArray[Any]) -> None:
    """Write labels as numbers.

    Parameters
    ----------
    path : str or path
        A ``.npy`` file, or a ``.png`` or ``.tif`` of 8 bits (16 if a label exceeds 255).
    labels : ndarray of int of shape (height, width)
        The labels.
    """
    if Path(path).suffix.lower() == ".npy":
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.save(file, labels)
        return
    if Path(path).suffix.lower() not in EXACT:
        raise ValueError(
            f"{path} names a format that may change labels, or none; use .npy, .png or .tif"
        )
    largest = int(labels.max(initial=0))
    if labels.min(initial=0) < 0 or largest > 65535:
        raise ValueError(f"{path} cannot hold labels up to {largest}; write them to a .npy file")
    kind = np.uint8 if largest <= 255 else np.uint16
    _write(path, require("PIL.Image", "image", "writing labels").fromarray(labels.astype(kind)))


def _pixels_of(opened: Any) -> tuple[NDArray[Any], BoolImage | None]:
    ImageOps = require("PIL.ImageOps", "image", "reading images")
    upright = ImageOps.exif_transpose(opened)
    mode = upright.mode
    if mode in ("1", "L", "RGB", "F", "I", *SIXTEEN_BITS) and "transparency" not in upright.info:
        values = np.array(upright)
        return values.astype(values.dtype.newbyteorder("=")), None
    if mode in TRANSPARENT or "transparency" in upright.info:
        colors = np.array(upright.convert("RGBA"))
        visible = colors[:, :, 3] > 0
        return np.ascontiguousarray(colors[:, :, :3]), None if visible.all() else visible
    return np.array(upright.convert("RGB")), None


def _write(path: str | os.PathLike[str], picture: Any) -> None:
    Image = require("PIL.Image", "image", "writing images")
    suffix = Path(path).suffix.lower()
    kind = Image.registered_extensions().get(suffix)
    if kind is None or kind not in Image.SAVE:
        raise ValueError(f"{path} has no suffix that names an image format; use .png")
    with replacing(path) as temporary, temporary.open("wb") as file:
        picture.save(file, format=kind)
