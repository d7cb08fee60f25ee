"""What is told while work goes on: to a logger, and to a notebook."""

from __future__ import annotations

import io
import logging
import sys
from types import SimpleNamespace

import pytest

from mercer import KernelKMeans
from mercer._run import progress
from mercer.datasets import rings

X = rings(300, random_state=0)[0]


def test_stages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="mercer"):
        model = KernelKMeans(3, random_state=0).fit(X)
    told = [record.getMessage() for record in caplog.records]
    for stage in model.report_.stages:
        assert any(line.startswith(f"{stage.name}: ") for line in told), stage.name
    assert {record.name.partition(".")[0] for record in caplog.records} == {"mercer"}


def test_logging_is_silent_unless_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    KernelKMeans(3, random_state=0).fit(X)
    assert capfd.readouterr() == ("", "")
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("mercer").handlers)


class ZMQInteractiveShell:
    """As IPython calls the shell of a notebook."""


def test_a_notebook_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    tqdm = pytest.importorskip("tqdm")
    shell = SimpleNamespace(get_ipython=lambda: ZMQInteractiveShell())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    bars = []

    class Bar(tqdm.tqdm):  # type: ignore[misc, name-defined]
        def __init__(self, **options: object) -> None:
            bars.append(options["desc"])
            super().__init__(**options, disable=False, file=io.StringIO())

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    assert isinstance(progress.shown(1), progress.NotebookBar)
    KernelKMeans(3, random_state=0, verbose=1).fit(X)
    assert {"factor", "centres"} <= set(bars)


def test_elsewhere_lines_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.shown(0) is None
    assert isinstance(progress.shown(1), progress.LineWriter)
    shell = SimpleNamespace(get_ipython=lambda: ZMQInteractiveShell())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert isinstance(progress.shown(1), progress.LineWriter)
