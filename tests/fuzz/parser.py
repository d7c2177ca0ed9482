"""Statements of the tests, damaged, and soups of words: parse, or say where not."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from ksql.core.errors import KsqlError
from ksql.core.ident import RESERVED
from tests.fuzz.mutate import damaged
from tests.parsing import parse

_ROOT = Path(__file__).resolve().parents[1]
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_SIGNS = [
    *"()[]{}<>,.;:'\"`@$=+-*/%\\!|&^~#?\n\t\0é漢",
    *("->", "=>", "<=", "--", "/*", "*/", "${", "''"),
]
_DEEP = ["(", "ARRAY<", "CASE WHEN ", "NOT ", "-", "ARRAY[", "STRUCT(", "x => ", "[", "CAST("]


@cache
def texts() -> list[str]:
    """The statements of the golden tests."""
    return [
        statement
        for file in sorted((_ROOT / "golden").rglob("*.sql"))
        for statement in file.read_text("utf-8").split(";")
        if statement.strip()
    ]


@cache
def words() -> list[str]:
    """What statements are made of."""
    keywords = {word for text in texts() for word in _WORD.findall(text)}
    return sorted({*keywords, *RESERVED, *_SIGNS})


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """A text, and its reading."""
    kind = chance.random()
    if kind < 0.1:
        text = " ".join(chance.choices(words(), k=chance.randrange(60)))
    elif kind < 0.15:
        text = "SELECT " + chance.choice(_DEEP) * chance.randrange(20_000) + " FROM s;"
    elif kind < 0.2:
        text = "".join(map(chr, chance.choices(range(1, 0x3000), k=chance.randrange(200))))
    else:
        parts = _WORD.findall(";".join(chance.choices(texts(), k=chance.randrange(1, 4))) + ";")
        damaged(chance, parts, words())
        text = "".join(parts)
    return text, lambda: _read(text)


def _read(text: str) -> bool:
    try:
        parse(text)
    except KsqlError as error:
        if not error.text():
            raise AssertionError("an error without a text") from error
        return False
    return True
