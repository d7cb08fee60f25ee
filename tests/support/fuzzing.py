"""Files that are wrong in every way, and a process of its own that reads them.

The process may die, run out of memory or hang without harm to the tests; it tells of each file
what became of it, how long it took and how much memory it held at its peak.
"""

from __future__ import annotations

import gzip
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from waiting import HANG

MODELS = Path(__file__).parents[1] / "models"

READER = Path(__file__).parent / "hostile_reader.py"


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    value: Any
    error: tuple[str, ...]  # the classes of the error, from its own to object; empty if none
    words: str
    seconds: float  # of CPU time: others may keep the machine busy
    memory: int  # bytes at the peak, beyond what was there before


class Died(Exception):
    """The process is gone, or does not answer."""


class Reader:
    """The process that reads hostile files; a new one takes the place of one that died.

    It reads a few sound ones first, so that what it imports and compiles counts for nobody.
    """

    def __init__(self, sound: list[tuple[str, str]]) -> None:
        self.sound = sound
        self.process: subprocess.Popen[str] | None = None

    def read(self, verb: str, argument: Any) -> Outcome:
        if self.process is None:
            self.process = self._started()
            for known in self.sound:
                self.read(*known)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([verb, argument]) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], HANG)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise Died(f"{verb}: {self.close()}")
        answer = json.loads(line)
        return Outcome(
            answer.get("value"),
            tuple(answer.get("error", ())),
            answer.get("words", ""),
            answer["seconds"],
            answer["memory"],
        )

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(READER)],
            env={**os.environ, "ROWS": str(MODELS / "rows.npy"), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def close(self) -> str:
        """End it; how it ended and its last words are returned."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        if process.poll() is None and process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
        with process:
            assert process.stderr is not None
            words = process.stderr.read()[-2000:]
        return f"exit {process.returncode}, {words}"


# What can be wrong with bytes


def _cut(data: bytes, where: float, _: int) -> bytes:
    return data[: int(where * len(data))]


def _flip(data: bytes, where: float, noise: int) -> bytes:
    flipped = bytearray(data)
    if flipped:
        flipped[int(where * (len(data) - 1))] ^= 1 << noise % 8
    return bytes(flipped)


def _overwrite(data: bytes, where: float, noise: int) -> bytes:
    start, stretch = int(where * len(data)), noise.to_bytes(8)
    return data[:start] + stretch + data[start + len(stretch) :]


def _huge(data: bytes, where: float, noise: int) -> bytes:
    start = int(where * len(data))
    number = (b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x00" * 8, b"9" * 8, b"\x80" * 5)[noise % 5]
    return data[:start] + number + data[start + len(number) :]


def _insert(data: bytes, where: float, noise: int) -> bytes:
    start = int(where * len(data))
    return data[:start] + noise.to_bytes(8) * (noise % 40) + data[start:]


def _remove(data: bytes, where: float, noise: int) -> bytes:
    start = int(where * len(data))
    return data[:start] + data[start + 1 + noise % 100 :]


def _repeat(data: bytes, where: float, noise: int) -> bytes:
    start = int(where * len(data))
    return data[:start] + data[start : start + noise % 200] * 2 + data[start:]


def _foreign(data: bytes, where: float, noise: int) -> bytes:
    heads = (
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"PAR1",
        b"\x1f\x8b\x08",
        b"\x89PNG\r\n\x1a\n",
        b"\x80\x04",
    )
    return heads[noise % len(heads)] + data[int(where * 16) :]


CHANGES: tuple[Callable[[bytes, float, int], bytes], ...] = (
    _flip,
    _cut,
    _overwrite,
    _huge,
    _insert,
    _remove,
    _repeat,
    _foreign,
)


@st.composite
def damaged(draw: st.DrawFn, seeds: dict[str, bytes]) -> tuple[str, bytes]:
    """The name of a sound file, and its bytes after one to four accidents."""
    name = draw(st.sampled_from(sorted(seeds)))
    data = seeds[name]
    places = st.one_of(st.floats(0, 1), st.floats(0, 0.05), st.floats(0.95, 1))
    for _ in range(draw(st.integers(1, 4))):
        change = draw(st.sampled_from(CHANGES))
        data = change(data, draw(places), draw(st.integers(0, 2**63)))
    return name, data


# Sound files to begin with: a new reader is a new line


def npy_bytes(array: Any) -> bytes:
    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def numbers(n_rows: int = 50, n_columns: int = 4) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_rows, n_columns))


@cache
def npy_files() -> dict[str, bytes]:
    X = numbers()
    return {
        "c.npy": npy_bytes(X),
        "fortran.npy": npy_bytes(np.asfortranarray(X)),
        "single.npy": npy_bytes(X.astype("f4")),
        "whole.npy": npy_bytes((10 * X).astype("i2")),
        "big-endian.npy": npy_bytes(X.astype(">f8")),
    }


@cache
def csv_files() -> dict[str, bytes]:
    lines = [",".join(f"{value:.4g}" for value in row) for row in numbers()]
    text = "\n".join(["a,b,c,d", *lines, ""]).encode()
    return {
        "a.csv": text,
        "bare.csv": text.partition(b"\n")[2],
        "a.tsv": text.replace(b",", b"\t"),
        "a.csv.gz": gzip.compress(text, mtime=0),
        "quoted.csv": text.replace(b",b,", b',"b ""x""\n",'),
    }


@cache
def parquet_files() -> dict[str, bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = numbers()
    tables = {
        "plain": pa.table({f"f{i}": X[:, i] for i in range(4)}),
        "lists": pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)}),
        "ragged": pa.table({"v": [row.tolist() for row in X]}),
    }
    files = {}
    for name, table in tables.items():
        for compression in ("none", "snappy", "gzip"):
            buffer = BytesIO()
            checked = {"write_page_checksum": compression != "gzip", "row_group_size": 20}
            pq.write_table(table, buffer, compression=compression, **checked)
            files[f"{name}-{compression}.parquet"] = buffer.getvalue()
    return files


@cache
def image_files() -> dict[str, bytes]:
    from PIL import Image

    rng = np.random.default_rng(0)
    colors = rng.integers(0, 255, (16, 20, 3)).astype(np.uint8)
    files = {}
    for suffix, picture in {
        "png": Image.fromarray(colors),
        "jpg": Image.fromarray(colors),
        "bmp": Image.fromarray(colors[:, :, 0]),
        "gif": Image.fromarray(colors).convert("P"),
        "tif": Image.fromarray(colors[:, :, 0].astype(np.uint16) * 200),
        "webp": Image.fromarray(colors),
    }.items():
        buffer = BytesIO()
        kind = {"jpg": "jpeg", "tif": "tiff"}.get(suffix, suffix)
        picture.save(buffer, format=kind)
        files[f"a.{suffix}"] = buffer.getvalue()
    return files


@cache
def zarr_files() -> dict[str, bytes]:
    """The files of one array in two chunks, by their paths."""
    import zarr

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "a.zarr"
        array = zarr.create_array(store, shape=(50, 4), chunks=(25, 4), dtype="f8")
        array[:] = numbers()
        paths = [path for path in sorted(store.rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@cache
def label_files() -> dict[str, bytes]:
    labels = np.arange(50) % 4
    files = {
        "l.npy": npy_bytes(labels),
        "l.csv": "\n".join(["label", *map(str, labels), ""]).encode(),
    }
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return files
    buffer = BytesIO()
    pq.write_table(pa.table({"label": labels}), buffer, write_page_checksum=True)
    return {**files, "l.parquet": buffer.getvalue()}


@cache
def model_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(MODELS.glob("*.mercer"))}


@dataclass(frozen=True)
class Format:
    """One kind of file, and who reads it."""

    verb: str
    files: Callable[[], dict[str, bytes]]
    memory: int  # bytes that reading a damaged one of a few kB may take at most
    needs: tuple[str, ...] = ()
    is_folder: bool = False  # its files together are what is read; one of them is damaged

    def lay(self, folder: Path, name: str, data: bytes) -> Path:
        """Write the file; the path that is to be read."""
        if not self.is_folder:
            (folder / name).write_bytes(data)
            return folder / name
        for known, sound in {**self.files(), name: data}.items():
            (folder / known).parent.mkdir(parents=True, exist_ok=True)
            (folder / known).write_bytes(sound)
        return folder / name.partition("/")[0]


MB = 10**6
FORMATS: dict[str, Format] = {
    "model": Format("model", model_files, 50 * MB + 50 * MB),
    "npy": Format("rows", npy_files, 50 * MB),
    "csv": Format("rows", csv_files, 100 * MB, ("pyarrow",)),
    # Arrow believes the sizes in a page's header, which have 31 bits; no checksum covers them
    "parquet": Format("rows", parquet_files, 2**31 + 100 * MB, ("pyarrow",)),
    "image": Format("image", image_files, 800 * MB, ("PIL",)),
    "zarr": Format("rows", zarr_files, 200 * MB, ("zarr",), is_folder=True),
    "labels": Format("labels", label_files, 100 * MB),
}


# Files that were built to do harm


def png_of(width: int, height: int) -> bytes:
    """A PNG that declares a size and has no pixels."""
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def npy_header(shape: str, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text + b"\n" + b"\0" * 80


def zip_of(members: list[tuple[str, bytes]], *, deflated: bool = False) -> bytes:
    buffer = BytesIO()
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def members_of(name: str) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(BytesIO(model_files()[name])) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def _sound() -> list[tuple[str, bytes]]:
    return members_of("kernel-kmeans.mercer")


def _zeros() -> bytes:
    return b"\0" * (150 * MB)


# By name: the suffix that chooses the reader, and who makes the bytes.
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a zip bomb": (".mercer", lambda: zip_of([("manifest.json", _zeros())], deflated=True)),
    "a bomb of an array": (
        ".mercer",
        lambda: zip_of([*_sound(), ("x.npy", _zeros())], deflated=True),
    ),
    "a path outside": (".mercer", lambda: zip_of([*_sound(), ("../../evil.npy", b"x")])),
    "an absolute path": (".mercer", lambda: zip_of([*_sound(), ("/tmp/evil.npy", b"x")])),
    "deep JSON": (".mercer", lambda: zip_of([("manifest.json", b'{"a":' * 10**6)])),
    "a huge text": (
        ".mercer",
        lambda: zip_of([("manifest.json", b'"' + b"x" * 15 * MB + b'"')]),
    ),
    "a huge number": (
        ".mercer",
        lambda: zip_of([("manifest.json", b'{"version": 1' + b"0" * 9999 + b"}")]),
    ),
    "rows without end": (".npy", lambda: npy_header("(1000000000000, 1000)")),
    "rows that overflow": (".npy", lambda: npy_header("(4611686018427387904, 4)")),
    "negative rows": (".npy", lambda: npy_header("(-1, 2)")),
    "a pickle": (".npy", lambda: npy_header("(1, 10)", "'|O'")),
    "a header of code": (".npy", lambda: npy_header("__import__('os').system('echo')")),
    "deep header": (".npy", lambda: npy_header("(" * 5000)),
    "one endless line": (".csv.gz", lambda: gzip.compress(b"1" * 120 * MB, 1)),
    "one endless cell": (".csv", lambda: b'a,b\n1,"' + b"2" * 20 * MB),
    "many columns": (".csv", lambda: b",".join(b"%d" % i for i in range(200_000)) + b"\n"),
    "a gzip of nothing": (".csv.gz", lambda: gzip.compress(b"")),
    "a large picture": (".png", lambda: png_of(60_000, 60_000)),
    "a picture below Pillow's limit": (".png", lambda: png_of(13_000, 13_000)),
    "a picture without width": (".png", lambda: png_of(0, 10)),
}
