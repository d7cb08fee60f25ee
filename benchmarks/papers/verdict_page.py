"""The verdict section that each paper's page has: claim by claim, with the number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

WORDS = {
    "holds": "holds",
    "partly": "holds partly",
    "not": "**does not hold**",
    "undecided": "undecided",
}

Verdict = tuple[str, str, str]  # the claim, our number, a key of WORDS


def decide(share: float) -> str:
    """In all cases, in most or some, in hardly any."""
    return "holds" if share >= 0.9 else "partly" if share >= 0.4 else "not"


def verdicts(rows: Iterable[Verdict]) -> str:
    lines = [f"| {claim} | {number} | {WORDS[word]} |" for claim, number, word in rows]
    head = "## Verdict\n\n| the paper | measured here | |\n|---|---|---|\n"
    return head + "\n".join(lines)


def about(found: dict[str, Any]) -> str:
    """Machine, versions and seeds of a result."""
    machine = found["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    seeds = f"; seeds {found['seeds'][0]}–{found['seeds'][-1]}" if found.get("seeds") else ""
    return (
        f"{machine['date']}, commit {machine['commit']}, Python {machine['python']}, {versions}; "
        f"{machine['processor']}, {machine['cores']} cores{seeds}. CPU seconds of one thread."
    )
