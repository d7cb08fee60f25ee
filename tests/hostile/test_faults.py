"""Full disks, closed pipes, signals, two writers, odd locales: a clear end and no broken file."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kills import Server, serving
from mercer import KernelKMeans
from mercer._run.atomic import replacing
from mercer.datasets import blobs, rings
from mercer.io import load, read_labels, save, write_labels
from waiting import HANG, wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

MAIN = "from mercer.cli import main; main()"
# The child tells that its file is written, and waits to be stopped before it gives it its name.
SLOW_WRITES = """
import sys, time
import mercer._run.atomic as atomic
def wait(path):
    sys.stderr.write("written\\n"); sys.stderr.flush()
    time.sleep(3600)
atomic._sync_file = wait
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("warm")
    np.save(folder / "rows.npy", rings(600, random_state=0)[0])
    with serving() as server:
        server.ask("warm", [*map(str, cluster(folder / "rows.npy", "--out", folder / "a.npy"))])
        yield server


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.npy"
    np.save(path, rings(600, random_state=0)[0])
    return path


def ended(
    server: Server, arguments: list[object], folder: Path, code: str = "", out: Path | None = None
) -> tuple[int, str]:
    """The exit code of a command and what it told on standard error, but for its progress."""
    err = folder / "err.txt"
    status = server.wait(server.start(arguments, code=code, err=err, out=out or os.devnull))
    return status, told(err)


def told(err: Path) -> str:
    lines = err.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("mercer [", "warning: ")))


def cluster(rows: Path, *more: object) -> list[object]:
    return ["cluster", rows, "-k", 3, "--method", "kernel-kmeans", "--rank", 20, *more]


def fitted(X: Any, n_clusters: int = 3, rank: int = 20) -> KernelKMeans:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the clusters are worth is not the question here
        return KernelKMeans(n_clusters, rank=rank, random_state=0).fit(X)


def hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


# Signals


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_removes_what_is_half_written(
    name: str, server: Server, rows: Path, tmp_path: Path
) -> None:
    number = signal.Signals[name]
    labels, err = tmp_path / "labels.npy", tmp_path / "err.txt"
    labels.write_bytes(b"old")
    handler = "default_int_handler" if name == "SIGINT" else "SIG_DFL"  # it may be ignored here
    reset = f"import signal; signal.signal({int(number)}, signal.{handler})\n"
    arguments = cluster(rows, "--out", labels, "--quiet")
    child = server.start(arguments, code=reset + SLOW_WRITES, err=err)
    await_words(err, "written")
    assert hidden(tmp_path)
    os.kill(child, number)
    assert server.wait(child) == 128 + number
    assert told(err).endswith("; no output was left half-written\n")
    assert told(err).count("\n") == 2
    assert hidden(tmp_path) == []
    assert labels.read_bytes() == b"old"


def await_words(path: Path, words: str) -> None:
    assert wait_until(lambda: path.exists() and words in path.read_text())


@posix
def test_an_ignored_signal_stays_ignored(server: Server, rows: Path, tmp_path: Path) -> None:
    """As under nohup."""
    code = """
import os, signal
import mercer._run.atomic as atomic
signal.signal(signal.SIGHUP, signal.SIG_IGN)
atomic._sync_file = lambda path: os.kill(os.getpid(), signal.SIGHUP)
"""
    status, words = ended(server, cluster(rows, "--out", tmp_path / "a.npy"), tmp_path, code)
    assert (status, words) == (0, "")
    assert len(read_labels(tmp_path / "a.npy")) == 600


# Files that killed writers left


def stale_file(target: Path, seconds: float) -> Path:
    path = target.with_name(f".{target.name[:40]}.{'a' * 16}.tmp")
    path.write_bytes(b"half")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


@posix
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    target = tmp_path / ("[a]*" * 20)
    stale, other = stale_file(target, 3600), stale_file(tmp_path / "other", 3600)
    with replacing(target) as temporary:
        temporary.write_bytes(b"whole")
    assert target.read_bytes() == b"whole"
    assert not stale.exists()
    assert other.exists()


@posix
def test_files_in_use_and_young_ones_are_not_removed(tmp_path: Path) -> None:
    import fcntl

    target = tmp_path / "a.model"
    young = stale_file(target, 0)
    with replacing(target):
        assert young.exists()
    os.utime(young, (0, 0))
    with young.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with replacing(target):
            assert young.exists()
    with replacing(target):
        assert not young.exists()


# Two writers


