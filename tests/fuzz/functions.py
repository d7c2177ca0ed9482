"""Calls of all functions with odd arguments: in good time, and of no more memory than is allowed.

It tries patterns that multiply what is tried, texts that double, counts without end, one call in
another.
"""

from __future__ import annotations

import resource
from functools import cache
from typing import TYPE_CHECKING

from ksql.control.statements.execute import RequestFailed
from ksql.functions.registry import BUILTINS
from tests.unit.world import World

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

DEEPEST = 12
MOST_KB = 1_500_000
"""Of memory that one call may add: ten million numbers take 400 MB."""
_FRESH_AFTER = 500
_PATTERNS = (
    *(
        "(a+)+$",
        "(a|aa)+$",
        "(?=a)(a|aa)+$",
        "(a*)*b",
        "((a|aa)+)\\1?$",
        ".{0,900}",
        "(a?){30}a{30}",
    ),
    *("[^a]", "\\p{L}", "(?i)[\\p{L}&&[^a]]", "a{1,19}", "\\1", "(?<!a)", "%_%", "_%_%_%", "."),
    *("y''1''", "uuuuH", "[HH]", "z", "zzzz", "ppppH", "SSS", "yyyy-MM-dd", "[[[[", "n", "EEEE"),
)
_TEXTS = (
    "a",
    "1",
    "+1111111111111111111",
    "aaaaaaaaaaaaaaaaaaaa!",
    "\\\\",
    "{}",
    "[1]",
    "$.a",
    "é",
    "",
)
_WORDS = ("ascii", "hex", "utf8", "base64", "yyyy", "UTC", "MILLISECONDS", "sha256", "BIG_ENDIAN")
_NUMBERS = ("0", "1", "-1", "7", "1000", "9999999", "2147483647", "9223372036854775807", "1.5")
_NUMBERS_TOO = ("1e300", "CAST(1.5 AS DECIMAL(9, 3))")


@cache
def _names() -> list[str]:
    return sorted(each.name for each in BUILTINS.all() if each.kind == "SCALAR")


class _Here:
    """The world in which values are inserted, made again now and then."""

    def __init__(self) -> None:
        self.tries = 0
        self.world = World()

    def insert(self, value: str) -> None:
        if self.tries % _FRESH_AFTER == 0:
            self.world = World(
                "CREATE STREAM s (a STRING) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON',"
                " PARTITIONS=1);"
            )
        self.tries += 1
        self.world.run(f"INSERT INTO s VALUES ({value});")


@cache
def _here() -> _Here:
    return _Here()


def attempt(chance: random.Random) -> tuple[object, Callable[[], bool]]:
    """An expression of some functions as the value of an INSERT."""
    value = _value(chance, chance.choice((1, 1, 2, 3, DEEPEST)))
    given = value if chance.random() < 0.5 else f"CAST({value} AS STRING)"

    def read() -> bool:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            _here().insert(given)
        except RequestFailed:
            return False
        finally:
            added = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert added < MOST_KB, f"{added} kB of memory"
        return True

    return given, read


def _value(chance: random.Random, depth: int) -> str:
    if depth <= 0 or chance.random() < 0.15:
        return _leaf(chance)
    kind = chance.random()
    if kind < 0.1:
        return f"ARRAY[{', '.join(_value(chance, 0) for _ in range(chance.randint(1, 3)))}]"
    if kind < 0.2:
        return f"({_value(chance, depth - 1)} || {_value(chance, depth - 1)})"
    if kind < 0.3:
        return _lambda(chance, depth)
    if kind < 0.35:
        return f"({_value(chance, depth - 1)} LIKE {_text(chance)})"
    name = chance.choice(_names())
    many = range(chance.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))
    inner = chance.randrange(len(many)) if many else 0
    args = (_value(chance, depth - 1) if each == inner else _leaf(chance) for each in many)
    return f"{name}({', '.join(args)})"


def _lambda(chance: random.Random, depth: int) -> str:
    over = f"GENERATE_SERIES(1, {chance.choice(_NUMBERS[:6])})"
    body = chance.choice(("x", "x + 1", f"{_value(chance, depth - 2)}", "CAST(x AS STRING)"))
    if chance.random() < 0.5:
        return f"TRANSFORM({over}, x => {body})"
    start = _leaf(chance)
    return f"REDUCE({over}, {start}, (s, x) => {chance.choice(('s', 's || s', 's + x', body))})"


def _leaf(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.55:
        return _text(chance)
    if kind < 0.9:
        return chance.choice((*_NUMBERS, *_NUMBERS_TOO))
    return chance.choice(("NULL", "true", "ARRAY['a', 'b']", "MAP('a' := 'b')", "ARRAY[1, 2]"))


def _text(chance: random.Random) -> str:
    source = chance.choice((_PATTERNS, _PATTERNS, _TEXTS, _WORDS))
    count = chance.choice((1, 1, 1, 3, 12, 40)) if source is not _WORDS else 1
    text = "".join(chance.choice(source) for _ in range(count))
    if chance.random() < 0.2:
        text = chance.choice(source) * chance.choice((5, 40, 300))
    return "'" + text.replace("'", "''") + "'"
