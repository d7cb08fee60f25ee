"""The documentation is true: programs and commands run, tables are current, links lead."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROGRAMS = (
    *("index", "quickstart", "migrate", "cli", "report-page"),
    *("tables", "text", "embeddings", "streaming", "segmentation", "interoperability"),
    *("choosing-k", "trust", "explain", "outliers", "production"),
)
PAGES = [  # whose blocks run in order, in one folder and one namespace
    *(DOCS / f"{name}.md" for name in PROGRAMS),
    ROOT / "README.md",
]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
FEW_ROWS = 3000


def name_of(path: Path) -> str:
    return path.name


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that commands name, and nothing drawn on screens."""
    pandas = pytest.importorskip("pandas")
    for package in ("pyarrow", "skimage", "matplotlib", "typer", "bokeh"):
        pytest.importorskip(package)
    from mercer.datasets import rings
    from mercer.image import landscape, write_image

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    X = rings(1500, random_state=0)[0]
    np.save("rows.npy", X)
    for name in ("rows", "today"):
        pandas.DataFrame(X, columns=["x", "y"]).to_parquet(f"{name}.parquet")
    write_image(Path("photo.png"), landscape(60, 80, random_state=0)[0])
    return tmp_path


# Programs and commands ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_and_commands_of_a_page_run(page: Path, workplace: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    assert blocks
    namespace: dict[str, Any] = {}
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, page.name, "exec"), namespace)
        else:
            for command in text.splitlines():
                run_command(command)


def run_command(line: str) -> None:
    """What a reader would type; scripts of the repository only have to be there."""
    from typer.testing import CliRunner

    from mercer.cli.app import app

    program, *words = shlex.split(line, comments=True)
    if program != "mercer":
        assert os.access(ROOT / program, os.X_OK), line
        return
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{line}\n{result.output}"


def test_the_ten_lines_are_about_ten() -> None:
    code = BLOCK.search((ROOT / "README.md").read_text().partition("## Ten lines")[2])
    assert code is not None
    assert len(code.group(2).strip().splitlines()) <= 12
    assert len((ROOT / "README.md").read_text().splitlines()) <= 200


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_of_the_gallery_run(example: Path, workplace: Path) -> None:
    if "dask" in example.name:
        pytest.importorskip("distributed")
    small = re.sub(r"^N_ROWS = .*$", f"N_ROWS = {FEW_ROWS}", example.read_text(), flags=re.M)
    (workplace / example.name).write_text(small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(workplace / example.name), run_name="__main__")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.slow
def test_pages_build_without_warnings(tmp_path: Path) -> None:
    for package in ("sphinx", "myst_parser", "furo", "sphinx_gallery", "sphinxcontrib.bibtex"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-D", "plot_gallery=0"]
    built = subprocess.run([*command, DOCS, tmp_path], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "reference" / "mercer.SpectralClustering.html").exists()


# Tables and links --------------------------------------------------------------------------------


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("tables")


def test_tables_are_made_of_the_results(tables: Any) -> None:
    for name, make in tables.TABLES.items():
        written = tables.without_daggers((DOCS / "_tables" / name).read_text())
        assert written == make(), "run: python docs/tables.py"
    readme = tables.without_daggers((ROOT / "README.md").read_text())
    assert readme == tables.with_measured(readme), "run: python docs/tables.py"


def test_what_the_readme_says_of_results_is_in_the_results(tables: Any) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    for sentence, holds in tables.sentences().items():
        assert sentence in readme, sentence
        assert holds, f"the results say otherwise: {sentence}"


def test_stale_numbers_have_a_dagger_and_fresh_ones_none(tables: Any) -> None:
    text = "| a ([suite](results/suite.md)) | b ([003](results/003.md)) |\n"
    marked = tables.with_daggers(text, {"003": "changed"})
    assert "([suite](results/suite.md)) |" in marked
    assert "([003](results/003.md) †) |" in marked
    assert tables.STALE in marked
    assert tables.without_daggers(marked) == text == tables.with_daggers(text, {})


def test_the_best_is_bold_and_nothing_is_invented(tables: Any) -> None:
    row = tables._scored("data", [(0.5, 1.0), None, (0.75, 2.0)])
    assert row == ["data", "0.500, 1\u00a0s", "–", "**0.750**, 2\u00a0s"]
    assert tables._scored("noise", [(0.001, 1.0)]) == ["noise", "0.001, 1\u00a0s"]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("theory/*.md"))],
    ids=name_of,
)
def test_links_lead_somewhere(page: Path) -> None:
    made = ("results/", "gallery/", "reference/")  # at build time
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if target.startswith("http"):
            continue
        place = (page.parent / target).resolve()
        inside = place.relative_to(DOCS).as_posix() if place.is_relative_to(DOCS) else ""
        if inside.startswith(made[0]):
            assert (ROOT / "benchmarks" / inside).exists(), target
        elif inside.startswith(made[1]) and inside != "gallery/index.rst":
            assert (DOCS / "examples" / f"{place.stem}.py").exists(), target
        elif not inside.startswith(made):
            assert place.exists(), target


