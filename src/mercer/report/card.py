"""A report in a notebook: a small card, readable on light and dark grounds."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from mercer._run.printable import printable
from mercer.report.words import facts

if TYPE_CHECKING:
    from mercer.report.report import Report


CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"


def card(report: Report) -> str:
    """HTML of its own, without scripts; every text is escaped."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:600">{escape(what)}</th>'
        f'<td style="{CELL}">{escape(value)}</td></tr>'
        for what, value in facts(report)
    )
    texts = [*(("warning", text) for text in report.warnings), *(("note", t) for t in report.notes)]
    said = "".join(f"<li><b>{kind}:</b> {escape(text)}</li>" for kind, text in texts)
    return (
        '<section style="font-family:system-ui,sans-serif;border:1px solid #8888;'
        'border-radius:8px;padding:8px 14px;display:inline-block;max-width:56rem">'
        f"<strong>{escape(report.estimator)}</strong>"
        f'<table style="border:0;margin:6px 0">{rows}</table>'
        + (f'<ul style="margin:4px 0;padding-left:1.2em">{said}</ul>' if said else "")
        + "</section>"
    )


def escape(text: str) -> str:
    """No markup and no control characters: browsers ignore those, terminals do not."""
    return html.escape(printable(text))
