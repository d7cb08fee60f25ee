"""A report as text for terminals, as Markdown, and as a card for notebooks."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mercer._run.printable import printable
from mercer.report.facts import clusters_table, columns_table, list_facts, messages, stages_table

if TYPE_CHECKING:
    from mercer.report.report import Report


WIDTH = 80  # columns of a terminal
CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"


def as_text(report: Report) -> str:
    """Lines of at most 80 characters, where words allow it."""
    lines = [printable(report.estimator, keep="")]
    lines += [_wrap(f"  {fact.name:<14} ", fact.text) for fact in list_facts(report)]
    table = stages_table(report)
    lines += [
        f"  {printable(name, keep=''):<14}{seconds:>9}{cpu:>9}{memory:>13}{values:>16}"
        for name, seconds, cpu, memory, values in (table.head, *table.rows)
    ]
    lines += [_wrap(f"  {kind}: ", text) for kind, text in messages(report)]
    return "\n".join(lines)


def as_markdown(report: Report) -> str:
    """Title, facts, warnings, notes, and tables of clusters, columns and stages."""
    found = [(fact.name, fact.text) for fact in list_facts(report)]
    parts = [f"# {_plain(report.estimator)}", _markdown_table(("what", "value"), found)]
    for title, texts in (("Warnings", report.warnings), ("Notes", report.notes)):
        if texts:
            parts += [f"## {title}", "\n".join(f"- {_plain(text)}" for text in texts)]
    for table in (clusters_table(report), columns_table(report), stages_table(report)):
        if table.rows:
            parts += [f"## {table.title}", _markdown_table(table.head, table.rows), table.note]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_card(report: Report) -> str:
    """HTML without scripts, readable on light and dark backgrounds; every text is escaped."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:600">{_escape(fact.name)}</th>'
        f'<td style="{CELL}">{_escape(fact.text)}</td></tr>'
        for fact in list_facts(report)
    )
    items = "".join(f"<li><b>{kind}:</b> {_escape(text)}</li>" for kind, text in messages(report))
    return (
        '<section style="font-family:system-ui,sans-serif;border:1px solid #8888;'
        'border-radius:8px;padding:8px 14px;display:inline-block;max-width:56rem">'
        f"<strong>{_escape(report.estimator)}</strong>"
        f'<table style="border:0;margin:6px 0">{rows}</table>'
        + (f'<ul style="margin:4px 0;padding-left:1.2em">{items}</ul>' if items else "")
        + "</section>"
    )


def _wrap(start: str, text: str) -> str:
    """The text after `start`; further lines are indented as far."""
    return textwrap.fill(
        printable(text, keep=""),
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_plain, line)) + " |" for line in lines)


def _plain(value: str) -> str:
    """Names of files and columns stay text: they neither cut a table nor start markup."""
    flat = printable(" ".join(str(value).split()))
    for sign in "\\`*_|[]#":
        flat = flat.replace(sign, f"\\{sign}")
    return flat.replace("<", "&lt;").replace(">", "&gt;")


def _escape(text: str) -> str:
    """No markup and no control characters: browsers ignore those, terminals do not."""
    return html.escape(printable(text))
