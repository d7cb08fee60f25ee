"""benchmarks.provenance: what a result measured is known, and what has changed since is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import provenance
from benchmarks.measure import remember, reopened, timed

ROOT = Path(__file__).parent.parent
SOURCE = """
'''What it is.'''
def twice(x):
    return 2 * x
"""
FITS = """
from benchmarks.measure import record, remember
record()
import json
import numpy as np
from mercer import KernelKMeans
X = np.arange(40.0).reshape(20, 2) % 7
KernelKMeans(2, rank=4, random_state=0).fit(X)
remember(result := {})
print(json.dumps(result))
"""


def test_comments_docstrings_and_layout_do_not_count():
    other = SOURCE.replace("What it is", "Another word").replace("2 * x", "(2  *  x)  # twice")
    assert provenance.digest_of(other) == provenance.digest_of(SOURCE)


@pytest.mark.parametrize("edit", [("2 * x", "3 * x"), ("(x)", "(x, y=1)"), ("2 * x", "2.0 * x")])
def test_what_a_module_does_counts(edit):
    assert provenance.digest_of(SOURCE.replace(*edit)) != provenance.digest_of(SOURCE)


def test_a_result_knows_the_modules_that_were_used_and_no_others():
    words = [sys.executable, "-W", "ignore", "-c", FITS]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    (found,) = json.loads(run.stdout)["sources"].values()
    used = {"mercer.estimators.kernel_kmeans", "mercer.factors.cholesky", "mercer.linalg.lloyd"}
    loops = {"mercer.factors._cholesky_jit", "mercer.linalg._jit"}
    assert used | loops <= found.keys()
    unused = {"mercer.factors.binning", "mercer.image.segmenter", "mercer.factors._binning_jit"}
    words = {"mercer.report.report", "mercer.trust.grade", "benchmarks.measure"}
    assert not (unused | words) & found.keys()
    assert provenance.changed({"all": found}) == []


def test_a_changed_or_missing_module_is_named():
    name = "mercer.linalg.lloyd"
    now = {name: provenance.digest(name)}
    assert provenance.changed({"all": now}) == []
    assert provenance.changed({"one": now, "two": {name: "before"}}) == [name]
    assert provenance.changed({"all": {"mercer.was_here": "x"}}) == ["mercer.was_here"]


def test_pages_say_that_they_are_stale_and_stop_saying_so(tmp_path):
    name = "mercer.linalg.lloyd"
    result, page = tmp_path / "one.json", tmp_path / "one.md"
    page.write_text("# One\n")
    result.write_text("{}")
    assert list(provenance.stale_results(tmp_path)) == ["one"]
    provenance.mark(tmp_path)
    provenance.mark(tmp_path)  # once is enough
    assert page.read_text().startswith(provenance.MARK)
    assert page.read_text().endswith("\n\n# One\n")
    result.write_text(json.dumps({"sources": {"all": {name: "before"}}}))
    assert name in provenance.stale_results(tmp_path)["one"]
    result.write_text(json.dumps({"sources": {"all": {name: provenance.digest(name)}}}))
    assert provenance.stale_results(tmp_path) == {}
    provenance.mark(tmp_path)
    assert page.read_text() == "# One\n"


def test_numbers_that_are_kept_stay_as_old_as_they_are(monkeypatch):
    assert "sources" not in reopened({})
    assert provenance.changed(reopened({"machine": {}})["sources"]) == [provenance.UNKNOWN]
    monkeypatch.setattr("benchmarks.measure.sources", lambda: {"a": "new", "b": "new"})
    result = {"sources": {"part": {"a": "old"}}}
    remember(result, "part", adds=True)
    assert result["sources"]["part"] == {"a": "old", "b": "new"}
    remember(result, "part")
    assert result["sources"]["part"] == {"a": "new", "b": "new"}


def test_what_is_timed_is_not_traced():
    tracers = []
    before = sys.gettrace()
    timed(lambda: tracers.append(sys.gettrace()), repeat=2)
    assert tracers[1:] == [None, None]
    assert sys.gettrace() is before
