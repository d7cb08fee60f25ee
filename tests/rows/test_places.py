"""No command and no call writes over what it reads, by whatever name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mercer import KernelKMeans, as_source, load
from mercer.cli.app import app
from mercer.datasets import rings
from mercer.io import read_labels, write_labels
from source_kinds import folder as parquet_folder
from source_kinds import zarr_array

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links of POSIX")

# Every command that writes: its inputs, and its options that name an output, with a suffix.
COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "cluster": (["rows.npy"], {"--out": ".npy", "--model": ".mercer", "--report": ".md"}),
    "predict": (["a.mercer", "rows.npy"], {"--out": ".npy"}),
    "report": (["a.mercer", "rows.npy"], {"--out": ".md"}),
    "tune": (["rows.npy"], {"--out": ".json", "--plot": ".png"}),
    "segment": (["picture.png"], {"--out": ".png", "--labels": ".png"}),
    "stream": (["rows.npy", "more.npy"], {"--out": ".csv", "--model": ".mercer"}),
}
CASES = [
    pytest.param(verb, name, option, suffix, id=f"{verb}-{name}-{option}")
    for verb, (inputs, options) in COMMANDS.items()
    for name in inputs
    for option, suffix in options.items()
]


def symbolic_to_hard(path: Path, link: Path) -> None:
    os.link(path, link.with_name("between"))
    link.symlink_to(link.with_name("between"))


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "hard": os.link,
    "symbolic": os.symlink,
    "symbolic to hard": symbolic_to_hard,
}


def refused(arguments: list[object], *words: str) -> None:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr
    assert "bug in Mercer" not in result.stderr


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize(("verb", "name", "option", "suffix"), CASES)
def test_a_link_to_an_input_is_no_output(
    verb: str, name: str, option: str, suffix: str, kind: str, tmp_path: Path
) -> None:
    files = [tmp_path / file for file in COMMANDS[verb][0]]
    for file in files:
        file.write_bytes(b"whatever is in it")
    link = tmp_path / f"link{suffix}"
    LINKS[kind](tmp_path / name, link)
    words = "named twice" if kind == "symbolic" else "two names of one file"
    refused([verb, *files, option, link], words, link.name)
    assert all(file.read_bytes() == b"whatever is in it" for file in files)


@pytest.mark.parametrize(("verb", "name", "option", "suffix"), CASES)
def test_links_in_a_circle(verb: str, name: str, option: str, suffix: str, tmp_path: Path) -> None:
    files = {file: tmp_path / file for file in COMMANDS[verb][0]}
    for file in files.values():
        file.write_bytes(b"whatever is in it")
    for one, two in (("one", "two"), ("two", "one")):
        (tmp_path / f"{one}{suffix}").symlink_to(tmp_path / f"{two}{suffix}")
    words = "a symbolic link that leads back to itself"
    refused([verb, *files.values(), option, tmp_path / f"one{suffix}"], words, "one")
    files[name].unlink()
    files[name].symlink_to(files[name])
    refused([verb, *files.values(), option, tmp_path / f"new{suffix}"], words, name)


@pytest.mark.parametrize("make", [parquet_folder, zarr_array])
def test_a_file_of_an_input_folder_is_no_output(make: Callable[..., Path], tmp_path: Path) -> None:
    path = make(tmp_path, rings(60, random_state=0)[0])
    file = max((file for file in path.rglob("*") if file.is_file()), key=lambda f: f.stat().st_size)
    os.link(file, tmp_path / "hard.npy")
    refused(["cluster", path, "--out", tmp_path / "hard.npy"], "two names of one file")


@pytest.fixture(scope="module")
def model() -> KernelKMeans:
    return KernelKMeans(3, rank=20, random_state=0).fit(rings(300, random_state=0)[0])


@pytest.mark.parametrize("kind", LINKS)
def test_calls_refuse_a_link_to_their_input(kind: str, model: KernelKMeans, tmp_path: Path) -> None:
    rows, link = tmp_path / "rows.npy", tmp_path / "link.npy"
    np.save(rows, rings(300, random_state=0)[0])
    before = rows.read_bytes()
    LINKS[kind](rows, link)
    for X in (rows, str(rows), as_source(rows), {"a": rows}):
        with pytest.raises(ValueError, match="every input and output needs its own file"):
            model.predict(X, out=link)
    pytest.importorskip("bokeh")
    from mercer.report import write_page

    with pytest.raises(ValueError, match="every input and output needs its own file"):
        write_page(link, model, rows)
    assert rows.read_bytes() == before


def test_an_array_is_not_replaced_by_labels_of_what_is_in_it(
    model: KernelKMeans, tmp_path: Path
) -> None:
    pytest.importorskip("zarr")
    out = write_labels(tmp_path / "labels.zarr", [(0, np.zeros(3, np.intp))], 3)
    np.save(out / "rows.npy", rings(300, random_state=0)[0])
    with pytest.raises(ValueError, match=r"rows\.npy, which is read, is inside"):
        model.predict(out / "rows.npy", out=out)
    assert len(read_labels(out)) == 3


def test_calls_refuse_links_in_a_circle(model: KernelKMeans, tmp_path: Path) -> None:
    loop = tmp_path / "loop.npy"
    loop.symlink_to(loop)
    for call in (
        lambda: as_source(loop),
        lambda: model.predict(np.zeros((3, 2)), out=loop),
        lambda: model.save(loop),
        lambda: read_labels(loop),
    ):
        with pytest.raises(OSError, match="leads back to itself"):
            call()
    with pytest.raises(OSError, match=r"loop\.npy"):
        load(loop)
