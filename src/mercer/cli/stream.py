"""`mercer stream`: rows in as they come, labels out as they come, snapshots to go on from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercer._types import FloatArray, IdArray

__all__ = ["pieces_of", "stream_rows"]

TITLE = b"label\n"
PIECE_ROWS = 1000  # of a file or of lines that are read at once
SIGNS = {  # what binary files begin with, and what to do with them
    b"\x93NUMPY": ("npy", "an array in .npy format", "add --format npy"),
    b"\xff\xff\xff\xff": ("arrow", "an Arrow IPC stream", "add --format arrow"),
    b"ARROW1": ("", "an Arrow IPC file, which is read from its end", "name the file instead"),
    b"PAR1": ("", "a Parquet file, which is read from its end", "name the file instead"),
    b"\x1f\x8b": ("", "compressed by gzip", "pipe it through gunzip first"),
    b"PK\x03\x04": ("", "a zip file", "unpack it first"),
    b"\x89HDF": ("", "an HDF5 file", "save it as .npy or Parquet first"),
}
LONGEST_SIGN = max(map(len, SIGNS))
ARROW_SUFFIXES = (".arrow", ".arrows", ".ipc", ".feather")


def stream_rows(
    pieces: Iterator[FloatArray],
    estimator: Any,
    *,
    labels: Path | None,
    snapshot: Path | None,
    every: int,
    resume: bool,
) -> Any:
    """Feed the pieces to the estimator; write the label of each row once there is a model.

    Labels are on the disk before the snapshot that knows of them, and a snapshot appears whole or
    not at all. So after any interruption the labels that a snapshot does not know of are cut off,
    and the rows it has seen are skipped: what follows is what would have followed.
    """
    from mercer.io import save

    model = _resumed(estimator, snapshot) if resume else estimator
    n_known = model.n_seen_ if model is not estimator else 0
    pieces = _begun(pieces)
    with _label_lines(labels, n_known) as write:
        waiting: list[FloatArray] = []
        for number, rows in enumerate(_after(pieces, n_known), start=1):
            model.partial_fit(rows)
            waiting.append(rows)
            if model.stream_ is not None:
                for piece in waiting:
                    write(model.predict(piece))
                waiting = []
            if snapshot is not None and number % every == 0:
                save(model, snapshot)
        if not hasattr(model, "n_features_in_"):
            raise ValueError("the input holds no rows; at least as many as clusters are wanted")
        if waiting:
            raise ValueError(
                f"the input ended after {model.n_seen_} rows, which are fewer than "
                f"n_clusters={model.n_clusters}: there are no labels; ask for fewer clusters"
            )
    if snapshot is not None:
        save(model, snapshot)
    return model


def pieces_of(files: Sequence[Path], input_format: str) -> Iterator[FloatArray]:
    """Rows in pieces, file after file; standard input where there is none."""
    named = [file for file in files if str(file) != "-"]
    if not named:
        stream: Any = sys.stdin.buffer
        _check_kind(stream.peek(LONGEST_SIGN), input_format)
        yield from READERS[input_format](stream)
        return
    if len(named) < len(files):
        raise ValueError("standard input (-) cannot be mixed with files; name one or the other")
    for file in named:
        yield from _pieces_of_file(file)


def _pieces_of_file(file: Path) -> Iterator[FloatArray]:
    if file.suffix.lower() in ARROW_SUFFIXES:
        with file.open("rb") as stream:
            yield from _arrow_pieces(stream)
        return
    from mercer.data import as_source

    source = as_source(file)
    for start in range(0, source.n_rows, PIECE_ROWS):
        yield source.read(start, start + PIECE_ROWS)


def _arrow_pieces(stream: IO[bytes]) -> Iterator[FloatArray]:
    """The record batches of an IPC stream or file."""
    from mercer._extras import require

    ipc = require("pyarrow.ipc", "io", "Arrow IPC input")
    pa = require("pyarrow", "io", "Arrow IPC input")
    is_file = stream.seekable() and stream.read(6) == b"ARROW1"
    if stream.seekable():
        stream.seek(0)
    try:
        if is_file:
            reader = ipc.open_file(stream)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            batches = iter(ipc.open_stream(stream))
        for batch in batches:
            if batch.num_rows:
                columns = [np.asarray(column) for column in batch.columns]
                yield _numbers(np.column_stack(columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"the input is no Arrow IPC stream, or was cut short ({error})") from error


def _csv_pieces(stream: IO[bytes]) -> Iterator[FloatArray]:
    """Lines of numbers between commas; a first line of names is left out."""
    lines: list[str] = []
    for number, line in enumerate(stream):
        text = _text(line, number).strip()
        if text and not (number == 0 and _is_title(text)):
            lines.append(text)
        if len(lines) == PIECE_ROWS:
            yield _parsed(lines, number)
            lines = []
    if lines:
        yield _parsed(lines, -1)


def _npy_pieces(stream: Any) -> Iterator[FloatArray]:
    """Arrays in .npy format, one after another."""
    while stream.peek(1):
        try:
            rows = np.lib.format.read_array(_Pipe(stream), allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"the input is no array in .npy format ({error})") from error
        if rows.ndim != 2:
            raise ValueError(f"an array of the input has shape {rows.shape}; 2-d ones are wanted")
        for start in range(0, len(rows), PIECE_ROWS):
            yield _numbers(rows[start : start + PIECE_ROWS])


class _Pipe:
    """Only `read`: numpy asks files of the system where they stand, and a pipe stands nowhere."""

    def __init__(self, stream: Any) -> None:
        self.read = stream.read


READERS = {"arrow": _arrow_pieces, "csv": _csv_pieces, "npy": _npy_pieces}


def _check_kind(head: bytes, input_format: str) -> None:
    """Refuse input that begins as another format does than the one that was asked for."""
    for sign, (name, what, advice) in SIGNS.items():
        if head.startswith(sign) and name != input_format:
            raise ValueError(
                f"standard input is {what}, and --format {input_format} was expected; {advice}"
            )


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"line {number + 1} of standard input is not UTF-8 text ({error.reason} at byte "
            f"{error.start + 1}); if it is not CSV, name it by --format {', '.join(READERS)}"
        ) from error


def _parsed(lines: list[str], number: int) -> FloatArray:
    try:
        return np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError as error:
        where = f" before line {number + 2}" if number >= 0 else ""
        raise ValueError(f"the lines{where} are not all numbers between commas: {error}") from error


def _is_title(text: str) -> bool:
    try:
        [float(cell) for cell in text.split(",")]
    except ValueError:
        return True
    return False


def _numbers(rows: Any) -> FloatArray:
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"the input holds values of type {rows.dtype}; numbers are wanted")
    return np.ascontiguousarray(rows)


def _begun(pieces: Iterator[FloatArray]) -> Iterator[FloatArray]:
    """The same, but input that is not there is found now, before old labels are let go."""
    first = next(pieces, None)
    return iter(()) if first is None else chain([first], pieces)


def _after(pieces: Iterator[FloatArray], n_known: int) -> Iterator[FloatArray]:
    """The rows after the first so many."""
    row = 0
    for rows in pieces:
        if row + len(rows) > n_known:
            yield rows[max(n_known - row, 0) :]
        row += len(rows)
    if row < n_known:
        raise ValueError(
            f"the input has {row} rows, but the model has seen {n_known}: --resume wants the same "
            "input again, from its beginning"
        )


def _resumed(estimator: Any, snapshot: Path | None) -> Any:
    """The model of the snapshot, or the estimator where there is none that knows anything."""
    from mercer.cluster import StreamingKernelKMeans
    from mercer.io import load

    if snapshot is None:
        raise ValueError("--resume needs --model FILE to go on from")
    if not snapshot.exists():
        return estimator
    model = load(snapshot)
    if not isinstance(model, StreamingKernelKMeans):
        raise ValueError(f"{snapshot} holds a {type(model).__name__}, not a stream")
    if model.stream_ is None:
        return estimator
    same = ("n_jobs", "max_memory", "verbose", "random_state")
    asked, had = estimator.get_params(), model.get_params()
    other = [n for n in asked if n not in same and repr(asked[n]) != repr(had[n])]
    if other:
        raise ValueError(
            f"{snapshot} was made with other parameters: "
            + ", ".join(f"{name} {had[name]!r}, not {asked[name]!r}" for name in other)
            + "; give the same ones, or begin without --resume"
        )
    return model.set_params(n_jobs=estimator.n_jobs, max_memory=estimator.max_memory)


@contextmanager
def _label_lines(path: Path | None, n_known: int) -> Iterator[Any]:
    """A function that writes labels, one a line; they are on the disk when it returns."""
    if path is None:
        out = sys.stdout

        def show(labels: IdArray) -> None:
            out.writelines(f"{label}\n" for label in labels.tolist())
            out.flush()

        yield show
        return
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: labels of a stream are written line by line; name a .csv file")
    _keep_lines(path, n_known)
    with path.open("ab") as file:

        def write(labels: IdArray) -> None:
            file.write("".join(f"{label}\n" for label in labels.tolist()).encode())
            file.flush()
            os.fsync(file.fileno())

        yield write


def _keep_lines(path: Path, n_known: int) -> None:
    """Cut the file after the labels of the rows that are known; a new one has its title."""
    from mercer.io.atomic import check_writable

    check_writable(path)
    if n_known == 0:
        path.write_bytes(TITLE)
        return
    try:
        with path.open("rb+") as file:
            n_lines = sum(
                1 for _ in zip(range(n_known + 1), iter(file.readline, b""), strict=False)
            )
            if n_lines < n_known + 1:
                raise ValueError(
                    f"{path} has {max(n_lines - 1, 0)} labels, but the model has seen {n_known} "
                    "rows; --resume needs the labels that were written so far"
                )
            file.truncate(file.tell())
    except FileNotFoundError:
        raise ValueError(
            f"{path} is not there, but the model has seen {n_known} rows; --resume needs the "
            "labels that were written so far"
        ) from None
