"""What Mercer stands on is pinned, free, and enough: no network at run time."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("packaging")

ROOT = Path(__file__).parents[1]


def dependencies() -> Any:
    spec = spec_from_file_location("dependencies", ROOT / "scripts" / "dependencies.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_requirement_is_locked_to_a_version_it_allows() -> None:
    locked = pins("test.lock")
    for extra, requirements in dependencies().declared().items():
        for requirement in requirements:
            name = requirement.name.lower()
            if extra == "primme":
                continue  # has no wheels; nothing is tested with it
            assert name in locked, f"{name} ({extra}): run scripts/dependencies.py lock"
            assert locked[name] in requirement.specifier


def test_the_lowest_versions_are_those_of_the_project() -> None:
    lowest = pins("lowest.txt")
    for requirements in dependencies().declared().values():
        for requirement in requirements:
            if requirement.name in lowest:
                (floor,) = [s.version for s in requirement.specifier if s.operator == ">="]
                assert lowest[requirement.name].startswith(floor), requirement
    needed = {requirement.name for requirement in dependencies().declared()[""]}
    assert needed <= set(lowest)


@pytest.mark.parametrize("name", ["test.lock", "lowest.txt"])
def test_locks_name_versions_and_no_hosts(name: str) -> None:
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        assert re.fullmatch(r"#.*|[a-z0-9.-]+==[\w.]+", line), line
        assert "://" not in line


def test_no_dependency_binds_users() -> None:
    assert dependencies().bound() == []
    listed = (ROOT / "docs" / "licences.md").read_text()
    for name in dependencies().closure(dependencies().declared()[""]):
        assert f"| {name} |" in listed, "run scripts/dependencies.py licences"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("BSD-3-Clause", False),
        ("GPL-3.0-or-later", True),
        ("GNU General Public License v2 (GPLv2)", True),
        ("GNU Lesser General Public License (LGPL)", False),
        ("AGPL-3.0", True),
        ("LGPL-2.1 AND GPL-2.0", True),
    ],
)
def test_the_gpl_is_recognised(words: str, expected: bool) -> None:
    assert dependencies().is_binding(words) is expected


WITHOUT_NETWORK = """
import sys

def watch(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        raise SystemExit(f"network: {event} {arguments}")

sys.addaudithook(watch)
from mercer import KernelKMeans, KernelPCA, SpectralClustering, load
from mercer.datasets import rings

X, _ = rings(400, random_state=0)
for model in (SpectralClustering(3, random_state=0), KernelKMeans(3, random_state=0)):
    model.fit(X)
    model.save(sys.argv[1])
    assert (load(sys.argv[1]).predict(X) == model.labels_).all()
    str(model.report_), model.report_.to_json()
KernelPCA(2, random_state=0).fit(X).transform(X)
"""


def test_nothing_needs_the_network(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_NETWORK, str(tmp_path / "a.mercer")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
