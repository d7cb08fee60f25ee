"""Where compiled loops are kept, and that no place for them is no reason to fail."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numba
import pytest

import mercer
from mercer._run import jit as _numba
from mercer._run import private_folder as _private_folder

NOBODY = 65534
POSIX = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of directories")
LOGGED = """
import logging, sys
logging.basicConfig(level=logging.WARNING)
logging.getLogger("mercer").setLevel(logging.DEBUG)
"""
ONE_LOOP = """
import numpy as np
import mercer
from mercer.linalg import _jit
assert mercer.__file__.startswith(sys.argv[1]), mercer.__file__
_jit.nearest(np.zeros((3, 2)), np.empty(3, np.intp), np.empty(3))
"""
NO_PLACE = "import tempfile; tempfile.tempdir = '/nonexistent'\n"
ALL_ESTIMATORS = """
import numpy as np
import mercer
from estimators import ESTIMATORS, TRANSFORMERS
from mercer.datasets import blobs
assert mercer.__file__.startswith(sys.argv[1]), mercer.__file__
X = blobs(300, random_state=0)[0]
for name, make in {**ESTIMATORS, **TRANSFORMERS}.items():
    model = make().fit(X)
    model.save(sys.argv[2] + "/" + name)
    again = mercer.load(sys.argv[2] + "/" + name)
    apply = "predict" if hasattr(model, "predict") else "transform"
    assert np.array_equal(getattr(model, apply)(X), getattr(again, apply)(X)), name
"""
DEFAULT_AND_CLI = """
import numpy as np
import mercer
from mercer.cli import main
from mercer.datasets import rings
X, folder = rings(600, random_state=0)[0], sys.argv[2]
model = mercer.SpectralClustering(3, random_state=0).fit(X)
model.save(folder + "/model")
assert np.array_equal(mercer.load(folder + "/model").predict(X), model.labels_)
np.save(folder + "/X.npy", X)
sys.argv[1:] = ["cluster", folder + "/X.npy", "-k", "3", "--seed", "0", "-o", folder + "/y.npy"]
try:
    main()
except SystemExit as end:
    assert end.code in (None, 0), end.code
