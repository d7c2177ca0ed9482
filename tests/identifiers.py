"""Finds names in the code and its tests that say only that a line came before, or nothing.

``python -m tests.identifiers`` prints file, line and name, and exits with 1 if there is any; called
by ``make lint``. What is left stands in ``LEFT`` with its number; it may only shrink.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PLACES = ("ksql", "server", "qtt", "migrations", "docs", "tests")
VAGUE = frozenset({"anew", "asked", "found", "made", "told", "wanted", "whom"})
PRIVATE = frozenset(
    {"giver", "lookout", "luggage", "pen", "shelf", "standing", "storeroom", "struck", "tenure"}
)
"""Words of this project's past that no user of ksqlDB, Kafka or Spark knows."""
_WORDS = VAGUE | PRIVATE
# names per file that are still to be renamed
LEFT: dict[str, int] = {}


def vague_names(source: str) -> list[tuple[int, str]]:
    """List line and name of what a module binds: variables, parameters, functions, fields."""
    bound = (name for node in ast.walk(ast.parse(source)) for name in _bound(node))
    return sorted((line, name) for line, name in bound if name.strip("_").lower() in _WORDS)


def _bound(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield node.lineno, name
        case ast.arg(arg=name):
            yield node.lineno, name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield node.lineno, name
        case _:
            return


def main() -> int:
    """Print what is new, and what ``LEFT`` lists too high; return 1 if there is any."""
    names = {
        file.relative_to(ROOT).as_posix(): vague_names(file.read_text(encoding="utf-8"))
        for place in PLACES
        for file in sorted((ROOT / place).rglob("*.py"))
    }
    counts = Counter({file: len(vague) for file, vague in names.items() if vague})
    wrong = [
        f'{file}:{line}: "{name}": give it the name of the thing'
        for file, vague in names.items()
        if len(vague) > LEFT.get(file, 0)
        for line, name in vague
    ]
    wrong += [
        f"{file}: {counts[file]} are left: set it in LEFT"
        for file, number in LEFT.items()
        if counts[file] < number
    ]
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
