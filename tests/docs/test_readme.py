"""The README's example runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def test_the_ten_lines_run(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    fitted, on_new_rows, *report = capsys.readouterr().out.splitlines()
    assert float(fitted) == pytest.approx(1.0, abs=0.001)
    assert float(on_new_rows) == pytest.approx(1.0, abs=0.005)
    assert "SpectralClustering" in report[0]


def test_pictures_and_links_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert target.startswith("http") or (README.parent / target).exists(), target
