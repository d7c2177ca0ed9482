"""A query that is rebuilt and rolled back again and again, and what must have come out of it.

As in ``switch_model`` plan ``v`` drops records with ``N % 4 == v % 3``, and ``v`` is in each row. A
row of a table shows by itself whether its plan can have made it: ``row`` computes it from the plan
and its last record. So a row that mixes two plans is seen, whenever it was written.

Besides the keys that grow there are some of one record each. Each plan drops one of them, which
goes with a cut-over and comes back with another. The row of ``e0`` is the same under all plans: no
cut-over writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from ksql.control.engine.changes import (
    BeginRebuild,
    Change,
    CutOverQuery,
    EndQuery,
    EndRebuild,
    PutQuery,
)
from ksql.control.log.record import decode
from tests.crash.switch_model import EXACTLY_ONCE, GUARANTEES, KEYS, ROUND, Cell, Query, passes
from tests.kafka.records import Seen

KINDS = ("stateless", "aggregate", "windowed", "session", "join", "fk")
CELLS = tuple(Cell(guarantee, kind) for guarantee in GUARANTEES for kind in KINDS)
STREAMS = ("stateless", "join")
EQUAL = "e0"
SINGLE = {"s0": 0, "s1": 1, "s2": 2, EQUAL: -1}
"""Keys of tables that have one record, and its N."""
WINDOW_MS = 10_000
_STEP_MS = 500
_PLAN = "CASE WHEN {n} < 0 THEN 0 ELSE {v} END AS V"
_VERSION = re.compile(r"ELSE (\d+)\s+END\)? AS V", re.IGNORECASE)
_TEXTS = {
    "stateless": "SELECT K, N, {plan} FROM {source} WHERE {passes}",
    "join": "SELECT S.K AS K, N, {plan}, W FROM {source} S LEFT JOIN {table} T ON S.K = T.K "
    "WHERE {passes}",
    "fk": "SELECT L.K AS K, N, {plan}, W FROM {source} L JOIN {table} T ON L.FK = T.K "
    "WHERE {passes}",
    "aggregate": "SELECT K, {counted} FROM {source} WHERE {passes} GROUP BY K",
    "windowed": "SELECT K, {counted}, {bounds} FROM {source} WINDOW TUMBLING (SIZE 10 SECONDS) "
    "WHERE {passes} GROUP BY K",
    "session": "SELECT K, {counted}, {bounds} FROM {source} WINDOW SESSION (3 SECONDS) "
    "WHERE {passes} GROUP BY K",
}


class Row(NamedTuple):
    """A row of a table: its key as it is in Kafka, its columns."""

    key: str
    value: Mapping[str, Any]


class History(NamedTuple):
    """The plans and rebuilds of a query that the command topic knows.

    ``plans`` are those that it had, in their order; ``begun`` counts the rebuilds and rollbacks,
    ``ended`` those that were given up. ``version`` and ``former`` are the numbers of the versions.
    """

    plans: tuple[int, ...] = ()
    begun: int = 0
    ended: int = 0
    under_way: bool = False
    version: int = 0
    former: int | None = None

    def after(self, change: object) -> History:
        """It with one change more, if that is the query's."""
        match change:
            case PutQuery(query):
                return self._replace(plans=(*self.plans, plan_in(query.statement)))
            case CutOverQuery(query) if query.cut_over is not None:
                return self._replace(
                    plans=(*self.plans, plan_in(query.statement)),
                    under_way=False,
                    version=query.version_number,
                    former=query.cut_over.former,
                )
            case BeginRebuild():
                return self._replace(begun=self.begun + 1, under_way=True)
            case EndRebuild():
                return self._replace(ended=self.ended + 1, under_way=False)
            case EndQuery():
                return self._replace(under_way=False)
            case _:
                return self


def histories(commands: Sequence[Seen]) -> dict[str, History]:
    """Return the histories that the command topic knows, by the ids of the queries."""
    known: dict[str, History] = {}
    for seen in commands:
        for change in _changes(seen.offset, str(seen.key), json.dumps(seen.value)):
            match change:
                case PutQuery(query) | CutOverQuery(query) if _VERSION.search(query.statement):
                    query_id = query.id
                case BeginRebuild(rebuild):
                    query_id = rebuild.candidate.id
                case EndRebuild(query_id) | EndQuery(query_id):
                    pass
                case _:
                    continue
            known[query_id] = known.get(query_id, History()).after(change)
    return known


@cache
def _changes(offset: int, key: str, value: str) -> tuple[Change, ...]:
    return decode(offset, key.encode(), value.encode()).changes


def plan_in(statement: str) -> int:
    """The plan that a statement states."""
    stated = _VERSION.search(statement)
    assert stated is not None, statement
    return int(stated[1])


