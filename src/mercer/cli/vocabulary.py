"""Messages of the API in the words of the command line: options for parameters, printable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from mercer._run.frozen import frozen
from mercer._run.printable import printable
from mercer._run.url import Url

SPELLINGS = {  # where not spelt like the parameter alone
    "n_clusters": ("--n-clusters", "-k"),
    "n_segments": ("--n-segments", "-k"),
    "n_jobs": ("--jobs", "--n-jobs"),
    "random_state": ("--seed", "--random-state"),
}
VALUE = r"""(\[[^\]]*\]|'[^']*'|"[^"]*"|[^\s;,:()]*)"""  # what follows "parameter="


@frozen(slots=False)
class Vocabulary:
    """The names that one command uses."""

    options: Mapping[str, str]  # parameter → option
    paths: tuple[str, ...]  # on the command line; they are not translated


_vocabulary: ContextVar[Vocabulary | None] = ContextVar("mercer_vocabulary", default=None)


def option_of(name: str) -> str:
    """What the command line calls a parameter."""
    return SPELLINGS.get(name, ("--" + name.replace("_", "-"),))[0]


@contextmanager
def speaking_of(parameters: Iterable[Any], values: Iterable[Any]) -> Iterator[None]:
    """Inside, messages are about a command with these parameters and values."""
    options = {
        name.removeprefix("--").replace("-", "_"): parameter.opts[0]
        for parameter in parameters
        for name in parameter.opts
        if name.startswith("--")
    }
    paths = tuple(str(value) for value in values if isinstance(value, Path | Url))
    token = _vocabulary.set(Vocabulary(options, paths))
    try:
        yield
    finally:
        _vocabulary.reset(token)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; control characters in it are escaped."""
    typer.echo(printable(text), err=err)


def in_options(text: str) -> str:
    """A message of the API with options for parameters: ``n_jobs=-3`` becomes ``--jobs -3``.

    A name without a value is translated only if it has an underscore, so is no English word.
    """
    vocabulary = _vocabulary.get()
    if vocabulary is None:
        return text
    names = "|".join(map(re.escape, vocabulary.options))
    alone = "|".join(re.escape(name) for name in vocabulary.options if "_" in name)
    paths = "".join(f"{re.escape(path)}|" for path in vocabulary.paths)
    pattern = rf"{paths}(?<![\w-])(?:({names})={VALUE}|({alone or names})(?!\w))"

    def translated(match: re.Match[str]) -> str:
        name, value, lonely = match.groups()
        if name is None and lonely is None:  # a path
            return match[0]
        words = f"{vocabulary.options[name or lonely]} {_plain(value or '')}"
        return words.rstrip()

    return re.sub(pattern, translated, text)


def _plain(value: str) -> str:
    """A value as it is typed: ['a', 'b'] becomes a,b."""
    if value[:1] == "[":
        return ",".join(_plain(item.strip()) for item in value[1:-1].split(","))
    return value.strip("'\"")
