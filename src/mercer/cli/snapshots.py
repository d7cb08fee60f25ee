"""Snapshots that a stream resumes from.

A snapshot holds the model and a record: which rows it has read and which labels it has written,
each by number and SHA-256. Only an input and a label file that match the record are continued.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mercer._run.frozen import frozen
from mercer._run.types import FloatArray, IdArray

TITLE = b"label\n"
BLOCK = 2**20  # bytes of labels hashed at once
FREE = ("n_jobs", "max_memory", "verbose")  # parameters that do not change labels
RESTART = "run without --resume to start from the first row"


@frozen
class Record:
    """The rows that a run has read and the labels that it has written."""

    n_rows: int = 0
    rows: str = ""  # SHA-256 of the rows, batch by batch
    ends: tuple[int, ...] = ()  # where the input ended in earlier runs; it may have grown since
    n_labels: int = 0  # 0 in the first snapshot, which comes before the labels
    n_bytes: int = 0  # of the file of labels; 0 for standard output
    labels: str = ""  # SHA-256 of these bytes

    @classmethod
    def of(cls, tree: Any) -> Record | None:
        """The record that a snapshot holds; None if it is missing or not valid."""
        try:
            record = cls(**{**tree, "ends": tuple(tree["ends"])})
            numbers = (record.n_rows, *record.ends, record.n_labels, record.n_bytes)
            is_valid = all(type(number) is int and number >= 0 for number in numbers)
        except (TypeError, KeyError):
            return None
        return record if is_valid else None


class Batches:
    """Batches of rows, counted and hashed as they are read."""

    def __init__(self, batches: Iterator[FloatArray], ends: tuple[int, ...] = ()) -> None:
        self.n_rows, self.ends = 0, ends
        self._digest = hashlib.sha256()
        self._batches = _cut(batches, ends)

    def __iter__(self) -> Iterator[FloatArray]:
        for rows in self._batches:
            self.n_rows += len(rows)
            self._digest.update(f"{rows.shape} {rows.dtype.str}".encode())
            self._digest.update(np.ascontiguousarray(rows).data)
            yield rows

    def skip(self, known: Record) -> list[FloatArray]:
        """Skip the rows of a record, which must be the same; return those without labels.

        Labels depend on how rows are cut into batches, so that must be the same too.
        """
        unlabelled = []
        batches = iter(self)
        while self.n_rows < known.n_rows:
            rows = next(batches, None)
            if rows is None:
                raise ValueError(
                    f"the input has {self.n_rows} rows, but the model has seen {known.n_rows}: "
                    f"--resume needs the same input again, from its beginning; or {RESTART}"
                )
            if self.n_rows > known.n_labels:
                unlabelled.append(rows)
        if known.n_rows and (self.n_rows, self.rows()) != (known.n_rows, known.rows):
            raise ValueError(
                f"the first {known.n_rows} rows of the input are not those that the model has "
                "seen, or come in other batches: --resume needs the same input again, from its "
                f"beginning; or {RESTART}"
            )
        return unlabelled

    def rows(self) -> str:
        """The SHA-256 of the rows so far."""
        return self._digest.hexdigest()

    def end(self) -> None:
        """Record that the input ended here."""
        self.ends = tuple(sorted({*self.ends, self.n_rows}))


class StandardOutput:
    """Labels on standard output, one per line."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels, self.n_bytes = n_labels, 0

    def write(self, labels: IdArray) -> None:
        from mercer._run.atomic import naming

        with naming("standard output"):
            sys.stdout.writelines(f"{label}\n" for label in labels.tolist())
            sys.stdout.flush()
        self.n_labels += len(labels)

    def labels(self) -> str:
        return ""

    def close(self) -> None:
        """Nothing is open."""


