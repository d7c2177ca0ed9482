"""The overloads that have been released, by their signatures: stored plans name them.

``python -m tests.unit.functions.released`` adds the new ones, as a part of a release; none is ever
taken away.
"""

from __future__ import annotations

import re
from pathlib import Path

from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import signature

FILE = Path(__file__).parent / "signatures.txt"
CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"


def released() -> set[str]:
    """Return the lines of the file."""
    return set(FILE.read_text(encoding="utf-8").splitlines())


def present() -> set[str]:
    """Return such a line for every overload of the library."""
    return {f"{f.name} {signature(each)}" for f in BUILTINS.all() for each in f.overloads}


def is_release(changelog: str) -> bool:
    """Whether nothing in the changelog waits for a release."""
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    return waiting is None or not waiting[1].strip()


if __name__ == "__main__":
    FILE.write_text("\n".join(sorted(released() | present())) + "\n", encoding="utf-8")
