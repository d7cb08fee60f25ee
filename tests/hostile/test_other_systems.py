"""What macOS and Windows lack or do otherwise, simulated here; neither was ever run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mercer import KernelKMeans, load
from mercer import cli as command
from mercer._run import atomic, budget, recorder
from mercer.datasets import rings
from mercer.rows import as_source
from mercer.scale import parcels
from waiting import HANG

X = rings(300, random_state=0)[0]


class WindowsLike:
    """The module os, but for its name and for a file that a reader holds open for a while."""

    name = "nt"

    def __init__(self, n_refusals: int = 0) -> None:
        self.n_refusals = n_refusals

    def __getattr__(self, name: str) -> Any:
        if name in ("geteuid", "fork", "memfd_create", "sched_getaffinity", "sysconf"):
            raise AttributeError(name)
        return getattr(os, name)

    def replace(self, source: Any, target: Any) -> None:
        if self.n_refusals > 0:
            self.n_refusals -= 1
            raise PermissionError(13, "the process cannot access the file", str(target))
        os.replace(source, target)


def test_a_file_that_is_open_is_replaced_once_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "os", WindowsLike(n_refusals=3))
    monkeypatch.setattr(atomic, "WAITS", (0.0,) * 5)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    target = tmp_path / "model.mercer"
    target.write_text("old")
    with atomic.replacing(target) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model.mercer"]


def test_a_file_that_stays_open_is_an_error_and_keeps_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "os", WindowsLike(n_refusals=100))
    monkeypatch.setattr(atomic, "WAITS", (0.0,) * 5)
    target = tmp_path / "model.mercer"
    target.write_text("old")
    with pytest.raises(OSError), atomic.replacing(target) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model.mercer"]


def test_models_are_saved_and_loaded_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "os", WindowsLike())
    monkeypatch.setitem(sys.modules, "fcntl", None)
    model = KernelKMeans(3, random_state=0).fit(X)
    model.save(tmp_path / "m.mercer")
    assert np.array_equal(load(tmp_path / "m.mercer").predict(X), model.labels_)


def test_a_system_without_resource_reports_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)
    assert recorder.peak_memory() == 0
    assert KernelKMeans(3, random_state=0).fit(X).report_.stages


def test_memory_is_guessed_where_the_system_does_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(budget, "os", WindowsLike())
    monkeypatch.setattr(budget, "Path", lambda name: tmp_path / "nothing")
    assert budget._available_on_machine() > 10**9
    assert budget._available_in_container() == []


def test_signals_that_a_system_lacks_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    few = SimpleNamespace(
        SIGTERM=signal.SIGTERM,
        SIG_DFL=signal.SIG_DFL,
        getsignal=lambda number: signal.SIG_IGN,
        signal=signal.signal,
    )
    monkeypatch.setattr(command, "signal", few)
    command._handle_signals()


def test_shared_arrays_lie_in_a_file_that_others_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(parcels, "os", WindowsLike())
    file, name = parcels._shared_file("values")
    file.write(b"abc")
    file.flush()
    assert Path(name).read_bytes() == b"abc"
    file.close()
    del file
    assert not Path(name).exists()


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    lines = ["a,b", *(f"{x!r},{y!r}" for x, y in X.tolist())]
    for name, end in (("unix.csv", "\n"), ("windows.csv", "\r\n")):
        (tmp_path / name).write_bytes((end.join(lines) + end).encode())
    unix, windows = (as_source(tmp_path / f"{n}.csv") for n in ("unix", "windows"))
    assert np.array_equal(unix.read(0, len(X)), windows.read(0, len(X)))
    assert windows.feature_names == ("a", "b")


def test_suffixes_may_be_in_capitals(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "rows.npy").rename(tmp_path / "ROWS.NPY")
    assert np.array_equal(as_source(tmp_path / "ROWS.NPY").read(0, len(X)), X)


WITHOUT_FORK = """
import multiprocessing, os, sys
multiprocessing.set_start_method("spawn")
del os.fork
import numpy as np
import mercer
from mercer.datasets import rings

if __name__ == "__main__":
    X = rings(20_000, random_state=0)[0]
    one = mercer.SpectralClustering(3, random_state=0).fit(X)
    two = mercer.SpectralClustering(3, random_state=0, n_jobs=2).fit(X)
    assert np.array_equal(one.labels_, two.labels_)
    with mercer.on(mercer.Processes(2)):
        assert np.array_equal(one.predict(X), one.labels_)
"""


def test_nothing_forks(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_FORK)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert done.returncode == 0, done.stderr
