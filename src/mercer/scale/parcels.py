"""Values on their way to other processes: pickled once; large arrays in shared memory.

Nothing here is a file format: parcels live as long as the processes that exchange them.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
import sys
import tempfile
import weakref
from contextlib import suppress
from dataclasses import field
from typing import Any

from mercer._run.frozen import frozen

try:  # functions of the user's own script travel too
    import cloudpickle
except ImportError:  # joblib needs it, or brings it along
    from joblib.externals import cloudpickle


ALIGNMENT = 64  # bytes, for the processor to read arrays fast
SMALL = 2**16  # bytes; smaller arrays stay inside the pickle
LARGE = 2**24  # bytes; sources that hold more are sent block by block


@frozen
class Parcel:
    """A pickled value; its large arrays may lie in a file that other processes can map."""

    key: str
    body: bytes = field(repr=False)
    path: str | None = None
    places: tuple[tuple[int, int], ...] = ()  # (offset, bytes) of each array in the file

    def open(self) -> Any:
        """The value; arrays in the file are read-only and not copied."""
        if self.path is None:
            return pickle.loads(self.body)
        with open(self.path, "rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        buffers = [mapped[start : start + length] for start, length in self.places]
        return pickle.loads(self.body, buffers=buffers)


@frozen
class SharedParcel:
    """A parcel and the memory behind it, which goes when this is closed or its process ends."""

    parcel: Parcel
    file: Any = None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def pack(value: Any) -> Parcel:
    """A value in one parcel, for other machines."""
    return Parcel(secrets.token_hex(8), cloudpickle.dumps(value, protocol=5))


def pack_shared(value: Any) -> SharedParcel:
    """A value whose large arrays lie in memory that processes of this machine share."""
    buffers: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes >= SMALL:
            buffers.append(raw)
        return raw.nbytes < SMALL

    body = cloudpickle.dumps(value, protocol=5, buffer_callback=keep_inside)
    key = secrets.token_hex(8)
    if not buffers:
        return SharedParcel(Parcel(key, body))
    file, path = _shared_file(key)
    places, end = [], 0
    for buffer in buffers:
        start = -(-end // ALIGNMENT) * ALIGNMENT
        file.seek(start)
        file.write(buffer)
        end = start + buffer.nbytes
        places.append((start, buffer.nbytes))
    file.flush()
    return SharedParcel(Parcel(key, body, path, tuple(places)), file)


def travels(source: Any) -> bool:
    """Whether other processes can read this source themselves, from a description of it."""
    if source.in_memory:
        return False
    sizes: list[int] = []
    try:
        body = cloudpickle.dumps(
            source, protocol=5, buffer_callback=lambda buffer: sizes.append(buffer.raw().nbytes)
        )
    except (TypeError, AttributeError, pickle.PicklingError):  # an open file, a socket, ...
        return False
    return len(body) + sum(sizes) < LARGE


def _shared_file(name: str) -> tuple[Any, str]:
    """A file in memory without a name on the disk, so that not even a crash leaves it behind."""
    if sys.platform == "linux":
        descriptor = os.memfd_create(name)
        return os.fdopen(descriptor, "wb"), f"/proc/{os.getpid()}/fd/{descriptor}"
    # Windows opens a file a second time only if it is not to be removed when the first one closes
    is_posix = os.name == "posix"
    file = tempfile.NamedTemporaryFile(prefix="mercer-", delete=is_posix)  # noqa: SIM115
    if not is_posix:
        weakref.finalize(file, _remove, file.name)
    return file, file.name


def _remove(name: str) -> None:
    with suppress(OSError):  # still mapped by a worker
        os.unlink(name)
