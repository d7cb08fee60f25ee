"""What Mercer stands on: the versions it is tested with, and their licences.

    python scripts/dependencies.py lock      writes requirements/test.lock
    python scripts/dependencies.py licences  writes docs/licences.md, and fails on a licence that
                                             would bind users of Mercer (GPL and its kin)
    python scripts/dependencies.py weights   writes the table of docs/quickstart.md:
                                             the size of each extra

All look at what is installed beside this interpreter, and follow the requirements of
pyproject.toml from there.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "test.lock"
INSTALL_PAGE = ROOT / "docs" / "quickstart.md"
WEIGHED = ("cli", "io", "plot", "report", "image", "dask")
WEIGHTS = "<!-- weights: made by scripts/dependencies.py -->\n"
END_OF_WEIGHTS = "<!-- end of weights -->\n"
LICENCES = ROOT / "docs" / "licences.md"
# Packages that say GPL and may be used all the same, with the reason.
EXCUSED = {
    "docutils": "public domain and BSD, but for one file of Emacs Lisp; builds the pages only"
}
BINDING = ("GPL", "AGPL", "GNU GENERAL PUBLIC", "GNU AFFERO")
LESSER = ("LGPL", "LESSER GENERAL PUBLIC")  # binds changes to the library itself only


def declared() -> dict[str, list[Requirement]]:
    """The requirements of pyproject.toml, by extra; those without one are under ""."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [Requirement(line) for line in lines if not line.startswith("mercer[")]
        for extra, lines in extras.items()
    }


def closure(roots: Iterable[Requirement]) -> dict[str, Distribution]:
    """What is installed of these requirements and of theirs, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(roots)
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found:
            continue
        try:
            found[name] = distribution(wanted.name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        extras = {"", *wanted.extras}
        for line in found[name].requires or []:
            needed = Requirement(line)
            if any(needed.marker is None or needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    return dict(sorted(found.items()))


def licence(package: Distribution) -> str:
    """One line about a package's licence, from what it says of itself."""
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    names = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    text = str(about.get("License") or "").strip().splitlines()
    return ", ".join(names) or (text[0][:60] if text else "not stated")


def is_binding(words: str) -> bool:
    upper = words.upper()
    for lesser in LESSER:
        upper = upper.replace(lesser, "")
    return any(word in upper for word in BINDING)


def lock_text() -> str:
    every = [requirement for lines in declared().values() for requirement in lines]
    lines = [f"{name}=={package.version}" for name, package in closure(every).items()]
    head = (
        "# The versions that the tests were last run with: scripts/dependencies.py lock.\n"
        "# A constraints file: it adds no package, it only says which version of those needed.\n"
    )
    return head + "\n".join(lines) + "\n"


def licences_text() -> str:
    parts = [
        "# Licences of what Mercer stands on\n",
        "Mercer is under the BSD 3-clause licence. It copies no code of the packages below; they "
        "are installed beside it. The table is made by `scripts/dependencies.py licences` from "
        "what each package says of itself, and a test checks that none of them is under the GPL.\n",
    ]
    seen: set[str] = set()
    every = declared()
    for extra in ("", *sorted(set(every) - {"", "test", "dev"}), "test", "dev"):
        found = closure(every[extra])
        new = [name for name in found if name not in seen]
        seen.update(new)
        if new:
            title = f"Extra `{extra}`" if extra else "Always needed"
            rows = [f"| {name} | {licence(found[name])} |" for name in new]
            parts.append(
                "\n".join([f"## {title}\n", "| package | licence |", "|---|---|", *rows, ""])
            )
    return "\n".join(parts)


def bound() -> list[str]:
    """Packages under a licence that would bind users of Mercer."""
    every = closure(requirement for lines in declared().values() for requirement in lines)
    return [n for n, package in every.items() if is_binding(licence(package)) and n not in EXCUSED]


def weight(package: Distribution) -> int:
    """Bytes of the files that were installed."""
    paths = (Path(str(file.locate())) for file in package.files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())


def weights_text() -> str:
    """A row for each extra that users install: its packages and megabytes above the others."""
    every = declared()
    always = closure(every[""])
    rows = [("`pip install mercer`", sum(map(weight, always.values())), always)]
    for extra in WEIGHED:
        more = {n: p for n, p in closure(every[extra]).items() if n not in always}
        rows.append((f"`[{extra}]`", sum(map(weight, more.values())), more))
    lines = ["| install | megabytes | packages |", "| --- | --- | --- |"]
    for name, size, packages in rows:
        plus = "" if packages is always else "+ "
        lines.append(f"| {name} | {plus}{size / 1e6:,.0f} | {plus}{len(packages)} |")
    return "\n".join(lines) + "\n"


def main(verb: str) -> None:
    if verb == "lock":
        LOCK.parent.mkdir(exist_ok=True)
        LOCK.write_text(lock_text())
    elif verb == "licences":
        if bound():
            raise SystemExit(f"under the GPL or its kin: {', '.join(bound())}")
        LICENCES.write_text(licences_text(), encoding="utf-8")
    elif verb == "weights":
        before, _, rest = INSTALL_PAGE.read_text(encoding="utf-8").partition(WEIGHTS)
        after = rest.partition(END_OF_WEIGHTS)[2]
        text = f"{before}{WEIGHTS}{weights_text()}{END_OF_WEIGHTS}{after}"
        INSTALL_PAGE.write_text(text, encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
