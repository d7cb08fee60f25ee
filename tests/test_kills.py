"""A command that is killed leaves the old file or the new one, whole; there is no third state."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from counting import count
from kills import KNOWN, VERBS, Server, serving, survive, temporaries

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def check(server: Server, verb: str, n_kills: int, folder: Path, seed: int) -> None:
    if verb not in KNOWN:
        pytest.skip(f"there is no verb `mercer {verb}`")
    for package in {"segment": ["PIL"], "predict": ["pyarrow"]}.get(verb, []):
        pytest.importorskip(package)
    counts = survive(server, verb, n_kills, folder, seed)
    assert counts.broken == []
    assert counts.kills == n_kills
    assert counts.old > 0
    assert temporaries(folder) == []
    count("kills survived", verb, counts.kills)
    count("kills that left a temporary file, removed later", verb, counts.left)
    count("files that were replaced before the kill", verb, counts.new)


@pytest.mark.parametrize("verb", ["cluster", "predict"])
def test_a_few_kills(verb: str, server: Server, tmp_path: Path) -> None:
    check(server, verb, 6, tmp_path, seed=int.from_bytes(os.urandom(4)))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_many_kills(verb: str, server: Server, tmp_path: Path) -> None:
    check(server, verb, 75, tmp_path, seed=0)
