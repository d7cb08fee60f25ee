"""`mercer report` and `mercer cluster --report`: pages and reports as files."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line needs typer")
pytest.importorskip("bokeh", reason="the report page needs Bokeh")

from typer.testing import CliRunner

from mercer.cli.app import app
from mercer.datasets import rings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, and a model of them."""
    folder = tmp_path_factory.mktemp("report")
    X, _ = rings(600, random_state=0)
    np.save(folder / "rows.npy", X)
    run("cluster", folder / "rows.npy", "-k", 3, "--seed", 0, "--model", folder / "rows.model")
    return folder


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_page_of_a_saved_model(folder, tmp_path):
    out = tmp_path / "report.html"
    result = run("report", folder / "rows.model", folder / "rows.npy", "-o", out)
    assert f"wrote {out}  (report)" in result.stdout
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert ">rows.npy</h1>" in text
    assert "SpectralClustering(n_clusters=3)" in text


def test_the_page_of_a_fit_at_once_is_that_of_its_model_but_for_time(folder, tmp_path):
    out, title = tmp_path / "at-once.html", "Three & rings"
    run("cluster", folder / "rows.npy", "-k", 3, "--seed", 0, "--report", out)
    later = tmp_path / "later.html"
    options = ("-o", later, "--title", title)
    run("report", folder / "rows.model", folder / "rows.npy", *options)
    assert ">Three &amp; rings</h1>" in later.read_text(encoding="utf-8")
    assert charts(out) == charts(later)


def charts(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text.split('id="data">')[1].split("</script>")[0])


def test_reports_as_markdown_and_json(folder, tmp_path):
    for suffix in (".md", ".json"):
        out = tmp_path / f"report{suffix}"
        run("report", folder / "rows.model", folder / "rows.npy", "-o", out)
    assert (tmp_path / "report.md").read_text().startswith("# SpectralClustering")
    assert json.loads((tmp_path / "report.json").read_text())["n_rows"] == 600


def test_json_for_machines(folder, tmp_path):
    out = tmp_path / "report.html"
    result = run("report", folder / "rows.model", folder / "rows.npy", "-o", out, "--json")
    told = json.loads(result.stdout)
    assert told["written"] == {"report": str(out)}
    assert told["quality"]["separation"] > 0.9
    assert run("report", folder / "rows.model", folder / "rows.npy", "-o", out, "-q").stdout == ""


def test_what_cannot_be_written_is_refused_before_the_work(folder, tmp_path):
    rows, model = folder / "rows.npy", folder / "rows.model"
    result = run("report", model, rows, "-o", tmp_path / "report.pdf", code=1)
    assert "use one of .html, .md, .json" in result.stderr
    result = run("report", model, rows, "-o", rows, code=1)
    assert "named twice" in result.stderr
    result = run("report", model, rows, "-o", tmp_path / "no" / "report.html", code=1)
    assert str(tmp_path / "no") in result.stderr
    result = run("cluster", rows, "-k", 3, "--report", tmp_path / "report.txt", code=1)
    assert "does not have the suffix of a report" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_columns_are_refused(folder, tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((10, 3)))
    out = tmp_path / "report.html"
    result = run("report", folder / "rows.model", tmp_path / "wide.npy", "-o", out, code=1)
    assert "3 features" in result.stderr
    assert not out.exists()


def test_the_extra_is_named_where_bokeh_is_missing(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    out = tmp_path / "report.html"
    result = run("report", folder / "rows.model", folder / "rows.npy", "-o", out, code=1)
    assert "pip install 'mercer[report]'" in result.stderr
    run("report", folder / "rows.model", folder / "rows.npy", "-o", tmp_path / "report.md")
