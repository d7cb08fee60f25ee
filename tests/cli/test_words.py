"""What reaches a terminal: names from outside as text, options for parameters."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mercer
from mercer import KernelKMeans, load
from mercer._run.budget import parse_bytes
from mercer._run.printable import printable
from mercer.cli.app import app
from mercer.cli.vocabulary import in_options, speaking_of

ESC = "\x1b]0;owned\x07\x1b[31m"
NAMES = {  # what a name may hold, whatever made it
    "escape": f"a{ESC}b",
    "return": "a\rb",
    "c1": "a\x9b31mb",
    "right to left": "a\u202eb",
    "not UTF-8": "a\udcffb",
}
X = np.random.default_rng(0).normal(size=(60, 2))


def is_safe(text: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in text)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_printable_text_has_codes_for_what_is_not_seen(name: str) -> None:
    shown = printable(name)
    assert shown.isprintable()
    assert shown.encode("ascii").decode("unicode_escape") == name
    assert printable("Größe ≤ 3 µm\n") == "Größe ≤ 3 µm\n"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_report_is_printable_whatever_its_texts_hold(name: str) -> None:
    """A report may come from a model file that somebody else wrote."""
    from dataclasses import fields, replace

    model = KernelKMeans(2, random_state=0).fit(X)
    told = model.report_
    column = replace(told.data.columns[0], name=name)
    texts = {f.name: name for f in fields(told) if isinstance(getattr(told, f.name), str)}
    lists = {"notes": (name, f"x\n{name}"), "warnings": (name,)}
    report = replace(told, **texts, **lists, data=replace(told.data, columns=(column,)))
    plan = replace(model.plan(X), source=f"NpySource {name}")
    for text in (str(report), report.to_markdown(), report._repr_html_(), str(plan)):
        assert is_safe(text)
        plain = text.replace("\\\\", "\\").replace("\\[", "[").replace("\\]", "]")
        assert printable(name) in plain or " ".join(name.split()) in plain


def test_column_names_are_printable_in_errors() -> None:
    import pandas as pd

    model = KernelKMeans(2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))
    for frame in (pd.DataFrame(X, columns=["a", ESC]), pd.DataFrame({"a": [1.0], ESC: ["x"]})):
        with pytest.raises(ValueError) as caught:
            model.predict(frame)
        assert is_safe(str(caught.value))


@pytest.mark.parametrize("name", [name for name in NAMES.values() if name.isascii()])
def test_file_names_are_printable_in_errors_and_warnings(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.foo").write_text("x")
    (tmp_path / f"{name}.npy").write_text("x")
    (tmp_path / f"{name}.csv").write_text("a,b\n1,x\n")
    (tmp_path / f"{name}.mercer").write_text("x")
    (tmp_path / name).mkdir()
    model = KernelKMeans(2, random_state=0).fit(X)
    calls: list[Any] = [
        lambda: mercer.as_source(tmp_path / f"{name}.none"),
        lambda: mercer.as_source(tmp_path / f"{name}.foo"),
        lambda: mercer.as_source(tmp_path / f"{name}.npy"),
        lambda: mercer.as_source(tmp_path / f"{name}.csv"),
        lambda: mercer.as_source(tmp_path / name),
        lambda: load(tmp_path / f"{name}.mercer"),
        lambda: load(tmp_path / f"{name}.none"),
        lambda: model.save(tmp_path / name),
        lambda: model.save(tmp_path / f"{name}.none" / "model"),
        lambda: model.predict(X, out=tmp_path / f"{name}.xyz"),
        lambda: mercer.checkpoint(tmp_path / f"{name}.foo").__enter__(),
        lambda: changed_while_read(tmp_path / f"{name}-good.npy"),
    ]
    for call in calls:
        with pytest.raises((ValueError, OSError)) as caught:
            call()
        assert is_safe(str(caught.value)), str(caught.value)
        assert printable(name) in str(caught.value)


def changed_while_read(path: Path) -> None:
    np.save(path, X)
    source = mercer.as_source(path)
    np.save(path, X[:-1])
    KernelKMeans(2, random_state=0).fit(source)


@pytest.mark.parametrize("command", [["cluster"], ["plan"], ["cluster", "--report", "@.md"]])
def test_the_command_line_is_printable(tmp_path: Path, command: list[str]) -> None:
    name = f"{ESC}x"
    with (tmp_path / f"{name}.csv").open("w") as file:
        np.savetxt(file, X, delimiter=",", header=f"{ESC}a,b", comments="")
    words = [word.replace("@", str(tmp_path / name)) for word in command]
    out = [] if command == ["plan"] else ["-o", str(tmp_path / f"{name}.npy")]
    for file in (f"{name}.csv", f"{name}.none", f"{name}.foo"):
        done = CliRunner().invoke(app, [*words, str(tmp_path / file), "-k", "2", *out])
        assert done.exit_code == (0 if file.endswith("csv") else 1)
        assert is_safe(done.output)
        assert command == ["cluster", "--report", "@.md"] or r"\x1b" in done.output


@pytest.mark.parametrize(
    "amount",
    ["1e400GB", "1e30", 1e300, "nan", float("nan"), "inf", float("inf"), "-1GB", -5, "0", 0.2, "",
     "12XB", "0x10", True],
)  # fmt: skip
def test_an_amount_of_memory_that_is_none_is_one_clear_error(amount: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_memory=.*; pass "):
        parse_bytes(amount)
    with pytest.raises(ValueError, match="max_memory"):
        KernelKMeans(2, max_memory=amount).fit(X)


def test_the_command_line_speaks_of_options_and_the_api_of_parameters(tmp_path: Path) -> None:
    path = tmp_path / "rank=3.npy"
    np.save(path, X)
    for arguments, words, code in (
        (["--columns", "a,b"], f"{path} has no named columns, so --columns a,b cannot", 1),
        (["--max-memory", "1e400GB"], "--max-memory 1e400GB is more than any machine has", 2),
        (["-k", "90"], "n_samples=60 should be >= --n-clusters 90", 1),
        (["--approximation", "exact", "--max-memory", "9kB"], "--max-memory allows 9 kB", 1),
        (["-k", "1"], "warning: --n-clusters 1 puts every row into one cluster", 0),
    ):
        done = CliRunner().invoke(app, ["cluster", str(path), *arguments], terminal_width=200)
        assert done.exit_code == code
        assert words in " ".join(done.output.replace("│", " ").split()), done.output
    with pytest.raises(ValueError, match="n_clusters=90"):
        KernelKMeans(90).fit(X)


def test_every_option_stands_for_its_parameter() -> None:
    from typer.main import get_command

    verbs: Any = get_command(app)
    for verb in verbs.commands.values():
        with speaking_of(verb.params, ()):
            for parameter in verb.params:
                for option in (name for name in parameter.opts if name.startswith("--")):
                    name = option[2:].replace("-", "_")
                    assert in_options(f"{name}='x' is wrong") == f"{parameter.opts[0]} x is wrong"
                    assert in_options(f"my_{name}=2") == f"my_{name}=2"


def stdin_of(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x93NUMPY\x01\x00", "add --format npy"),
        (b"\xff\xff\xff\xff\x10", "add --format arrow"),
        (b"PAR1\x15\x04", "name the file instead"),
        (b"ARROW1\x00\x00", "name the file instead"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"PK\x03\x04", "unpack it"),
        (b"\x89HDF\r\n", "save it as"),
        (b"1,2\n3,\xe9\n", "line 2 of standard input is not UTF-8"),
        (b"\xfe\x00\x01", "one of arrow, csv, npy"),
    ],
)
def test_binary_input_is_told_by_its_kind(
    monkeypatch: pytest.MonkeyPatch, data: bytes, words: str
) -> None:
    from mercer.cli.stream import batches_of

    monkeypatch.setattr(sys, "stdin", stdin_of(data))
    with pytest.raises(ValueError) as caught:
        list(batches_of([], "csv"))
    assert words in str(caught.value)
    assert "codec" not in str(caught.value)


def test_input_of_the_format_asked_for_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.cli.stream import batches_of

    file = io.BytesIO()
    np.save(file, X)
    monkeypatch.setattr(sys, "stdin", stdin_of(file.getvalue()))
    assert np.array_equal(np.concatenate(list(batches_of([], "npy"))), X)


@pytest.mark.parametrize("command", ["cluster @ -k 3", "plan @", "predict @ @ -o y.npy", "tune @",
                                     "report @ @ -o r.html", "stream @ -k 3"])  # fmt: skip
def test_a_missing_file_is_found_before_anything_heavy_is_imported(command: str) -> None:
    code = f"""
import sys, types
package = sys.modules["mercer"] = types.ModuleType("mercer")
package.__path__ = {list(mercer.__path__)!r}
from mercer.cli import main
try:
    main()
finally:
    assert not {{"numpy", "scipy", "sklearn", "numba"}} & set(sys.modules)
"""
    words = command.replace("@", "/nonexistent/x.npy").split()
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "error: there is no file /nonexistent/x.npy; check the path\n"
