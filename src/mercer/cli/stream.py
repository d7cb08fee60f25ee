"""`mercer stream`: read rows in batches, write their labels, save snapshots to resume from."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from copy import copy
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercer._run.progress import telling_only
from mercer._run.threads import n_threads
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

log = logging.getLogger(__name__)

BATCH_ROWS = 1000  # rows of a file or lines of text per batch
SIGNS = {  # first bytes of binary files: format, what they are, what to do
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

    The first snapshot replaces an older one before the first label is written; every later one is
    written after the labels in its record. A snapshot is written completely or not at all. So after
    any interruption the snapshot is that of an earlier run, with its labels unchanged, or that of
    this one: then labels that are not in its record are cut off, the rows it has seen are skipped,
    and the run continues as if it had never stopped.
    """
    model, known = load_snapshot(estimator, snapshot) if resume else (estimator, Record())
    source = Batches(batches, known.ends)
    waiting = source.skip(known)
    with (
        closing(label_lines(labels, known)) as lines,
        telling_only("stream") as tell_rows,
        _label_writer(model, lines) as writer,
    ):
        if known.n_rows:
            writer.write(model, waiting)
        for number, rows in enumerate(source, start=1):
            model.partial_fit(rows)
            tell_rows(source.n_rows)
            writer.wait()
            waiting.append(rows)
            if model.stream_ is None:
                continue
            if snapshot is not None and lines.n_labels == 0:
                save_snapshot(model, snapshot, source, lines)
                _log_state(model)
            writer.write(model, waiting)
            if snapshot is not None and number % every == 0:
                writer.wait()
                save_snapshot(model, snapshot, source, lines)
                _log_state(model)
        writer.wait()
        _check_rows(model, waiting)
        source.end()
        if snapshot is not None:
            save_snapshot(model, snapshot, source, lines)
    return model


@contextmanager
def told_to_resume(snapshot: Path | None) -> Iterator[None]:
    """Ctrl-C says how to continue from the snapshot, if there is one."""
    try:
        yield
    except KeyboardInterrupt:
        if snapshot is None or not snapshot.exists():
            raise
        raise KeyboardInterrupt(
            f"run the same command with --resume to continue from {snapshot}"
        ) from None


class _LabelWriter:
    """Writes the labels of waiting rows; in a thread, if there is one, while the next rows are
    read and absorbed."""

    def __init__(self, lines: LabelFile | StandardOutput, pool: ThreadPoolExecutor | None) -> None:
        self.lines, self.pool = lines, pool
        self.pending: Future[None] | None = None

    def write(self, model: Any, waiting: list[FloatArray]) -> None:
        """The labels of these rows by the model as it is now; the list is emptied."""
        batches = list(waiting)
        waiting.clear()
        if self.pool is None:
            self._write(model, batches)
            return
        self.wait()
        self.pending = self.pool.submit(copy_context().run, self._write, copy(model), batches)

    def wait(self) -> None:
        """Until the labels are written; an error of the thread is raised here."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.result()

    def _write(self, model: Any, batches: list[FloatArray]) -> None:
        for batch in batches:
            self.lines.write(model.predict(batch))


@contextmanager
def _label_writer(model: Any, lines: LabelFile | StandardOutput) -> Iterator[_LabelWriter]:
    if n_threads(model.n_jobs) == 1:
        yield _LabelWriter(lines, None)
        return
    with ThreadPoolExecutor(1) as pool:
        yield _LabelWriter(lines, pool)


def _log_state(model: Any) -> None:
    """One line per snapshot: rows so far, and how well the model explains the latest of them."""
    counts = ", ".join(f"{value:.4g} {name}" for name, value in model.report_.stream.items())
    log.info("%s rows seen: %s", f"{model.n_seen_:,}", counts)


def _check_rows(model: Any, waiting: list[FloatArray]) -> None:
    """Raise if the input ended before there was a model."""
    if not hasattr(model, "n_features_in_"):
        raise ValueError("the input holds no rows; there must be at least as many as clusters")
    if waiting:
        raise ValueError(
            f"the input has {model.n_seen_} rows, fewer than n_clusters={model.n_clusters}; ask "
            "for fewer clusters"
        )


def batches_of(files: Sequence[Path], input_format: str) -> Iterator[FloatArray]:
    """Rows in batches, file after file; of standard input if no file is named."""
    named = [file for file in files if str(file) != "-"]
    if not named:
        stream: Any = sys.stdin.buffer
        _check_kind(stream.peek(LONGEST_SIGN), input_format)
        yield from READERS[input_format](stream)
        return
    if len(named) < len(files):
        raise ValueError("standard input (-) cannot be mixed with files; give one or the other")
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
        raise ValueError(f"not an Arrow IPC stream, or cut short ({error})") from error


def _csv_batches(stream: IO[bytes]) -> Iterator[FloatArray]:
    """Lines of numbers separated by commas; a first line of column names is skipped."""
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
            raise ValueError(f"the input is not an array in .npy format ({error})") from error
        if rows.ndim != 2:
            raise ValueError(f"the input has an array of shape {rows.shape}; it must be 2-d")
        for start in range(0, len(rows), BATCH_ROWS):
            yield _numbers(rows[start : start + BATCH_ROWS])


class _Pipe:
    """Only `read`: numpy asks real files for their position, which a pipe does not have."""

    def __init__(self, stream: Any) -> None:
        self.read = stream.read


READERS = {"arrow": _arrow_batches, "csv": _csv_batches, "npy": _npy_batches}


def _check_kind(head: bytes, input_format: str) -> None:
    """Raise if the input begins like a format other than the requested one."""
    for sign, (name, what, advice) in SIGNS.items():
        if head.startswith(sign) and name != input_format:
            raise ValueError(f"standard input is {what}, but --format is {input_format}; {advice}")


def _text(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"line {number + 1} of standard input is not UTF-8 text ({error.reason} at byte "
            f"{error.start + 1}); if it is not CSV, set --format to one of {', '.join(READERS)}"
        ) from error


def _parsed(lines: list[str], number: int) -> FloatArray:
    try:
        return np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError as error:
        where = f" before line {number + 2}" if number >= 0 else ""
        raise ValueError(f"lines{where} are not numbers separated by commas: {error}") from error


def _is_title(text: str) -> bool:
    try:
        [float(cell) for cell in text.split(",")]
    except ValueError:
        return True
    return False


def _numbers(rows: Any) -> FloatArray:
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"the input holds values of type {rows.dtype}; they must be numbers")
    return np.ascontiguousarray(rows)
