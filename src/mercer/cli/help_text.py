"""The help of an option, made from the descriptions of a parameter in docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mercer.cli.domains import Domain
from mercer.cli.signatures import Parameter
from mercer.cli.vocabulary import option_of

OBJECTS = re.compile(r"\b(objects?|functions?|callables?|arrays?)\b")
CLAUSE = re.compile(
    r"((?:\((?:[^()]|\([^()]*\))*\)|(?!; |\. (?=[A-Z\"`(])).)+)"  # up to the first "; " or ". "
    r"(?:; |\. |$)"  # outside of parentheses
)


def help_of(owners: Mapping[str, Parameter], domain: Domain, n_methods: int) -> str:
    """A sentence of the docstring, the words to choose from, whose option it is, its default."""
    first = next(iter(owners.values()))
    sentence, default = summarize(first.description, first.default)
    defaults = "; ".join(filter(None, [default, *_other_defaults(owners, first.default)]))
    parts = [_with_choices(sentence, domain), *_limits(owners, n_methods)]
    is_phrase = first.default is None  # no value that could be typed, but what happens without it
    words = f"(default{':' if is_phrase else ''} {defaults})"
    return " ".join([*parts, words] if defaults else parts) + "."


def _with_choices(sentence: str, domain: Domain) -> str:
    """A sentence that lists the words to choose from, if there are several."""
    if OBJECTS.search(sentence):  # objects cannot be typed, their names can
        sentence = ""
    named = [word for word in domain.words if word in sentence]
    if len(domain.words) > 1 and named != list(domain.words):
        parts = [domain.choices, sentence] if named else [sentence, domain.choices]
        sentence = ("; " if named else ": ").join(filter(None, parts))
    if not sentence[:1].isascii() or re.split("[ ,:]", sentence)[0] in domain.words:
        return sentence
    return sentence[:1].upper() + sentence[1:]


def _limits(owners: Mapping[str, Parameter], n_methods: int) -> Iterator[str]:
    """Which methods have the option, and which take "auto", unless all do."""
    if len(owners) < n_methods:
        yield f"({', '.join(owners)} only)"
    takers = [method for method, owner in owners.items() if "auto" in owner.domain]
    if 0 < len(takers) < len(owners):
        yield f"(auto: {', '.join(takers)} only)"


def _other_defaults(owners: Mapping[str, Parameter], usual: Any) -> list[str]:
    """The defaults that differ from the usual one, and the methods that have them."""
    methods: dict[Any, list[str]] = {}
    for method, parameter in owners.items():
        if parameter.default != usual:
            methods.setdefault(parameter.default, []).append(method)
    return [f"{', '.join(names)}: {default}" for default, names in methods.items()]


def summarize(description: str, default: Any) -> tuple[str, str]:
    """The first sentence of a description in the words of the command line, and the default.

    What the description says of a default that is None or a word ("auto") goes with the default.
    """
    clauses = [match[1].rstrip(".") for match in CLAUSE.finditer(description)] or [""]
    if isinstance(default, bool | int | float):
        return _plain(clauses[0]), "" if isinstance(default, bool) else str(default)
    word = "None" if default is None else f'"{default}"'
    meaning = re.compile(rf"(?:,? or )?(?:[Ii]f {word},|{word}(?: is| means| makes| for|:)) (.+)$")
    match = next(filter(None, map(meaning.search, clauses)), None)
    words = [str(default)] if default is not None else []
    words += [match[1]] if match else []
    return _plain(meaning.sub("", clauses[0])), _plain(": ".join(words))


def _plain(text: str) -> str:
    """Without the marks of docstrings; parameters become options."""
    text = re.sub(r" \[[a-z]+\d{4}[^\]]*\]", "", text)
    text = re.sub(r"``?([^`]+)``?", lambda m: option_of(m[1]) if "_" in m[1] else m[1], text)
    return re.sub(r'"(\w+)"', r"\1", text).strip()