def test_of_two_writers_one_stays_whole(tmp_path: Path) -> None:
    X = blobs(600, n_clusters=3, random_state=0)[0]
    models = [fitted(X, n_clusters=k) for k in (2, 3)]
    expected = [model.predict(X).tolist() for model in models]
    failures: list[BaseException] = []

    def write(model: Any) -> None:
        try:
            for _ in range(30):
                save(model, tmp_path / "a.model")
        except BaseException as error:
            failures.append(error)

    save(models[0], tmp_path / "a.model")
    threads = [threading.Thread(target=write, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    seen = 0
    while any(thread.is_alive() for thread in threads):
        assert load(tmp_path / "a.model").predict(X).tolist() in expected
        seen += 1
    assert seen > 0
    assert failures == []
    assert os.listdir(tmp_path) == ["a.model"]


@pytest.mark.parametrize("can_exchange", [True, False], ids=["exchanged", "renamed"])
def test_of_two_writers_of_a_folder_one_stays_whole(
    can_exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zarr")
    if not can_exchange:
        monkeypatch.setattr("mercer._run.atomic.exchange", lambda *_: False)
    failures: list[BaseException] = []

    def write(label: int) -> None:
        try:
            for _ in range(10):
                write_labels(tmp_path / "a.zarr", [(0, np.full(9, label))], 9)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(label,)) for label in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["a.zarr"]
    assert len(set(read_labels(tmp_path / "a.zarr").tolist())) == 1


# Full disks and read-only folders


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write beyond the limit is an OSError
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
"""


@posix
@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_a_full_disk_leaves_the_old_labels(
    suffix: str, server: Server, rows: Path, tmp_path: Path
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    labels = tmp_path / f"labels{suffix}"
    labels.write_bytes(b"old")
    np.save(rows, rings(30_000, random_state=0)[0])
    status, words = ended(server, cluster(rows, "--out", labels), tmp_path, LIMITED)
    assert status == 1
    assert words.startswith("error: ")
    assert words.count("\n") == 1
    assert labels.name in words
    assert hidden(tmp_path) == []
    assert labels.read_bytes() == b"old"


@posix
def test_a_full_disk_leaves_the_old_model(server: Server, rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "a.model"
    model.write_bytes(b"old")
    status, words = ended(server, cluster(rows, "--model", model), tmp_path, LIMITED)
    assert (status, words) == (1, f"error: {model}: {os.strerror(errno.EFBIG)}\n")
    assert hidden(tmp_path) == []
    assert model.read_bytes() == b"old"


@posix
@pytest.mark.parametrize("full", ["labels.csv", "a.model"])
def test_a_full_disk_of_a_stream_is_named(
    full: str, server: Server, rows: Path, tmp_path: Path
) -> None:
    np.save(rows, rings(3000, random_state=0)[0])
    model = ["--model", tmp_path / full] if full == "a.model" else []
    arguments = ["stream", rows, "-k", 3, "--out", tmp_path / "labels.csv", *model]
    status, words = ended(server, arguments, tmp_path, LIMITED)
    assert (status, words) == (1, f"error: {tmp_path / full}: {os.strerror(errno.EFBIG)}\n")


def small_disk(folder: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root mounts disks")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")


def test_a_disk_without_space_is_named(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    model = fitted(rings(600, random_state=0)[0], rank=60)
    small_disk(disk)
    try:
        (disk / "a.model").write_bytes(b"old")
        with pytest.raises(OSError, match=r"a\.model") as caught:
            save(model, disk / "a.model")
        assert caught.value.errno == errno.ENOSPC
        assert os.listdir(disk) == ["a.model"]
        assert (disk / "a.model").read_bytes() == b"old"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_disk_is_refused_before_the_work(tmp_path: Path) -> None:
    """Root may write to any folder, but to no disk that is mounted read-only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    small_disk(disk)
    try:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(PermissionError, match="not writable"), replacing(disk / "a.model"):
            pytest.fail("work was begun")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# Standard output


@posix
@pytest.mark.parametrize("options", [["--json"], []], ids=str)
def test_a_closed_pipe_is_no_traceback(
    options: list[str], server: Server, rows: Path, tmp_path: Path
) -> None:
    code = "import os; ends = os.pipe(); os.dup2(ends[1], 1); os.close(ends[0])"
    labels = tmp_path / "labels.npy"
    status, words = ended(server, cluster(rows, "--out", labels, *options), tmp_path, code)
    assert words == ""
    assert status > 0
    assert len(read_labels(labels)) == 600


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param(
            {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow, id="POSIX"
        ),
    ],
    ids=str,
)
def test_locales_without_unicode(locale: dict[str, str], tmp_path: Path) -> None:
    """Letters that the terminal lacks appear as codes; files are the same."""
    pytest.importorskip("pyarrow")
    X = rings(300, random_state=0)[0]
    path = tmp_path / "größe→.csv"
    path.write_bytes("größe,b→\n".encode() + b"".join(b"%f,%f\n" % tuple(row) for row in X))
    labels = tmp_path / "märkte→.parquet"
    status, out, err = fresh(*cluster(path, "--out", labels), **locale)
    assert (status, err) == (0, b"")
    assert b"KernelKMeans" in out
    assert b"wrote " in out
    assert len(read_labels(labels)) == 300
    status, _, err = fresh("cluster", path, "--columns", "β", **locale)
    assert status == 1
    assert err.count(b"\n") == 1
    assert b"has no column" in err


def fresh(*arguments: object, **environment: str) -> tuple[int, bytes, bytes]:
    """The command in a new interpreter: exit code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=HANG,
    )
    lines = done.stderr.splitlines(keepends=True)
    words = b"".join(line for line in lines if not line.startswith((b"mercer [", b"warning: ")))
    return done.returncode, done.stdout, words


@posix
@pytest.mark.skipif(sys.platform == "darwin", reason="file names are text there")
def test_file_names_that_are_no_text(server: Server, rows: Path, tmp_path: Path) -> None:
    labels = Path(os.fsdecode(os.fsencode(tmp_path) + b"/labels-\xff.npy"))
    out = tmp_path / "out.txt"
    status, words = ended(server, cluster(rows, "--out", labels), tmp_path, out=out)
    assert (status, words) == (0, "")
    assert "labels-\\udcff.npy" in out.read_text()
    assert len(read_labels(labels)) == 600
    pytest.importorskip("pyarrow")
    table = labels.with_suffix(".parquet")
    status, words = ended(server, cluster(rows, "--out", table), tmp_path)
    assert status == 1
    assert "not UTF-8" in words
