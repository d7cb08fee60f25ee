"""No file, however wrong, does harm: one clear error, within the memory that was promised."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counting import count
from fuzzing import BOMBS, FORMATS, MB, Format, Outcome, Reader, damaged

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="measures memory by /proc")

MESSAGE = 2000  # characters; longer ones are not read
EXPECTED = json.loads((Path(__file__).parents[1] / "models" / "expected.json").read_text())
IS_LONG = settings().max_examples >= 1000  # the profile of `scripts/test --all`


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder, sound = tmp_path_factory.mktemp("sound"), []
    for format in FORMATS.values():
        if all(find_spec(package) for package in format.needs):
            for name, data in format.files().items():
                sound.append((format.verb, str(format.lay(folder, name, data))))
    reader = Reader(sound)
    yield reader
    reader.close()


def check(outcome: Outcome, path: Path, memory: int) -> None:
    """A value, or one error of a kind that callers expect, in words that name the file."""
    assert outcome.memory <= memory, f"{outcome.memory / 1e6:.0f} MB"
    if not outcome.error:
        return
    expected = {"ValueError", "OSError"} & set(outcome.error)
    assert expected, outcome
    assert len(outcome.words) < MESSAGE
    assert path.name in outcome.words


def examples(kind: str) -> Any:
    """Damaged files of one kind; the packages they need may be missing."""
    for package in FORMATS[kind].needs:
        pytest.importorskip(package)
    return damaged(FORMATS[kind].files())


@pytest.mark.parametrize("kind", FORMATS)
def test_sound_files_are_read(kind: str, reader: Reader, tmp_path: Path) -> None:
    for package in FORMATS[kind].needs:
        pytest.importorskip(package)
    for name, data in FORMATS[kind].files().items():
        outcome = reader.read(FORMATS[kind].verb, str(FORMATS[kind].lay(tmp_path, name, data)))
        assert not outcome.error, outcome


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_end_in_one_clear_error(kind: str, reader: Reader, tmp_path: Path) -> None:
    format: Format = FORMATS[kind]

    @given(examples(kind))
    def try_one(example: tuple[str, bytes]) -> None:
        name, data = example
        path = format.lay(tmp_path, name, data)
        outcome = reader.read(format.verb, str(path))
        check(outcome, path, format.memory)
        if kind == "model" and not outcome.error:
            assert_same_answers(outcome.value, EXPECTED[path.stem])
        count("files fuzzed", kind)

    try_one()


def assert_same_answers(found: Any, wanted: Any) -> None:
    """A damaged file that loads all the same is one whose damage means nothing."""
    assert np.allclose(found, wanted, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", BOMBS)
def test_files_built_to_do_harm(name: str, reader: Reader, tmp_path: Path) -> None:
    suffix, made = BOMBS[name]
    kinds = {".mercer": "model", ".npy": "npy", ".png": "image"}
    format = FORMATS[kinds.get(suffix, "csv")]
    for package in format.needs:
        pytest.importorskip(package)
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(made())
    outcome = reader.read(format.verb, str(path))
    assert outcome.error
    check(outcome, path, format.memory)
    assert outcome.seconds < 20
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    count("files built to do harm", kinds.get(suffix, "csv"))


# The command line


WORDS = st.one_of(
    st.sampled_from(
        ["", "0", "-1", "1e999", "nan", "auto", "NaN", "3.5", "9" * 400, "1:2:3", "é→"]
    ),
    st.integers(-3, 12).map(str),
    st.floats(width=16).map(str),
    st.text(max_size=12).filter(lambda text: "\0" not in text and not text.startswith("-")),
)
OPTIONS = (
    *("--n-clusters", "--kernel", "--gamma", "--approximation", "--rank", "--method", "--tol"),
    *("--columns", "--seed", "--max-memory", "--jobs", "--max-iter", "--n-init", "--encoding"),
    *("--ensemble", "--train-size", "--assign-labels", "--out", "--model"),
)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A verb, a file that may be damaged, and options that mean little."""
    verb = draw(st.sampled_from(["cluster", "cluster", "tune", "predict"]))
    names = draw(st.permutations(OPTIONS))[: draw(st.integers(0, 3))]
    options = [part for name in names for part in (name, draw(WORDS))]
    return [verb, *options]


def run_command(reader: Reader, arguments: list[str], folder: Path) -> None:
    outcome = reader.read("command", arguments)
    assert not outcome.error, (arguments, outcome)
    code, out, err = outcome.value
    lines = [line for line in err.splitlines() if not line.startswith(("mercer [", "warning: "))]
    assert "Traceback" not in err, (arguments, err)
    assert code in (0, 1, 2), (arguments, code)
    if code == 1:
        assert len(lines) == 1, (arguments, lines)
        assert lines[0].startswith("error: ")
        assert len(lines[0]) < MESSAGE
        assert out == ""
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def test_any_command_line_ends_in_words(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    files = {name: data for kind in ("npy", "csv") for name, data in FORMATS[kind].files().items()}
    folder = tmp_path / "outputs"
    folder.mkdir()
    reader.close()
    monkeypatch.chdir(folder)  # for outputs with the names that are drawn

    @given(command_lines(), damaged(files), damaged(FORMATS["model"].files()), st.integers(0, 5))
    @settings(max_examples=300 if IS_LONG else 12)
    def try_one(
        line: list[str], example: tuple[str, bytes], model: tuple[str, bytes], sound: int
    ) -> None:
        verb, *options = line
        rows, models = tmp_path / example[0], tmp_path / model[0]
        rows.write_bytes(example[1] if sound % 2 else files[example[0]])
        models.write_bytes(model[1] if sound > 2 else FORMATS["model"].files()[model[0]])
        if verb == "predict":
            kept = {"--columns", "--max-memory", "--jobs"}
            pairs = zip(options[::2], options[1::2], strict=True)
            options = [part for pair in pairs if pair[0] in kept for part in pair]
            options += ["--out", str(folder / "labels.npy")]
            run_command(reader, [verb, str(models), str(rows), *options], folder)
        elif verb == "tune":
            kept = {"--gamma", "--kernel", "--rank", "--train-size", "--columns", "--seed"}
            pairs = zip(options[::2], options[1::2], strict=True)
            options = [part for pair in pairs if pair[0] in kept for part in pair]
            run_command(reader, [verb, str(rows), "--clusters", "2:3", *options], folder)
        else:
            run_command(reader, [verb, str(rows), *options], folder)
        count("command lines fuzzed", verb)

    try_one()
    reader.close()


def test_reading_a_model_takes_little_memory(reader: Reader, tmp_path: Path) -> None:
    """The measure itself: a sound file takes some memory, but not much."""
    path = tmp_path / "kernel-kmeans.mercer"
    path.write_bytes(FORMATS["model"].files()[path.name])
    reader.read("model", str(path))
    assert 0 <= reader.read("model", str(path)).memory < 50 * MB
