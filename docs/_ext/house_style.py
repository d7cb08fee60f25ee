"""Docstrings and pages as this project writes them, translated for Sphinx.

* Attributes that share an entry (``coefficients_, bias_ : arrays``) get one each.
* ``|x - y|`` is a length, not a substitution.
* ``[chen2022, epperly2024]`` are keys of references.bib and become citations.
* ``n_i`` and ``D^−½`` in pages of formulas have an index and an exponent.
* Links to benchmarks/results, which lead somewhere in the repository, lead to their pages here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

__all__ = ["cite_in_markdown", "cite_in_rst", "raised_and_lowered", "separated", "setup"]

DOCS = Path(__file__).parent.parent
BIBLIOGRAPHY = DOCS / "references.bib"
KEYS = set(re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY.read_text(), re.MULTILINE))
BRACKETS = re.compile(r"(?<!`)\[(\w+(?:,\s[^]]*)?)\](?![(\[`]|: http)")
FORMULAS = ("theory/", "methods")
CODE = re.compile(r"(```.*?```|`[^`]*`|\]\([^)]*\))", re.DOTALL)
INDEX = re.compile(r"(?<![\w<])(\w{1,3})_(\{[^}]+\}|\w{1,2})(?!\w)")
EXPONENT = re.compile(r"\^([-−]?(?:½|\w))")
ENTRY = re.compile(r"^(\w[\w, *]*?) : (.+)$")


def separated(lines: list[str]) -> list[str]:
    """Docstring lines in which each attribute has an entry of its own, with the shared type."""
    result: list[str] = []
    section = ""
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[number + 1].strip())
        if underlined:
            section = line.strip()
        entry = ENTRY.match(line) if section == "Attributes" else None
        if entry is None:
            result.append(line)
            continue
        *others, last = entry.group(1).split(", ")
        for name in others:
            result += [f"{name} : {entry.group(2)}", f"    See `{last}`."]
        result.append(f"{last} : {entry.group(2)}")
    return result


def _cited(text: str, role: str) -> str:
    def replace(match: re.Match[str]) -> str:
        first, *rest = re.split(r",\s+", match.group(1))
        keys = [key for key in (first, *rest) if key in KEYS]
        if first not in KEYS:
            return match.group(0)
        others = [word for word in rest if word not in KEYS]  # such as "Algorithm 3"
        return f"{role}`{','.join(keys)}`" + (f" ({', '.join(others)})" if others else "")

    return BRACKETS.sub(replace, text)


def cite_in_rst(text: str) -> str:
    return _cited(text, ":cite:p:")


def cite_in_markdown(text: str) -> str:
    return _cited(text, "{cite:p}")


def raised_and_lowered(text: str) -> str:
    """Indices and exponents of formulas, outside code, as HTML."""
    parts = CODE.split(text)
    for place in range(0, len(parts), 2):
        lowered = INDEX.sub(lambda m: f"{m[1]}<sub>{m[2].strip('{}')}</sub>", parts[place])
        parts[place] = EXPONENT.sub(r"<sup>\1</sup>", lowered)
    return "".join(parts)


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    plain = [line if ">>>" in line or "`" in line else line.replace("|", r"\|") for line in lines]
    lines[:] = cite_in_rst("\n".join(separated(plain))).split("\n")


def _page(app: Any, docname: str, source: list[str]) -> None:
    if str(app.env.doc2path(docname)).endswith(".md"):
        text = source[0].replace("../benchmarks/results/", "results/")
        if docname.startswith(FORMULAS):
            text = raised_and_lowered(text)
        source[0] = cite_in_markdown(text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    app.connect("source-read", _page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
