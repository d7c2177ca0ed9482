"""A query that is replaced again and again, and what must have come out of it.

Plan ``v`` lets a record pass unless ``N % 4 == v % 3``, and writes ``v`` into each row. So a record
that no row shows must have been dropped by a plan, and a row's plan must let it pass. The plans of
a key's records never go back, and the command topic has all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

EXACTLY_ONCE = "exactly_once_v2"
GUARANTEES = ("at_least_once", EXACTLY_ONCE)
KINDS = ("stateless", "aggregate", "join")
KEYS = ("k0", "k1", "k2", "k3")
ROUND = 4
"""Records per key that are written at once; the last of them passes every plan."""
_TEXTS = {
    "stateless": ("STREAM", "SELECT K, N, {v} AS V FROM {source} WHERE {passes}"),
    "aggregate": (
        "TABLE",
        "SELECT K, COUNT(*) AS C, LATEST_BY_OFFSET(N) AS N, {v} AS V FROM {source} "
        "WHERE {passes} GROUP BY K",
    ),
    "join": (
        "STREAM",
        "SELECT S.K AS K, N, {v} AS V, W FROM {source} S LEFT JOIN {table} T ON S.K = T.K "
        "WHERE {passes}",
    ),
}


class Cell(NamedTuple):
    """A column of the table."""

    guarantee: str
    kind: str


CELLS = tuple(Cell(guarantee, kind) for guarantee in GUARANTEES for kind in KINDS)


@dataclass
class Query:
    """A replaced query: ``sent`` records per key, ``version`` is the newest plan that was tried."""

    cell: Cell
    name: str
    table: str
    sent: int = 0
    version: int = 1

    @property
    def source(self) -> str:
        """The stream, and the topic, that it reads."""
        return f"{self.name}_IN"

    @property
    def settings(self) -> dict[str, str]:
        """What its statements are run with."""
        return {
            "auto.offset.reset": "earliest",
            "cache.max.bytes.buffering": "0",
            "processing.guarantee": self.cell.guarantee,
        }

    @property
    def beginning(self) -> str:
        """How a statement begins that replaces it."""
        return self.text("CREATE OR REPLACE").partition(" AS ")[0]

    def text(self, verb: str) -> str:
        """The statement that makes it, or replaces it, with its newest plan."""
        entity, select = _TEXTS[self.cell.kind]
        condition = f"N % {ROUND} <> {self.version % 3}"
        query = select.format(
            v=self.version, source=self.source, table=self.table, passes=condition
        )
        return f"{verb} {entity} {self.name} AS {query};"

    def plans(self, statements: Sequence[str]) -> list[int]:
        """The plans that a log of statements knows, in their order."""
        return [
            int(text.split(" AS V")[0].rsplit(" ", 1)[1])
            for text in statements
            if f" {self.name} AS SELECT " in text
        ]


def passes(version: int, n: int) -> bool:
    """The filter of a plan."""
    return n % ROUND != version % 3


def judge(rows: Sequence[tuple[int, int]], sent: int, logged: Sequence[int], *, once: bool) -> str:
    """What is wrong with a key's rows, each ``(N, V)`` in their order; empty if nothing is.

    ``logged`` are the plans of the log in their order, ``sent`` is how many records there were.
    """
    makers: dict[int, list[int]] = {}
    for n, version in rows:
        makers.setdefault(n, []).append(version)
    for n, versions in makers.items():
        if once and len(versions) > 1:
            return f"record {n} has {len(versions)} results, of the plans {versions}"
        if unknown := set(versions) - set(logged):
            return f"record {n} has a result of plan {unknown}, which the log does not know"
        if wrong := [v for v in versions if not passes(v, n)]:
            return f"record {n} has a result of plan {wrong}, which drops it"
    first_rows = list(dict.fromkeys(n for n, _ in rows))
    if first_rows != sorted(first_rows):
        return f"out of order: {first_rows[-8:]}"
    at = 0  # the earliest plan that may have made a record, given those before it
    for n in range(sent):
        versions = makers.get(n, [])
        fits = [
            place
            for place in range(at, len(logged))
            if (logged[place] in versions if versions else not passes(logged[place], n))
        ]
        if not fits:
            what = f"a result of plan {versions}" if versions else "no result"
            return f"record {n} has {what}, behind records of plan {logged[at]}"
        at = fits[0]
    return ""
