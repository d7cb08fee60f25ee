"""The page on files says what is true: its examples run, one after another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "files.md"


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("pyarrow", "zarr", "dask.array"):
        pytest.importorskip(package)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 5
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(examples), "files.md", "exec"), {})
    assert "expected" in capsys.readouterr().out