class LabelFile:
    """Labels in a file, one per line; they are on disk when `write` returns.

    The file is created or changed by the first `write`, not before.
    """

    def __init__(self, path: Path, known: Record) -> None:
        from mercer._run.atomic import check_writable

        if path.suffix.lower() != ".csv":
            raise ValueError(
                f"{path}: the labels of a stream are written line by line; name a .csv file"
            )
        check_writable(path)
        self.path, self.n_labels, self.n_bytes = path, known.n_labels, known.n_bytes
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        if self.n_labels:
            self._check(known)
            self._file = self._truncate()

    def write(self, labels: IdArray) -> None:
        if self._file is None:
            self._file = self._create()
        self._append("".join(f"{label}\n" for label in labels.tolist()).encode())
        self.n_labels += len(labels)

    def labels(self) -> str:
        """The SHA-256 of the file so far."""
        return self._digest.hexdigest()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _create(self) -> BinaryIO:
        """A file without labels."""
        from mercer._run.atomic import naming, sync_folder

        with naming(self.path):
            self._file = self.path.open("wb", buffering=0)
        self._append(TITLE)
        sync_folder(self.path.resolve().parent)
        return self._file

    def _append(self, data: bytes) -> None:
        from mercer._run.atomic import naming

        assert self._file is not None
        with naming(self.path):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        self._digest.update(data)
        self.n_bytes += len(data)

    def _check(self, known: Record) -> None:
        """Raise unless the file begins with the labels of the record."""
        wanted = f"the model has seen {known.n_rows} rows: --resume needs the labels"
        if not self.n_bytes:
            raise ValueError(
                f"the first {known.n_labels} labels of this stream went to standard output, not to "
                f"{self.path}; leave out --out, or {RESTART}"
            )
        if not self.path.exists():
            raise ValueError(f"{self.path} is not there, but {wanted} of that run; or {RESTART}")
        n_lines, left = 0, self.n_bytes
        with self.path.open("rb") as file:
            while data := file.read(min(left, BLOCK)):
                self._digest.update(data)
                n_lines, left = n_lines + data.count(b"\n"), left - len(data)
        if left:
            raise ValueError(
                f"{self.path} has {max(n_lines - 1, 0)} labels, but {wanted} of that run; or "
                f"{RESTART}"
            )
        if self.labels() != known.labels:
            raise ValueError(
                f"the first {known.n_labels} labels in {self.path} are not those that were written "
                f"with the model: name the file of that run, or {RESTART}"
            )

    def _truncate(self) -> BinaryIO:
        """The file without the labels that are not in the record."""
        file = self.path.open("rb+", buffering=0)
        file.truncate(self.n_bytes)
        file.seek(self.n_bytes)
        return file


def label_lines(path: Path | None, known: Record) -> LabelFile | StandardOutput:
    """Where the labels after those of the record are written."""
    return StandardOutput(known.n_labels) if path is None else LabelFile(path, known)


def save_snapshot(
    model: Any, path: Path, batches: Batches, lines: LabelFile | StandardOutput
) -> None:
    """Write the model and the record; the labels are on disk already."""
    from mercer.io.model import write_model

    record = Record(
        batches.n_rows, batches.rows(), batches.ends, lines.n_labels, lines.n_bytes, lines.labels()
    )
    write_model(model, path, {"stream": asdict(record)})


def load_snapshot(estimator: Any, path: Path | None) -> tuple[Any, Record]:
    """The model of a snapshot and its record; the estimator itself if there is no snapshot yet."""
    from mercer.io.model import read_model

    if path is None:
        raise ValueError("--resume needs --model FILE, the snapshot to resume from")
    if not path.exists():
        return estimator, Record()
    model, notes = read_model(path)
    if type(model) is not type(estimator):
        raise ValueError(f"{path} holds a {type(model).__name__}, not a streaming model")
    record = Record.of(notes.get("stream"))
    if record is None or record.n_rows != model.n_seen_:
        raise ValueError(
            f"{path} is not a snapshot of `mercer stream`, or was written by an earlier version: "
            f"it does not record which rows and labels it has seen; {RESTART}"
        )
    asked, had = estimator.get_params(), model.get_params()
    other = [n for n in asked if n not in FREE and repr(asked[n]) != repr(had[n])]
    if other:
        raise ValueError(
            f"{path} was made with other parameters: "
            + ", ".join(f"{name} {had[name]!r}, not {asked[name]!r}" for name in other)
            + f"; give the same ones, or {RESTART}"
        )
    return model.set_params(**{name: asked[name] for name in FREE}), record


def _cut(batches: Iterator[FloatArray], ends: tuple[int, ...]) -> Iterator[FloatArray]:
    """The batches, cut where the input of earlier runs ended."""
    row = 0
    for rows in batches:
        yield from np.split(rows, [end - row for end in ends if row < end < row + len(rows)])
        row += len(rows)
