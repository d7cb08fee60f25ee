"""The face of the command line: help that teaches, completion, exit codes, pace, plain errors."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

from mercer.cli.app import app
from mercer.cli.examples import EXAMPLES
from mercer.cli.progress_bar import Bar, LogLines, rich_progress
from mercer.cli.verbs import EXIT_CODES
from mercer.datasets import rings
from waiting import HANG

VERBS = sorted(get_command(app).commands)  # type: ignore[attr-defined]


def run(*arguments: object, **environment: str) -> Any:
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, words, env=environment, prog_name="mercer")


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mercer", *arguments]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=HANG
    )


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("skimage")
    pytest.importorskip("matplotlib")
    from mercer.image import landscape, write_image

    monkeypatch.chdir(tmp_path)
    X = rings(1500, random_state=0)[0]
    np.save("rows.npy", X)
    for name in ("rows", "today"):
        pandas.DataFrame(X, columns=["x", "y"]).to_parquet(f"{name}.parquet")
    for name in ("photo", "other"):
        write_image(Path(f"{name}.png"), landscape(60, 80, random_state=0)[0])
    assert (
        run("cluster", "rows.parquet", "-k", 3, "--seed", 0, "--model", "m.mercer").exit_code == 0
    )
    return tmp_path


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_is_a_sentence_and_two_examples(verb: str) -> None:
    assert len(EXAMPLES[verb]) == 2
    told = run(verb, "--help").stdout
    for what, command in EXAMPLES[verb].items():
        assert f"  {what}:\n    {command}\n" in told
        assert command.startswith(f"mercer {verb}")
    assert "<bool>" not in told
    summary = get_command(app).commands[verb].help.split("\n\n")[0]  # type: ignore[attr-defined]
    assert summary.endswith(".")
    assert summary.count(". ") == 0


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_run(verb: str, workplace: Path) -> None:
    for command in EXAMPLES[verb].values():
        words = [
            *shlex.split(command)[1:],
            *(["--rows", "500"] if command == "mercer demo" else []),
        ]
        result = run(*words)
        assert result.exit_code == 0, f"{command}\n{result.output}"
        for name in re.findall(r"--(?:out|model|plot|labels) (\S+)", command):
            assert (workplace / name).exists(), name
        if "--json" in words:
            told = json.loads(result.stdout)
            assert told[{"plan": "passes", "explain": "profiles"}.get(verb, "written")]


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_share_their_options(verb: str) -> None:
    names = {name for p in get_command(app).commands[verb].params for name in p.opts}  # type: ignore[attr-defined]
    assert {"--json", "--debug"} <= names
    if verb not in ("demo", "plan", "explain"):  # they only tell
        assert "--quiet" in names


def test_help_fits_a_narrow_terminal() -> None:
    told = process("cluster", "--help", COLUMNS="56").stdout
    options = told.partition(" Examples")[0]
    assert max(map(len, options.splitlines())) <= 56
    assert "─" not in told
    wide = process("cluster", "--help", COLUMNS="100").stdout
    assert max(map(len, wide.partition(" Examples")[0].splitlines())) <= 100


def test_the_start_page_tells_the_exit_codes() -> None:
    told = run("--help").stdout
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"^ *{code}  {re.escape(meaning)}$", told, re.MULTILINE)
    assert "mercer demo" in told


# Completion --------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """What bash is offered at the end of a line."""
    position = str(len(line.split(" ")) - 1)
    answer = run(_MERCER_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=position)
    return answer.stdout.split()


def test_completion_knows_verbs_options_and_values() -> None:
    assert completed("mercer pre") == ["predict"]
    assert "--max-memory" in completed("mercer cluster rows.npy --max")
    assert completed("mercer cluster rows.npy --kernel la") == ["laplacian"]
    assert set(completed("mercer cluster rows.npy --method k")) == {"kernel-kmeans", "ksc"}
    assert completed("mercer tune rows.npy --criterion b") == ["bas", "blf"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_shown(shell: str) -> None:
    told = run(_MERCER_COMPLETE=f"source_{shell}").stdout
    assert "_MERCER_COMPLETE" in told
    assert f"complete_{shell}" in told


# Output ------------------------------------------------------------------------------------------


def test_short_work_is_silent_where_there_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mercer.cli.progress_bar.PATIENCE", 3600.0)  # a busy machine is no excuse
    np.save(tmp_path / "rows.npy", rings(2000, random_state=0)[0])  # 300 are unreliable, and said
    answer = run("cluster", tmp_path / "rows.npy", "-k", 3, "--seed", 0)
    assert answer.exit_code == 0
    assert answer.stderr == ""


def test_lines_of_long_work_have_rate_and_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 3.0, 5.0, 7.5, 9.0])
    monkeypatch.setattr("mercer.cli.progress_bar.time.monotonic", lambda: next(clock))
    lines = LogLines(interval=4.0, patience=2.0)
    for done in (0, 200, 400, 650, 800):
        lines("labels", done, 1000)
    assert capsys.readouterr().err.splitlines() == [
        "mercer [    3.0 s] labels: 200 of 1,000 rows, 100 rows/s, 0:00:08 left",
        "mercer [    7.5 s] labels: 650 of 1,000 rows, 100 rows/s, 0:00:04 left",
    ]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_pace_is_shown_at_any_width(width: int) -> None:
    console = Console(record=True, force_terminal=True, width=width, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file, rich_progress(console) as shown:
        bar = Bar(shown)
        bar("labels", 0, 1000)
        bar("labels", 500, 1000)
        shown.refresh()
        told = console.export_text()
    assert re.search(r"50 %  [\d,.]+ rows/s", told)
    assert ("━" in told) == (width >= 70)


# Errors ------------------------------------------------------------------------------------------


def test_an_unexpected_error_is_a_paragraph_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("mercer.cli.work.cluster_file", broken)
    monkeypatch.chdir(tmp_path)
    Path("rows.npy").touch()
    result = run("cluster", "rows.npy")
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: unexpected ZeroDivisionError")
    assert "ZeroDivisionError: division by zero" in line
    assert "--debug" in line
    assert isinstance(run("cluster", "rows.npy", "--debug").exception, ZeroDivisionError)


def test_exit_codes() -> None:
    wrong = process("clutser")  # the rest is in test_cli.py
    assert wrong.returncode == 2
    assert "cluster" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m mercer cluster --help | head -n 1"
    answer = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=HANG, check=True
    )
    assert answer.stderr == ""