assert np.array_equal(np.load(folder + "/y.npy"), model.labels_)
"""


@dataclass(frozen=True)
class Container:
    """The package where nobody can write to it, and a user without a home."""

    root: Path

    def run(self, code: str, **env: str) -> str:
        """Python as that user; what it wrote to standard error."""
        places = {"HOME": "/nonexistent", "PYTHONPATH": f"{self.package}", "TMPDIR": f"{self.temp}"}
        done = subprocess.run(
            [*as_nobody(), sys.executable, "-c", LOGGED + code, self.package, self.work],
            env={"PATH": os.environ.get("PATH", ""), **places, **env},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    @property
    def package(self) -> Path:
        return self.root / "package"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def temp(self) -> Path:
        return self.root / "temp"


@cache
def as_nobody() -> list[str]:
    """What makes a command run as a user who cannot write anywhere here: nothing, unless root."""
    if os.geteuid() != 0:
        return []
    plain = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    caps = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    for command in (plain, [*plain, *caps]):  # the second where the interpreter is in a closed home
        code = f"import json, sys; sys.exit(sys.base_prefix != {sys.base_prefix!r})"
        try:
            if subprocess.run([*command, sys.executable, "-c", code], check=False).returncode == 0:
                return command
        except OSError:
            break
    pytest.skip("another user cannot start this interpreter")


@pytest.fixture
def container() -> Iterator[Container]:
    """Not under tmp_path, which other users cannot enter."""
    made = Container(Path(tempfile.mkdtemp(prefix="mercer-test-")))
    try:
        made.root.chmod(0o755)
        source = Path(mercer.__file__).parent
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, made.package / "mercer", ignore=unwanted)
        shutil.copy(Path(__file__).parents[1] / "support" / "estimators.py", made.package)
        for folder in [made.package, *made.package.rglob("*")]:
            folder.chmod(0o555 if folder.is_dir() else 0o444)
        made.work.mkdir()
        made.temp.mkdir()
        if os.geteuid() == 0:
            os.chown(made.work, NOBODY, NOBODY)
            made.temp.chmod(0o1777)
        yield made
    finally:
        for folder in made.root.rglob("*"):
            if folder.is_dir():
                folder.chmod(0o755)
        shutil.rmtree(made.root)


@POSIX
def test_loops_are_kept_in_a_private_directory_where_numba_finds_no_place(
    container: Container,
) -> None:
    said = container.run(ONE_LOOP)
    (folder,) = container.temp.iterdir()
    assert said.count("DEBUG:mercer._run.jit:") == said.count("\n") == 1
    assert f"compiled loops are kept in {folder}; NUMBA_CACHE_DIR" in said
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb*")}
    assert before
    container.run(ONE_LOOP)  # the next process finds them
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb*")}


@POSIX
def test_loops_are_compiled_and_not_kept_where_there_is_no_place_at_all(
    container: Container,
) -> None:
    said = container.run(NO_PLACE + ONE_LOOP)
    assert said.count("DEBUG") == 2
    assert "cannot be kept in a temporary directory" in said
    assert said.endswith("loops are not kept: every process compiles them anew\n")


@POSIX
def test_the_users_numba_cache_dir_comes_first(container: Container) -> None:
    assert container.run(ONE_LOOP, NUMBA_CACHE_DIR=f"{container.work}") == ""
    assert list(container.work.rglob("*.nbc"))
    assert not list(container.temp.iterdir())


@POSIX
@pytest.mark.parametrize("home", ["", "relative"])
def test_a_user_without_a_home_gets_no_cache_in_the_working_directory(
    container: Container, home: str
) -> None:
    code = f"import os; os.chdir({str(container.work)!r})\n" + ONE_LOOP
    container.run(code, XDG_CACHE_HOME=home)
    assert not list(container.work.iterdir())
    assert list(container.temp.iterdir())


@POSIX
@pytest.mark.slow
def test_every_estimator_fits_saves_and_loads_without_a_place_of_numbas(
    container: Container,
) -> None:
    container.run(ALL_ESTIMATORS)


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("before", ["", NO_PLACE], ids=["temporary directory", "no cache"])
def test_api_and_command_line_without_a_place_of_numbas(container: Container, before: str) -> None:
    container.run(before + DEFAULT_AND_CLI)


@POSIX
def test_a_private_directory_is_ours_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    for _ in range(2):
        _private_folder.make(f"{folder}")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@POSIX
def test_a_directory_that_others_could_use_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir(mode=0o700)
    folder.chmod(0o770)
    with pytest.raises(PermissionError, match="open to others"):
        _private_folder.make(f"{folder}")
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="not a directory"):
        _private_folder.make(f"{folder}")
    folder.unlink()
    tmp_path.chmod(0o777)  # without the sticky bit: whoever likes can rename what is in it
    with pytest.raises(PermissionError, match="others can replace"):
        _private_folder.make(f"{folder}")
    assert not folder.exists()
    tmp_path.chmod(0o1777)
    _private_folder.make(f"{folder}")
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        with pytest.raises(PermissionError, match="belongs to somebody else"):
            _private_folder.make(f"{folder}")


def test_a_directory_that_was_replaced_meanwhile_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What cleans temporary directories may remove ours, and another user make one of its name."""
    monkeypatch.setattr(_numba.LoopCacheImpl, "_locator_classes", [_numba.PrivateLocator])
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}")
    assert add_one(tmp_path)(1) == 2
    again = add_one(tmp_path)
    (folder,) = tmp_path.glob("mercer-numba-*")
    folder.chmod(0o777)
    with caplog.at_level(logging.DEBUG, "mercer._run.jit"):
        assert again(1) == 2
    assert not again.stats.cache_hits
    assert "open to others" in caplog.text


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_loops_are_compiled_again_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", f"{tmp_path}")
    assert add_one(tmp_path)(1) == 2
    files = [path for path in tmp_path.rglob("*") if path.suffix == suffix]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:-7])
    again, third = add_one(tmp_path), add_one(tmp_path)
    assert again(1) == third(1) == 2
    assert not again.stats.cache_hits
    assert third.stats.cache_hits


def test_a_full_disk_costs_the_cache_and_not_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", f"{tmp_path}")
    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", full)
    assert add_one(tmp_path)(1) == 2


def add_one(folder: Path):
    """A loop from a file, as another process would make it."""
    path = folder / "a_loop.py"
    path.write_text("from mercer._run.jit import jit\n@jit\ndef add_one(x):\n    return x + 1\n")
    spec = importlib.util.spec_from_file_location("a_loop", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.add_one
