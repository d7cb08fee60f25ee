"""Files of a release say the same, and the commands of the workflows exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import mercer

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def test_there_is_a_workflow_for_each_purpose() -> None:
    assert {path.stem for path in WORKFLOWS} == {"ci", "docs", "nightly", "release"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_little_and_not_for_long(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert "workflow_dispatch" in workflow[True]  # YAML reads `on` as true
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        assert set(job.get("permissions", {})) <= {"id-token"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_commands_of_workflows_exist(path: Path) -> None:
    """Scripts are there and can be run; modules and extras are those of the project."""
    extras = PROJECT["optional-dependencies"]
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@[\w./-]+", step["uses"])
            continue
        words = [word for word in shlex.split(step["run"]) if "=" not in word.split("/")[0]]
        if words[:2] == ["python", "-m"]:
            assert words[2] in ("pip", "pytest")
            assert find_spec(words[2]) is not None
            for extra in re.findall(r"\.\[(\w+)\]", step["run"]):
                assert extra in extras
        else:
            assert os.access(ROOT / words[0], os.X_OK), words[0]


def test_three_systems_are_tested_with_every_python_that_is_claimed() -> None:
    systems = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["systems"]
    matrix = systems["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert matrix["python-version"] == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert not any("scripts/" in step.get("run", "") for step in systems["steps"])  # no sh there


def test_a_release_is_built_and_tried_before_it_is_published() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert any(step.get("run") == "scripts/package" for step in jobs["build"]["steps"])
    assert "scripts/package" in (ROOT / ".ci" / "run").read_text()
    assert not re.search(r"secrets\.|password:", WORKFLOWS[-1].read_text())


def test_versions_are_the_same_everywhere() -> None:
    assert PROJECT["version"] == mercer.__version__
    assert read(ROOT / "CITATION.cff")["version"] == mercer.__version__
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    assert f'set version = "{mercer.__version__}"' in recipe


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    text = re.sub(r"\{%.*%\}", "", recipe).replace("{{ version }}", mercer.__version__)
    wanted = {
        line.replace(" ", "")
        for line in yaml.safe_load(text.replace("{{ PYTHON }}", "python"))["requirements"]["run"]
    }
    for line in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]):
        assert line in wanted, line


def test_files_for_other_tools_can_be_read() -> None:
    assert read(ROOT / "CITATION.cff")["cff-version"] == "1.2.0"
    assert read(ROOT / ".github" / "dependabot.yml")["version"] == 2
    pages = read(ROOT / ".readthedocs.yaml")
    assert (ROOT / pages["sphinx"]["configuration"]).exists()
    assert set(pages["python"]["install"][0]["extra_requirements"]) <= {"docs"}
    hooks = [
        hook["id"]
        for repo in read(ROOT / ".pre-commit-config.yaml")["repos"]
        for hook in repo["hooks"]
    ]
    assert {"ruff-check", "ruff-format", "check-yaml"} <= set(hooks)
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        assert read(path)
    suites = json.loads((ROOT / "asv.conf.json").read_text())
    assert (ROOT / suites["benchmark_dir"] / "defaults.py").exists()


def test_no_address_is_claimed_that_does_not_exist() -> None:
    assert "urls" not in PROJECT, "add an address once there is one, and test it"
    assert PROJECT["authors"] == [{"name": "The Mercer developers"}]
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "mercer" / "py.typed").exists()


def test_the_suites_of_asv_run() -> None:
    from asv_benchmarks.defaults import ESTIMATORS, Fits, Segmentation

    fits = Fits()
    for name in ("SpectralClustering", "KernelPCA"):
        assert name in ESTIMATORS
        fits.setup(name, 200)
        fits.time_fit(name, 200)
        fits.time_apply(name, 200)
    suite = Segmentation()
    suite.setup()
    suite.time_segment()


def test_versions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    mercer.show_versions()
    told = capsys.readouterr().out
    for name in ("mercer", "python", "system", "numpy", "numba", "scikit-learn"):
        assert re.search(rf"^{name}: \S", told, re.MULTILINE), name