# The reference -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mercer.__all__)
def test_public_names_are_explained(name: str) -> None:
    """What, parameters by name, and an example that runs (tests/docs/test_doctests.py)."""
    thing = getattr(mercer, name)
    told = inspect.getdoc(thing) or ""
    assert ">>> " in told, f"{name} has no example"
    if issubclass(thing, Exception) if inspect.isclass(thing) else False:
        return
    for parameter in inspect.signature(thing).parameters:
        assert re.search(rf"^(?:\w+, )*{parameter}(?:, \w+)* : ", told, re.MULTILINE), parameter


REFERENCE = re.findall(r"^ {3}([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)\n {4}\S", re.MULTILINE)


def public_thing(name: str) -> Any:
    module, _, last = name.rpartition(".")
    home = importlib.import_module(f"mercer.{module}") if module else mercer
    return getattr(home, last)


def documented(thing: Any, section: str) -> dict[str, str]:
    """Entries of a section of a numpydoc docstring that have a description: types by name."""
    pattern = rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)"
    found = re.search(pattern, inspect.getdoc(thing) or "", re.MULTILINE | re.DOTALL)
    entries = ENTRY.findall(found.group(1)) if found else []
    return {n.strip("*"): kind for names, kind in entries for n in names.split(", ")}


@pytest.mark.parametrize("name", REFERENCE)
def test_parameters_have_a_type_a_default_and_a_meaning(name: str) -> None:
    thing = public_thing(name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return
    entries = documented(thing, "Parameters") | documented(thing, "Attributes")
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            assert f"**{parameter.name}\n" in (inspect.getdoc(thing) or "")
            continue
        assert parameter.name in entries, f"{parameter.name} is not described"
        has_default = parameter.default is not parameter.empty
        if has_default and parameter.name in documented(thing, "Parameters"):
            kind = entries[parameter.name]
            assert re.search(r"default[ =]|optional", kind), (
                f"{parameter.name}: default in {kind!r}"
            )
    if not inspect.isclass(thing):
        returned = inspect.signature(thing).return_annotation
        returns = re.search(r"^(Returns|Yields)\n-----", inspect.getdoc(thing) or "", re.MULTILINE)
        assert returns or returned in (None, "None"), "what is returned is not described"


@pytest.mark.parametrize("name", [n for n in REFERENCE if n in mercer.__all__])
def test_fitted_attributes_are_described(name: str) -> None:
    thing = public_thing(name)
    fields = getattr(thing, "_fitted_fields", {})
    documented_names = documented(thing, "Attributes")
    state = {"n_features_in_", "outliers_", "vectors_", "consensus_", "directions_", "key_"}
    state |= {"queue_", "stream_", "preimage_"}  # what predict needs, not for readers
    missing = {field for field in fields if field.endswith("_")} - set(documented_names) - state
    assert missing == set()


def test_public_names_are_in_the_reference() -> None:
    listed = set(re.findall(r"^ {3}(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE))
    assert set(mercer.__all__) <= listed


def test_no_citation_key_reaches_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    style = importlib.import_module("house_style")
    for name in REFERENCE:
        text = style.cite_in_rst(inspect.getdoc(public_thing(name)) or "")
        rest = re.sub(r":cite:p:`[^`]*`", "", text)
        assert not [key for key in style.KEYS if key in rest], name


def test_docstrings_and_pages_are_translated_for_sphinx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    style = importlib.import_module("house_style")
    lines = [
        "A thing : of beauty.",
        "",
        "Parameters",
        "----------",
        "rank, tol : int",
        "    At most.",
        "",
        "Attributes",
        "----------",
        "xi_, bias_ : array",
        "    Coefficients.",
    ]
    attributes = ["xi_ : array", "    See `bias_`.", "bias_ : array", "    Coefficients."]
    assert style.separated(lines) == [*lines[:9], *attributes]
    assert (
        style.cite_in_rst("see [chen2022, epperly2024].") == "see :cite:p:`chen2022,epperly2024`."
    )
    assert style.cite_in_markdown("[musco2017, Algorithm 3]") == "{cite:p}`musco2017` (Algorithm 3)"
    assert style.cite_in_markdown("[a link](b.md), [1, 2]") == "[a link](b.md), [1, 2]"
    cited = style.cite_in_rst("alone [cai2015,\nhuang2020]: fast.")
    assert cited == "alone :cite:p:`cai2015,huang2020`: fast."
    formula = style.raised_and_lowered("√n_i μ_{k+1} D^−½ `n_i`, [a](b_c.md), cod_rna")
    assert formula == ("√n<sub>i</sub> μ<sub>k+1</sub> D<sup>−½</sup> `n_i`, [a](b_c.md), cod_rna")
