"""User-facing text is plain English: none of the words below, which were once private to us.

Checked are the README, the pages and examples of the documentation, docstrings of the public API,
the help of the command line, and the messages of errors and warnings.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mercer

ROOT = Path(__file__).parents[2]
DOCS, SOURCES = ROOT / "docs", ROOT / "src" / "mercer"
MESSAGES = {"warn", "note", "expect", "warning", "BadParameter", "echo"}  # calls that show text

BANNED = {  # what is found: what to write instead
    r"\btied to\b": "connected to",
    r"\bdear(er|est)?\b": "expensive, slower",
    r"\b(have|has) no say\b|\bunheard\b|\bmute\b": "is ignored",
    r"\brows (that )?choose\b": "a sample is used",
    r"\brows that did not make\b": "held-out rows",
    r"\brows (that keep coming|to come|that wait)\b": "streaming data, queued rows",
    r"\b(story|stories) of\b": "the fit report",
    r"\bdeserves?\b": "look reliable",
    r"\blies? apart\b": "is disconnected from",
    r"\bis told\b|\bare told\b|\btold with\b|\btells no\b": "the error suggests",
    r"\bspeaks?\b(?! against)": "renders, supports",
    r"\bfault of Mercer\b": "a bug in Mercer",
    r"\bno table of numbers\b": "not a 2-D numeric array",
    r"\bhas not[.;,)]|\bhave not[.;,)]": "does not have",
    r"\band leave[.;,)]": "and exit",
    r"\bout of a hat\b": "(leave it out)",
    r"\bat hand\b": "available",
    r"\broundish\b": "compact",
    r"\banew\b|\bfor ever\b": "again, indefinitely",
    r"\bculprit\b|\bheirs?\b|\bnameless\b": "cause, successor, unnamed",
    r"\ball the same\b": "nevertheless",
    r"(?<!here )\b(is|are|was|were) no (?!longer|more|less|better|worse|different)": "is not a",
    r"\bas in (Kernel|Spectral|Streaming)\w+": "the meaning itself, or a link",
    r"\bwords like\b": 'a string such as "500MB"',
    r"\b(draws?|drawn) by their number\b": "(say what is random)",
    r"\bnow and then\b|\bfrom time to time\b": "periodically, at intervals",
    r"\bwhat(ever)? (comes|came) (in|out)\b": "input, output",
    r"\bwithout end\b|\bthat does not end\b": "unbounded",
    r"\bby (two|four|\d+) threads\b": "on two threads",
    r"\bgo(es)? uphill\b|\bsays nothing\b|\bsay nothing\b": "increases, is vacuous",
    r"\bout of reach\b|\bput right\b|\bmade right\b": "infeasible, corrected",
    r"\bwhose words\b": "message",
    r"\bthe surest\b|\bsurely\b": "the most reliable",
    r"\bwere asked for\b|\bis asked for\b": "requested",
    r"\bmercer may hold\b": "memory limit",
    r"\bhangs? on\b": "depends on",
    r"\bkind of rows\b|\bkinds of CPU\b": "type of",
}
PAPERS = r"\b(?<!\.)[Pp]apers? 00\d\b(?! \()"  # a paper is named by its authors where users read
PAPER_PAGES = ("theory/", "methods.md", "measured.md")


# Where users read --------------------------------------------------------------------------------


def pages() -> list[Path]:
    return [
        ROOT / "README.md",
        *sorted(DOCS.glob("*.md")),
        *sorted(DOCS.glob("theory/*.md")),
        *sorted(DOCS.glob("examples/*")),
    ]


def public_things() -> Iterator[tuple[str, object]]:
    """Everything that the reference lists."""
    for name in re.findall(r"^ {3}([\w.]+)$", (DOCS / "api.md").read_text(), re.MULTILINE):
        module, _, last = name.rpartition(".")
        home = importlib.import_module(f"mercer.{module}") if module else mercer
        yield name, getattr(home, last)


def docstrings() -> Iterator[tuple[str, str]]:
    for name, thing in public_things():
        yield name, inspect.getdoc(thing) or ""
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_"):
                yield f"{name}.{member}", inspect.getdoc(value) or ""


def messages(path: Path) -> Iterator[tuple[str, str]]:
    """Text of what is raised or warned of in a module, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        is_call = isinstance(node, ast.Call)
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if is_call else ""
        if isinstance(node, ast.Raise) or name in MESSAGES:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{path.name}:{part.lineno}", part.value


def complaints(text: str, *, papers: bool) -> list[str]:
    text = re.sub(r"\s+", " ", text)
    found = []
    for pattern, instead in BANNED.items() | ({(PAPERS, "the authors")} if papers else set()):
        for match in re.finditer(pattern, text):
            around = text[max(0, match.start() - 40) : match.end() + 30]
            found.append(f"“…{around}…”: write {instead}")
    return found


# Laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_are_plain_english(page: Path) -> None:
    text = re.sub(r"```\{include\}.*?```", "", page.read_text(), flags=re.DOTALL)
    papers = not any(name in page.as_posix() for name in PAPER_PAGES)
    assert complaints(text, papers=papers) == []


def test_docstrings_are_plain_english() -> None:
    found = [f"{name}: {c}" for name, text in docstrings() for c in complaints(text, papers=True)]
    assert found == []


@pytest.mark.parametrize("folder", sorted({p.parent.name for p in SOURCES.rglob("*.py")}))
def test_messages_are_plain_english(folder: str) -> None:
    paths = [path for path in SOURCES.rglob("*.py") if path.parent.name == folder]
    texts = [found for path in paths for found in messages(path)]
    assert [f"{place}: {c}" for place, text in texts for c in complaints(text, papers=True)] == []


def test_help_is_plain_english() -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from mercer.cli.app import app

    verbs = re.findall(r"^\| `(\w+)` \|", (DOCS / "cli.md").read_text(), re.MULTILINE)
    assert "cluster" in verbs
    for words in ([], *([verb] for verb in verbs)):
        help_text = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "500"}).output
        assert complaints(help_text, papers=True) == [], words


@pytest.mark.parametrize(
    "sentence",
    ["Parts that are tied to each other.", "A seal is no signature.", "See paper 003 for more."],
)
def test_private_words_are_noticed(sentence: str) -> None:
    assert complaints(sentence, papers=True)


@pytest.mark.parametrize(
    "sentence", ["There is no noise.", "It is no longer needed.", "Paper 003 (Wu et al.) has it."]
)
def test_plain_sentences_pass(sentence: str) -> None:
    assert complaints(sentence, papers=True) == []