@dataclass
class Rebuilt(Query):
    """``begin_ms`` is the time of the first records, a multiple of the windows' size."""

    begin_ms: int = 0
    query_id: str = ""

    @property
    def is_table(self) -> bool:
        """Whether its result is a table."""
        return self.cell.kind not in STREAMS

    @property
    def entity(self) -> str:
        """Return the kind of its result."""
        return "TABLE" if self.is_table else "STREAM"

    @property
    def once(self) -> bool:
        """Whether no row may come twice."""
        return self.cell.guarantee == EXACTLY_ONCE

    def text(self, verb: str) -> str:
        """The statement that makes it, or rebuilds it, with its newest plan."""
        kind = self.cell.kind
        n = "N" if kind in (*STREAMS, "fk") else "LATEST_BY_OFFSET(N)"
        plan = _PLAN.format(n=n, v=self.version)
        select = _TEXTS[kind].format(
            plan=plan,
            counted=f"COUNT(*) AS C, LATEST_BY_OFFSET(N) AS N, {plan}",
            bounds="WINDOWSTART AS WS, WINDOWEND AS WE",
            source=self.source,
            table=self.table,
            passes=f"N % {ROUND} <> {self.version % 3}",
        )
        mode = " WITH (REPLACE_MODE='rebuild')" if "REPLACE" in verb else ""
        return f"{verb} {self.entity} {self.name}{mode} AS {select};"

    @property
    def declaration(self) -> str:
        """The statement that declares its source."""
        entity, key = ("TABLE", "PRIMARY KEY") if self.cell.kind == "fk" else ("STREAM", "KEY")
        return (
            f"CREATE {entity} {self.source} (K STRING {key}, N INT, FK STRING) WITH "
            f"(KAFKA_TOPIC='{self.source}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        )

    def records(self, count: int) -> Iterator[tuple[str, int, int]]:
        """Key, N and time of the next records, so many of each key that grows."""
        if self.sent == 0 and self.is_table:
            yield from ((key, n, self.begin_ms) for key, n in SINGLE.items())
        for key in KEYS:
            for n in range(self.sent, self.sent + count):
                yield key, n, self.time_ms(n)
        self.sent += count

    def time_ms(self, n: int) -> int:
        """The time of a record of the keys that grow; each round has a window of its own."""
        return self.begin_ms + n // ROUND * WINDOW_MS + n % ROUND * _STEP_MS

    # --- the rows of a table

    def row(self, key: str, plan: int, n: int) -> dict[str, Any]:
        """The columns that a plan gives a key by records up to ``n``, which passes."""
        kind, single = self.cell.kind, key in SINGLE
        value: dict[str, Any] = {"N": n, "V": 0 if n < 0 else plan}
        if kind == "fk":
            return value | {"W": f"w{foreign(key, n)}"}
        begin = 0 if kind == "aggregate" else n // ROUND * ROUND
        counted = [n] if single else [i for i in range(begin, n + 1) if passes(plan, i)]
        value["C"] = len(counted)
        time_ms = (lambda _n: self.begin_ms) if single else self.time_ms
        if kind == "session":
            return value | {"WS": time_ms(counted[0]), "WE": time_ms(n)}
        if kind == "windowed":
            start = time_ms(n) // WINDOW_MS * WINDOW_MS
            return value | {"WS": start, "WE": start + WINDOW_MS}
        return value

    def rows(self, plan: int) -> list[tuple[str, dict[str, Any]]]:
        """All rows that a plan gives, in no order."""
        ends = range(ROUND - 1, self.sent, ROUND)  # the last of each round passes
        if self.cell.kind in ("aggregate", "fk"):
            ends = ends[-1:]
        grown = [(key, self.row(key, plan, n)) for key in KEYS for n in ends]
        single = [(k, self.row(k, plan, n)) for k, n in SINGLE.items() if passes(plan, n)]
        return [*grown, *single]

    def wrong(self, records: Sequence[Seen], plans: Sequence[int]) -> str:
        """Return the fault in its topic's records; ``plans`` are those of the log, in order."""
        for partition in {seen.partition for seen in records}:
            of_partition = [seen for seen in records if seen.partition == partition]
            if problem := self._wrong_order(of_partition, plans):
                return f"partition {partition}: {problem}"
        equal = sum(name(seen) == EQUAL for seen in records)
        return f"{EQUAL} was written {equal} times" if self.once and equal > 1 else ""

    def _wrong_order(self, records: Sequence[Seen], plans: Sequence[int]) -> str:
        place = 0  # among the plans: they never go back
        last: dict[tuple[str | None, int], int] = {}
        for seen in records:
            if seen.value is None:
                continue
            key, n, plan = name(seen), seen.value["N"], seen.value["V"]
            if n >= 0:
                if plan not in plans[place:]:
                    return f"offset {seen.offset} is of plan {plan}, behind {plans[place]}: {seen}"
                place = plans.index(plan, place)
            if not passes(plan, n) or seen.value != self.row(key, plan, n):
                return f"offset {seen.offset} is of no plan: {seen}"
            if self.once and n <= last.get((seen.key, place), -2):
                return f"offset {seen.offset} comes twice: {seen}"
            last[seen.key, place] = n
        return ""


def foreign(key: str, n: int) -> str:
    """The key of the other table that a record names."""
    keys = [*KEYS, *SINGLE]
    return KEYS[(keys.index(key) + n) % len(KEYS)]


def name(seen: Seen) -> str:
    """A record's key without its window."""
    return str(seen.key).partition("\0")[0]


def live(records: Sequence[Seen]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a topic: the last records of its keys."""
    last = {(seen.partition, seen.key): seen for seen in records}
    return [(name(seen), seen.value) for seen in last.values() if seen.value is not None]
