"""The command line: the same labels as the API, readable errors, nothing half-written."""

from __future__ import annotations

import inspect
import io
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import mercer
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering
from mercer.cli.app import app
from mercer.cli.progress_bar import Bar, LogLines, rich_progress
from mercer.datasets import ring_and_core, rings
from mercer.io import load, read_labels
from mercer.metrics import adjusted_rand
from waiting import HANG

RUN_MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
from mercer.cli import main, progress_bar
progress_bar.PATIENCE = 0.0  # stages are told at once
main()
"""


def run(*arguments: object) -> Any:
    """The command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def start(*arguments: object, code: str = RUN_MAIN) -> subprocess.Popen[str]:
    """The command in a process of its own, with its output in pipes."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_one_paragraph(result: Any, *words: str) -> None:
    """An expected error: exit code 1, nothing on stdout, one line that says these words."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.startswith("mercer [")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


def unboxed(text: str) -> str:
    """What typer says, without the colours and boxes it may put around."""
    without_colors = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", without_colors).split())


def assert_wrong_usage(result: Any, *words: str) -> None:
    """A wrong command line: exit code 2 and a message."""
    assert result.exit_code == 2, result.output
    said = unboxed(result.stderr)
    for word in words:
        assert word in said


@pytest.fixture
def rows(tmp_path: Path) -> tuple[Path, np.ndarray]:
    X, _ = ring_and_core(500, random_state=0)
    np.save(tmp_path / "data.npy", X)
    return tmp_path / "data.npy", X


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_cluster_writes_the_labels_of_the_api(rows: Any, tmp_path: Path, suffix: str) -> None:
    file, X = rows
    out = tmp_path / f"labels{suffix}"
    result = run("cluster", file, "-k", 2, "--seed", 1, "--out", out)
    assert result.exit_code == 0, result.output
    expected = SpectralClustering(2, random_state=1).fit(X).labels_
    np.testing.assert_array_equal(read_labels(out), expected)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize(
    ("flags", "estimator"),
    [
        ("-k 3", SpectralClustering(3)),
        ("-k auto", SpectralClustering("auto")),
        ("-k 3 --rank auto --ensemble 4", SpectralClustering(3, ensemble=4)),
        ("-k 3 --rank 200 --gamma 30", SpectralClustering(3, rank=200, gamma=30.0)),
        ("-k 3 --assign-labels cluster_qr", SpectralClustering(3, assign_labels="cluster_qr")),
        (
            "-k 3 --approximation nystrom --kernel laplacian --rank 50",
            SpectralClustering(3, approximation="nystrom", kernel="laplacian", rank=50),
        ),
        (
            "-k 3 --method kernel-kmeans --gamma scale",
            KernelKMeans(3, gamma="scale"),
        ),
    ],
    ids=str,
)
def test_every_method_writes_the_labels_of_the_api(
    flags: str, estimator: Any, tmp_path: Path
) -> None:
    X, _ = rings(1500, random_state=0)
    file, out, model = (tmp_path / name for name in ("data.npy", "labels.npy", "m.mercer"))
    np.save(file, X)
    words = ("--seed", 0, "--out", out, "--model", model)
    result = run("cluster", file, *flags.split(), *words)
    assert result.exit_code == 0, result.output
    expected = estimator.set_params(random_state=0).fit(X).labels_
    np.testing.assert_array_equal(read_labels(out), expected)
    assert run("predict", model, file, "--out", out).exit_code == 0
    np.testing.assert_array_equal(read_labels(out), expected)


def test_auto_finds_the_rings_and_says_why(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", rings(3000, random_state=0)[0])
    result = run("cluster", tmp_path / "data.npy", "-k", "auto", "--seed", 0)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    for words in ("cluster sizes 1,000, 1,000, 1,000", "eigenvalues 1.0000, "):
        assert words in told
    assert "note n_clusters=3 was chosen on a sample" in told
    assert re.search(r"most probable numbers: 3 \(0\.\d\d\), ", told)
    assert "error" not in told


def test_every_option_reaches_the_estimator(rows: Any, tmp_path: Path) -> None:
    file, _ = rows
    model = tmp_path / "m.mercer"
    options = {
        "n_clusters": 4, "kernel": "laplacian", "gamma": 0.5, "approximation": "cholesky",
        "rank": 20, "n_init": 2, "max_iter": 50, "tol": 0.001, "max_memory": "1GB", "n_jobs": 2,
        "random_state": 7,
    }  # fmt: skip
    flags = [word for name, value in options.items() for word in (_flag(name), value)]
    result = run("cluster", file, *flags, "--model", model, "--method", "kernel-kmeans")
    assert result.exit_code == 0, result.output
    parameters = load(model).get_params(deep=False)
    assert {name: parameters[name] for name in options} == options
    changed = {
        "kernel": "rbf", "approximation": "landmarks", "ensemble": 3, "assign_labels": "cluster_qr",
    }  # fmt: skip
    options |= changed
    flags = [word for name, value in options.items() for word in (_flag(name), value)]
    result = run("cluster", file, *flags, "--model", model, "--method", "spectral")
    assert result.exit_code == 0, result.output
    parameters = load(model).get_params(deep=False)
    assert {name: parameters[name] for name in options} == options


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


METHODS: dict[str, Any] = {
    "spectral": SpectralClustering,
    "kernel-kmeans": KernelKMeans,
    "ksc": KernelSpectralClustering,
}


def test_defaults_are_those_of_the_api(rows: Any, tmp_path: Path) -> None:
    """Those in force, and those the help tells."""
    file, _ = rows
    model = tmp_path / "m.mercer"
    for method, cls in METHODS.items():
        assert run("cluster", file, "--model", model, "--method", method).exit_code == 0
        assert load(model).get_params(deep=False) == cls().get_params(deep=False)
    assert run("cluster", file, "--model", model).exit_code == 0
    assert type(load(model)) is SpectralClustering
    told = unboxed(run("cluster", "--help").stdout)
    assert "(default spectral)" in told
    for name, parameter in inspect.signature(SpectralClustering).parameters.items():
        if parameter.default is not None and name != "verbose":
            default = re.escape(_told_default(name))
            assert re.search(rf"{_flag(name)} (?:(?! --).)*\(default {default}\)", told), name


def _told_default(name: str) -> str:
    """The default of the default method, and those of the others where they differ."""
    defaults = {
        method: inspect.signature(cls).parameters[name].default
        for method, cls in METHODS.items()
        if name in inspect.signature(cls).parameters
    }
    usual = defaults.pop("spectral")
    methods: dict[Any, list[str]] = {}
    for method, default in defaults.items():
        if default != usual:
            methods.setdefault(default, []).append(method)
    others = [f"; {', '.join(names)}: {default}" for default, names in methods.items()]
    return f"{usual}" + "".join(others)


def test_help_names_every_kernel_and_approximation() -> None:
    from mercer.factors import names as approximations
    from mercer.kernels import registry as kernels

    told = unboxed(run("cluster", "--help").stdout)
    for name in [*kernels.NAMES, *approximations.NAMES, "landmarks"]:
        assert name in told


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_columns_are_chosen_by_name(tmp_path: Path, suffix: str) -> None:
    import pandas as pd

    X, _ = ring_and_core(300, random_state=0)
    frame = pd.DataFrame({"id": np.arange(300), "x": X[:, 0], "y": X[:, 1]})
    file = tmp_path / f"data{suffix}"
    frame.to_parquet(file) if suffix == ".parquet" else frame.to_csv(file, index=False)
    out, model = tmp_path / "labels.npy", tmp_path / "m.mercer"
    run("cluster", file, "-k", 2, "--seed", 0, "--columns", "x,y", "--out", out, "--model", model)
    expected = SpectralClustering(2, random_state=0).fit(frame[["x", "y"]]).labels_
    np.testing.assert_array_equal(read_labels(out), expected)

    again = tmp_path / "again.npy"
    assert run("predict", model, file, "--columns", "x,y", "--out", again).exit_code == 0
    np.testing.assert_array_equal(read_labels(again), expected)
    assert run("predict", model, file, "--out", again).exit_code == 0
    np.testing.assert_array_equal(read_labels(again), expected)  # others are left out
    short = tmp_path / f"short{suffix}"
    few = frame.drop(columns="y")
    few.to_parquet(short) if suffix == ".parquet" else few.to_csv(short, index=False)
    assert_one_paragraph(run("predict", model, short, "--out", again), "y")


def test_predict_labels_new_rows_like_the_api(rows: Any, tmp_path: Path) -> None:
    file, X = rows
    model, new, out = tmp_path / "m.mercer", tmp_path / "new.npy", tmp_path / "labels.npy"
    X_new, y_new = ring_and_core(200, random_state=1)
    np.save(new, X_new)
    flags = ("-k", 2, "--method", "kernel-kmeans", "--gamma", "scale", "--seed", 0)
    run("cluster", file, *flags, "--model", model)
    result = run("predict", model, new, "--out", out, "--max-memory", "100MB", "--jobs", 2)
    assert result.exit_code == 0, result.output
    assert f"wrote {out}" in result.stdout
    expected = KernelKMeans(2, gamma="scale", random_state=0).fit(X).predict(X_new)
    np.testing.assert_array_equal(read_labels(out), expected)
    assert adjusted_rand(y_new, expected) == 1.0


def test_json_is_all_of_standard_output(rows: Any, tmp_path: Path) -> None:
    file, _ = rows
    out, model = tmp_path / "labels.csv", tmp_path / "m.mercer"
    result = run("cluster", file, "-k", 2, "--seed", 0, "--json", "--out", out, "--model", model)
    report = json.loads(result.stdout)
    assert report["n_rows"] == 500
    assert sum(report["cluster_weights"]) == 500
    assert report["written"] == {"labels": str(out), "model": str(model)}
    result = run("predict", model, file, "--out", out, "--json")
    assert json.loads(result.stdout) == {"n_rows": 500, "written": {"labels": str(out)}}


def test_the_report_tells_kernel_rank_sizes_and_stages(rows: Any) -> None:
    file, _ = rows
    kmeans = ("--method", "kernel-kmeans")
    told = run("cluster", file, "-k", 2, "--gamma", 0.25, "--rank", 20, *kmeans).stdout
    for word in ("RBF(gamma=0.25)", "rank 20", "of the trace", "cluster sizes", "factor", "labels"):
        assert word in told


def test_log_lines_tell_the_stages_where_there_is_no_terminal(
    rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = rows
    monkeypatch.setattr("mercer.cli.progress_bar.PATIENCE", 0.0)
    result = run("cluster", file, "-k", 2)
    assert re.search(r"^mercer \[ +\d+\.\d s\] factor$", result.stderr, re.MULTILINE)
    result = run("cluster", file, "-k", 2, "--quiet")
    assert result.output == ""


def test_log_lines_come_once_per_stage_and_interval(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LogLines(interval=3600, patience=0)
    for done in range(0, 3000, 1000):
        lines("full sweeps", done, 3000)
    lines("labels", 1000, 3000)
    said = [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == ["full sweeps", "labels: 1,000 of 3,000 rows"]


def test_the_bar_shows_pace_and_starts_anew_with_each_sweep() -> None:
    shown = rich_progress(Console(file=io.StringIO(), force_terminal=True, width=80))
    bar = Bar(shown)
    for done in (0, 500, 1000, 0, 250):
        bar("full sweeps", done, 1000)
    (task,) = shown.tasks
    assert (task.description, task.completed, task.total) == ("full sweeps", 250, 1000)
    bar("labels", 0, 0)
    (task,) = shown.tasks
    assert (task.description, task.completed, task.total) == ("labels", 0, None)


def test_the_bar_fits_a_narrow_terminal() -> None:
    screen = io.StringIO()
    with rich_progress(Console(file=screen, force_terminal=True, width=80)) as shown:
        Bar(shown)("full sweeps", 10_000_000, 25_000_000)
        shown.refresh()
        time.sleep(0.01)
        shown.refresh()
    assert re.search(r"40 %  [\d,]+ rows/s  0:00:\d\d left", screen.getvalue())


def test_warnings_are_lines_on_standard_error(rows: Any) -> None:
    file, _ = rows
    result = run("cluster", file, "-k", 1, "--quiet")
    assert result.exit_code == 0
    assert result.stderr == "warning: --n-clusters 1 puts every row into one cluster\n"


def test_version() -> None:
    assert run("--version").stdout == f"mercer {mercer.__version__}\n"


# Errors ------------------------------------------------------------------------------------------


def test_input_that_cannot_be_read(rows: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.doc").write_text("1,2\n")
    (tmp_path / "cut.npy").write_bytes(rows[0].read_bytes()[:-100])
    (tmp_path / "words.csv").write_text("a,b\n1,two\n")
    assert_one_paragraph(run("cluster", tmp_path / "none.npy"), "there is no file")
    assert_one_paragraph(run("cluster", tmp_path / "notes.doc"), "suffix", ".parquet")
    assert_one_paragraph(run("cluster", tmp_path), "is a directory")
    assert_one_paragraph(run("cluster", tmp_path / "cut.npy"), "truncated")
    assert_one_paragraph(run("cluster", tmp_path / "words.csv"), "'two'", "number is wanted")
    assert_one_paragraph(run("cluster", rows[0], "--columns", "a"), "no named columns")


def test_values_that_cannot_work(rows: Any) -> None:
    file, _ = rows
    assert_one_paragraph(run("cluster", file, "-k", 501), "n_samples=500", "--n-clusters 501")
    assert_one_paragraph(run("cluster", file, "--kernel", "cosine", "--gamma", 2), "has no gamma")
    assert_one_paragraph(run("cluster", file, "--max-memory", "20kB"), "--max-memory allows 20 kB")
    graph = ("--method", "kernel-kmeans", "--approximation", "landmarks")
    assert_one_paragraph(run("cluster", file, *graph), "makes a graph", "choose one of")


def test_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.npy").touch()  # what is missing is told first, and without a look at the options
    kmeans = ("--method", "kernel-kmeans")
    wrong: list[tuple[tuple[object, ...], tuple[str, ...]]] = [
        (("--gamma", "wide"), ("--gamma", "'wide'", "auto, median, scale")),
        (("--gamma", "-1"), ("--gamma", "a number above 0")),
        (("--gamma", "nan"), ("--gamma", "a number above 0")),
        (("--kernel", "gauss"), ("--kernel", "'gauss'", "rbf")),
        (("--approximation", "none"), ("--approximation", "auto, binning", "neighbors")),
        (("--assign-labels", "magic"), ("--assign-labels", "kmeans, cluster_qr")),
        (("--method", "magic"), ("--method", "spectral, kernel-kmeans")),
        ((*kmeans, "-k", "auto"), ("--n-clusters auto needs --method spectral",)),
        ((*kmeans, "--rank", "auto"), ("--rank auto needs --method spectral",)),
        ((*kmeans, "--ensemble", 5), ("has no --ensemble",)),
        ((*kmeans, "--assign-labels", "kmeans"), ("has no --assign-labels",)),
        (("--ensemble", 1), ("--ensemble",)),
        (("-k", "many"), ("-k", "'many'", "auto")),
        (("-k", "2.5"), ("-k", "'2.5'", "whole number")),
        (("--max-memory", "much"), ("--max-memory", "500MB")),
        (("--columns", "a,,b"), ("--columns", "empty name")),
        (("-k", 0), ("-k",)),
        (("-k", -3), ("-k",)),
        (("--rank", 0), ("--rank", "whole number")),
        (("--seed", -1), ("--seed",)),
        (("--unknown",), ("--unknown",)),
    ]
    for arguments, words in wrong:
        assert_wrong_usage(run("cluster", "data.npy", *arguments), *words)
    assert_wrong_usage(run("predict", "m.mercer", "data.npy"), "--out")


def test_outputs_are_checked_before_the_work(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = rows
    monkeypatch.setattr(SpectralClustering, "fit", lambda *_: pytest.fail("the work began"))
    wrong: list[tuple[tuple[object, ...], tuple[str, ...]]] = [
        (("--out", tmp_path / "none" / "labels.npy"), ("there is no folder",)),
        (("--model", tmp_path / "none" / "m.mercer"), ("there is no folder",)),
        (("--out", tmp_path / "labels.txt"), ("suffix", ".npy, .parquet, .csv")),
        (("--out", tmp_path), ("is a directory",)),
        (("--out", file), ("is named twice",)),
        (("--out", tmp_path / "a.npy", "--model", tmp_path / "a.npy"), ("is named twice",)),
    ]
    for arguments, words in wrong:
        assert_one_paragraph(run("cluster", file, *arguments), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["data.npy"]


def test_outputs_that_exist_are_replaced(rows: Any, tmp_path: Path) -> None:
    out = tmp_path / "labels.npy"
    out.write_text("old")
    assert run("cluster", rows[0], "-k", 2, "--out", out).exit_code == 0
    assert len(read_labels(out)) == 500


def test_a_failed_run_leaves_old_outputs_alone(rows: Any, tmp_path: Path) -> None:
    out = tmp_path / "labels.npy"
    out.write_text("old")
    assert_one_paragraph(run("cluster", rows[0], "-k", 501, "--out", out), "--n-clusters 501")
    assert out.read_text() == "old"


def test_a_model_that_is_none(rows: Any, tmp_path: Path) -> None:
    file, _ = rows
    model, out = tmp_path / "m.mercer", tmp_path / "labels.npy"
    run("cluster", file, "-k", 2, "--model", model)
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    assert_one_paragraph(run("predict", model, file, "--out", out), "m.mercer")
    other = Path(shutil.copy(file, tmp_path / "b.npy"))
    assert_one_paragraph(run("predict", file, other, "--out", out), "data.npy")
    assert_one_paragraph(run("predict", tmp_path / "none", file, "--out", out), "none")
    assert not out.exists()


def test_debug_shows_the_traceback() -> None:
    result = run("cluster", "none.npy", "--debug")
    assert isinstance(result.exception, FileNotFoundError)
    assert result.exit_code == 1


# In a process of its own -------------------------------------------------------------------------


def test_a_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['typer'] = None; from mercer.cli import main; main()"
    process = start("--help", code=code)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 1
    assert out == ""
    assert err.startswith("error: the command line needs the package 'typer'")
    assert err.endswith("pip install 'mercer[cli]'\n")
    assert err.count("\n") == 1


def test_the_command_line_itself_loads_nothing_heavy() -> None:
    """Beside what ``import mercer`` loads, which the empty package stands for."""
    code = f"""
import sys, types
package = sys.modules["mercer"] = types.ModuleType("mercer")
package.__path__ = {list(mercer.__path__)!r}
from mercer.cli import main
try:
    main()
finally:
    assert not {{"numpy", "scipy", "sklearn", "numba", "matplotlib"}} & set(sys.modules)
"""
    process = start("--help", code=code)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    assert "cluster" in out


def test_errors_in_a_process_are_one_line_and_a_code(tmp_path: Path) -> None:
    process = start("cluster", tmp_path / "none.npy")
    out, err = process.communicate(timeout=HANG)
    assert (process.returncode, out) == (1, "")
    assert err == f"error: there is no file {tmp_path / 'none.npy'}; check the path\n"


@pytest.mark.parametrize(
    ("method", "stage"),
    [("kernel-kmeans", "centres"), ("kernel-kmeans", "labels"), ("spectral", "labels")],
)
def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, method: str, stage: str) -> None:
    out = tmp_path / "labels.npy"
    for n_rows in (500_000, 2_000_000, 5_000_000):  # more, where the work ended before the signal
        X = np.random.default_rng(0).normal(size=(n_rows, 4)).astype(np.float32)
        np.save(tmp_path / "data.npy", X)
        out.write_text("old")
        process = start(
            "cluster", tmp_path / "data.npy", "-k", 20, "--rank", 128, "--max-iter", 2, "--seed", 0,
            "--out", out, "--model", tmp_path / "m.mercer", "--method", method,
        )  # fmt: skip
        assert process.stderr is not None
        while f"] {stage}" not in (line := process.stderr.readline()):
            assert line, "the work ended early"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG)
        if process.returncode != 0:
            break
        (tmp_path / "m.mercer").unlink()
    assert process.returncode == 130, err
    assert err.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npy", "labels.npy"]
    assert out.read_text() == "old"


def test_an_interrupted_stream_says_how_to_continue(tmp_path: Path) -> None:
    from mercer.cli.stream import told_to_resume

    snapshot = tmp_path / "s.mercer"
    with pytest.raises(KeyboardInterrupt, match=r"^$"), told_to_resume(snapshot):
        raise KeyboardInterrupt
    snapshot.write_bytes(b"")
    words = r"--resume to continue from .*s\.mercer"
    with pytest.raises(KeyboardInterrupt, match=words), told_to_resume(snapshot):
        raise KeyboardInterrupt


def test_lines_without_a_total_tell_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LogLines(interval=0.0, patience=0.0)
    for done in (0, 1000):
        lines("stream", done, 0)
    assert re.search(r"stream\n.*\] stream: 1,000 rows, [\d,]+ rows/s\n$", capsys.readouterr().err)


def test_a_stream_tells_rows_and_time_of_all_calls(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", rings(5000, random_state=0)[0])
    out, model = tmp_path / "labels.csv", tmp_path / "s.mercer"
    work = ("stream", tmp_path / "data.npy", "-k", 3, "--seed", 0, "--out", out, "--model", model)
    process = start(*work)
    told = process.communicate()[1]
    assert process.returncode == 0, told
    assert "] stream\n" in told
    assert "check" not in re.findall(r"^mercer \[.*\] (\w+)", told, re.MULTILINE)
    assert f"wrote {out}  (labels)" in told
    assert f"wrote {model}  (model)" in told
    assert [stage.name for stage in load(model).report_.stages].count("stream") == 1


# Demo --------------------------------------------------------------------------------------------


def test_demo_end_to_end(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    result = run("demo", "--rows", 2000, "--out", folder)
    assert result.exit_code == 0, result.output
    names = {"data.npy", "labels.npy", "model.mercer", "demo.png", "report.html"}
    assert {path.name for path in folder.iterdir()} == names | {"landscape.png", "segments.png"}
    assert all(f"wrote {folder / name}" in result.stdout for name in names)
    _, y = rings(2000, random_state=0)
    assert adjusted_rand(y, read_labels(folder / "labels.npy")) > 0.99
    assert re.search(r"^Mercer, 200 new rows +(1\.000|0\.99\d)", result.stdout, re.MULTILINE)
    assert "against the truth: ARI 1.000" in result.stdout
    assert result.stdout.rstrip().endswith(str((folder / "report.html").resolve()))


def test_demo_command_gives_the_same_labels(tmp_path: Path) -> None:
    result = run("demo", "--rows", 2000, "--out", tmp_path)
    shown = next(line for line in result.stdout.splitlines() if line.startswith("$ mercer"))
    labels = read_labels(tmp_path / "labels.npy")
    (tmp_path / "labels.npy").unlink()
    assert run(*shlex.split(shown)[2:]).exit_code == 0
    np.testing.assert_array_equal(read_labels(tmp_path / "labels.npy"), labels)


def test_demo_keeps_out_of_folders_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "data.npy").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    assert_one_paragraph(run("demo", "--out", tmp_path), "notes.txt", "--out")
    assert (tmp_path / "data.npy").read_text() == "mine"
    assert_one_paragraph(run("demo", "--out", tmp_path / "notes.txt"), "notes.txt")


def test_demo_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("demo", "--rows", 500, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "no picture" in result.stderr
    assert "mercer[plot]" in result.stderr
    assert not (tmp_path / "demo.png").exists()
