"""`mercer stream`: rows in as they come, labels out as they come, snapshots to go on from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercer._run.types import FloatArray
from mercer.cli.snapshots import (
    Batches,
    LabelFile,
    Record,
    StandardOutput,
    label_lines,
    load_snapshot,
    save_snapshot,
)

BATCH_ROWS = 1000  # of a file or of lines that are read at once
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
    batches: Iterator[FloatArray],
    estimator: Any,
    *,
    labels: Path | None,
    snapshot: Path | None,
    every: int,
    resume: bool,
) -> Any:
    """Feed the batches to the estimator; write the label of each row once there is a model.

    The first snapshot takes the place of an older one before the first label is written; every
    later one comes after the labels that it knows of. A snapshot appears whole or not at all. So
    after any interruption the snapshot is of an earlier run, with its labels as they were, or of
    this one: then labels that it does not know of are cut off and the rows it has seen are skipped,
    and what follows is what would have followed.
    """
    model, known = load_snapshot(estimator, snapshot) if resume else (estimator, Record())
    source = Batches(batches, known.ends)
    waiting = source.skip(known)
    with closing(label_lines(labels, known)) as lines:
        if known.n_rows:
            _write_labels(model, waiting, lines)
        for number, rows in enumerate(source, start=1):
            model.partial_fit(rows)
            waiting.append(rows)
            if model.stream_ is None:
                continue
            if snapshot is not None and lines.n_labels == 0:
                save_snapshot(model, snapshot, source, lines)
            _write_labels(model, waiting, lines)
            if snapshot is not None and number % every == 0:
                save_snapshot(model, snapshot, source, lines)
        _check_rows(model, waiting)
        source.ended()
        if snapshot is not None:
            save_snapshot(model, snapshot, source, lines)
    return model


def _write_labels(model: Any, waiting: list[FloatArray], lines: LabelFile | StandardOutput) -> None:
    """The labels of the rows that wait for them, by the model as it is."""
    for batch in waiting:
        lines.write(model.predict(batch))
    waiting.clear()


def _check_rows(model: Any, waiting: list[FloatArray]) -> None:
    """Refuse an input that ended before there was a model."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError("the input holds no rows; at least as many as clusters are wanted")
    if waiting:
        raise ValueError(
            f"the input ended after {model.n_seen_} rows, which are fewer than "
            f"n_clusters={model.n_clusters}: there are no labels; ask for fewer clusters"
        )


def batches_of(files: Sequence[Path], input_format: str) -> Iterator[FloatArray]:
    """Rows in batches, file after file; standard input where there is none."""
    named = [file for file in files if str(file) != "-"]
    if not named:
        stream: Any = sys.stdin.buffer
        _check_kind(stream.peek(LONGEST_SIGN), input_format)
        yield from READERS[input_format](stream)
        return
    if len(named) < len(files):
        raise ValueError("standard input (-) cannot be mixed with files; name one or the other")
    for file in named:
        yield from _batches_of_file(file)


def _batches_of_file(file: Path) -> Iterator[FloatArray]:
    if file.suffix.lower() in ARROW_SUFFIXES:
        with file.open("rb") as stream:
            yield from _arrow_batches(stream)
        return
    from mercer.rows import as_source

    source = as_source(file)
    for start in range(0, source.n_rows, BATCH_ROWS):
        yield source.read(start, start + BATCH_ROWS)


def _arrow_batches(stream: IO[bytes]) -> Iterator[FloatArray]:
    """The record batches of an IPC stream or file."""
    from mercer._run.extras import require

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


def _csv_batches(stream: IO[bytes]) -> Iterator[FloatArray]:
    """Lines of numbers between commas; a first line of names is left out."""
    lines: list[str] = []
    for number, line in enumerate(stream):
        text = _text(line, number).strip()
        if text and not (number == 0 and _is_title(text)):
            lines.append(text)
        if len(lines) == BATCH_ROWS:
            yield _parsed(lines, number)
            lines = []
    if lines:
        yield _parsed(lines, -1)


def _npy_batches(stream: Any) -> Iterator[FloatArray]:
    """Arrays in .npy format, one after another."""
    while stream.peek(1):
        try:
            rows = np.lib.format.read_array(_Pipe(stream), allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"the input is no array in .npy format ({error})") from error
        if rows.ndim != 2:
            raise ValueError(f"an array of the input has shape {rows.shape}; 2-d ones are wanted")
        for start in range(0, len(rows), BATCH_ROWS):
            yield _numbers(rows[start : start + BATCH_ROWS])


class _Pipe:
    """Only `read`: numpy asks files of the system where they stand, and a pipe stands nowhere."""

    def __init__(self, stream: Any) -> None:
        self.read = stream.read


READERS = {"arrow": _arrow_batches, "csv": _csv_batches, "npy": _npy_batches}


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
