"""A chain of replacements, compared with the model after each."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from ksql.control.engine.errors import UpgradeRefused
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.core.config import Settings
from ksql.core.errors import KsqlError
from ksql.functions.registry import BUILTINS, Functions
from ksql.functions.udf import load_sources
from ksql.sql.upgrade.verdict import Verdict
from tests.unit.world import World, load
from tests.upgrades.chance import LATE_S, LATE_TO_A_JOIN_S, Chance, Event, records
from tests.upgrades.model import Key, Model, Values, acceptable, same, says_null, starts_empty
from tests.upgrades.spec import STREAM, TABLE, Query, sources

EVENTS = 14
REBUILT = 0.7
"""How often what is refused in place is rebuilt."""
BUMP = """from typing import Optional
from ksql.functions.udf import udf
@udf
def bump(x: Optional[int]) -> Optional[int]:
    return None if x is None else x + {}
"""


class Disagreement(AssertionError):
    """The service and the model differ; the chain so far is told."""


@dataclass
class Tally:
    """How many pairs were tried and what became of them."""

    pairs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Count those of another one, too."""
        self.pairs += other.pairs
        self.outcomes += other.outcomes

    def summary(self) -> str:
        """Return the counts as a text."""
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.pairs} pairs: {outcomes}"


class Host(Protocol):
    """Where a chain runs."""

    tag: str
    start_s: int
    recodes: bool
    """Whether there is the user's function, and ``recode`` changes it."""

    def run(self, text: str) -> None:
        """Execute statements that must be accepted."""

    def replace(self, text: str) -> Verdict | None:
        """Execute a replacement; None if it was refused, with a reason."""

    def rebuild(self, text: str) -> bool:
        """Execute a rebuild and await its cut-over; False if readers of the result forbid it."""

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Write the records and wait until they are processed; gives the order in which."""

    def as_candidate(self, events: Sequence[Event]) -> Sequence[Event]:
        """Return the records in the order in which a candidate reads them."""

    def recode(self, number: int) -> None:
        """Start again with a user's function that adds another number."""

    def records(self, topic: str) -> Sequence[tuple[bytes | None, bytes | None]]:
        """Keys and values of a topic."""


class InMemory:
    """One process, no Kafka, no Spark."""

    tag = ""
    start_s = 4000  # late records are not before the epoch
    recodes = True

    def __init__(self) -> None:
        self.world = World(functions=functions(1))

    def recode(self, number: int) -> None:
        engine, runner = self.world.engine, self.world.runner
        load(engine, runner, functions(number))
        for version in list(runner.running):
            runner.stop(version)
        runner.resume(engine.catalog.queries.values())

    def run(self, text: str) -> None:
        self.world.run(text)

    def replace(self, text: str) -> Verdict | None:
        statement = self.world.parse(text)
        try:
            verdict = self.world.engine.dry_run(statement, text, self.world.settings).verdict
        except UpgradeRefused as refused:
            if refused.verdict and refused.verdict.reasons:
                return None
            raise
        self.world.run(text)
        return verdict

    def rebuild(self, text: str) -> bool:
        try:
            self.world.engine.dry_run(self.world.parse(text), text, self.world.settings)
        except UpgradeRefused:
            return False
        self.world.run(text)
        self.world.drain()
        RebuildSupervisor(self.world.engine, Settings()).step()
        self.world.drain()  # the readers of the difference
        return True

    def as_candidate(self, events: Sequence[Event]) -> Sequence[Event]:
        return events  # their order over all topics is kept

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        for event in events:
            self.world.topics.append(
                event.source, event.key.encode(), event.value, event.time_s * 1000
            )
        self.world.drain()
        return events

    def records(self, topic: str) -> Sequence[tuple[bytes | None, bytes | None]]:
        return [(each.key, each.value) for each in self.world.topics.records.get(topic, [])]


class Chain:
    """One query, its replacements, and queries that read its result."""

    def __init__(self, seed: int, host: Host | None = None) -> None:
        self.seed = seed
        self.host = host or InMemory()
        self.random = random.Random(seed)
        self.chance = Chance(self.random, bumps=self.host.recodes)
        self.story: list[str] = []
        self.events: list[Event] = []
        self.now_s = self.host.start_s
        self.built_with = set(STREAM), set(TABLE)  # the columns of which no kept row lacks one
        query = self.chance.query()
        self.model = Model(query)
        self._run(sources(self.host.tag))
        self._run(query.text(tag=self.host.tag))
        self.reads = query.kind == "STREAM" or not query.window_s
        self.width = len(query.columns)
        if self.reads:
            for text in readers(query, self.host.tag):
                self._run(text)

    def run(self, pairs: int, tally: Tally) -> None:
        """Records, a replacement, records, and so on."""
        self.feed()
        for _ in range(pairs):
            if self.random.random() < 0.1:
                self._grow()
            if self.host.recodes and self.random.random() < 0.15:
                self._recode()
            tally.pairs += 1
            tally.outcomes[self.replace(self.chance.other(self.model.query))] += 1
            self.feed()

    def feed(self) -> None:
        """Some records; then all that was written must be what the model says."""
        late_s = LATE_TO_A_JOIN_S if self.model.query.shape == "met" else LATE_S
        events = list(records(self.random, self.now_s, EVENTS, late_s))
        self.now_s += EVENTS
        for event in self.host.feed(events):
            self.story.append(f"{event.source} {event.key} {event.row} at {event.time_s}")
            tell(self.model, event)
            self.events.append(event)
        self._compare()

    def replace(self, new: Query) -> str:
        """Try a replacement; gives what became of it."""
        old, text = self.model.query, new.text(replace=True, tag=self.host.tag)
        known = set(self.chance.stream), set(self.chance.table)
        grown = tuple(now - before for now, before in zip(known, self.built_with, strict=True))
        later, recoded = grown[old.shape != "met"], self.model.recoded
        expected = acceptable(old, new, later, recoded=recoded)
        self.story.append(f"{'+' if expected else '-'} {text}")
        try:
            verdict = self.host.replace(text)
        except KsqlError as error:
            raise self._differs(f"{error}") from error
        if (verdict is not None) != expected:
            raise self._differs("refused" if expected else "accepted")
        if verdict is None:
            return self._rebuild(new) if self.random.random() < REBUILT else "refused"
        note = verdict.guarantees[0].note
        if ("start empty" in note) != starts_empty(old, new):
            raise self._differs(f"what starts empty: {note}")
        if ("no longer kept" in note) != bool(old.folds - new.folds):
            raise self._differs(f"what is given up: {note}")
        unchanged = same(old, new) and not recoded
        if unchanged != (verdict.classes == ("transparent",)):
            raise self._differs(f"the class: {verdict.classes}, {verdict.changes}")
        transparent = verdict.classes == ("transparent",)
        if ("NULL in rows" in note) != (says_null(new, later) and not transparent):
            raise self._differs(f"what is null: {note}")
        self.model.replace(new, (*self.chance.stream, *self.chance.table))
        return "transparent" if unchanged else "accepted"

    def _rebuild(self, new: Query) -> str:
        """Rebuild what is refused in place; the result is that of a query over all records."""
        text = new.text(replace=True, tag=self.host.tag, rebuild=True)
        self.story.append(f"* {text}")
        before = self._records("U")
        try:
            if not self.host.rebuild(text):
                return "refused for readers"
        except KsqlError as error:
            raise self._differs(f"{error}") from error
        self.built_with = set(self.chance.stream), set(self.chance.table)
        written = self.model.written
        kept = (*dict.fromkeys((*Model(new).kept, *self.chance.stream, *self.chance.table)),)
        self.model = Model(new, kept, self.model.code, self.model.code)
        for event in self.host.as_candidate(self.events):
            tell(self.model, event)
        if new.kind == "STREAM":
            self.model.written = written
        else:
            self._difference(before)
        self._compare()
        return "rebuilt"

    def _difference(self, before: list[tuple[Key, Values | None]]) -> None:
        """At the cut-over the rows that differ were written, and no others."""
        rows, now = folded(before), self.model.result
        changed = {key for key in rows | now if rows.get(key) != now.get(key)}
        self._equal("U", changed, {key for key, _ in self._records("U")[len(before) :]})

    def _run(self, text: str) -> None:
        self.story.append(text)
        self.host.run(text)

    def _grow(self) -> None:
        """Once each, the sources get a column more."""
        tag = self.host.tag
        if "W" not in self.chance.stream:
            self._run(f"ALTER STREAM S{tag} ADD COLUMN W BIGINT;")
            self.chance.stream.append("W")
        elif "Z" not in self.chance.table:
            self._run(f"ALTER TABLE T{tag} ADD COLUMN Z BIGINT;")
            self.chance.table.append("Z")

    def _recode(self) -> None:
        """The server starts again with another version of the user's function."""
        self.model.code = self.random.choice((1, 2, -5))
        self.story.append(f"-- BUMP adds {self.model.code}")
        self.host.recode(self.model.code)

    # --- what was written

    def _compare(self) -> None:
        model, width = self.model, self.width
        stream = model.query.kind == "STREAM"
        if stream:
            self._equal("U", by_key(model.written), self._written("U"))
        else:
            self._equal("U", model.result, folded(self._records("U")))
        if not self.reads:
            return
        if stream:
            copied = by_key([(key, values[:width]) for key, values in model.written])
            self._equal("E", copied, self._written("E"))
            return
        rows = {key: values[:width] for key, values in model.result.items()}
        self._equal("E", rows, folded(self._records("E")))
        last = {key[0]: row for key, row in self._records("C")}
        counted = {int(value): row[0] for value, row in last.items() if row and row[0]}
        self._equal("C", dict(model.counted(0)), counted)

    def _written(self, topic: str) -> dict[str, list[Values | None]]:
        return by_key([(key[0], row) for key, row in self._records(topic)])

    def _records(self, topic: str) -> list[tuple[Key, Values | None]]:
        """The records of a topic: key and window, then the values; None is a deletion."""
        query = self.model.query
        kind = ("session" if query.session else "window") if query.window_s else ""
        kind = kind if topic == "U" else ""
        format_ = self.model.query.format if topic == "U" else "JSON"
        return [
            (key_of(key or b"", kind), values_of(value, format_))
            for key, value in self.host.records(topic + self.host.tag)
        ]

    def _equal(self, topic: str, expected: Any, actual: Any) -> None:
        if expected != actual:
            raise self._differs(f"{topic}\nwanted {expected}\nfound  {actual}")

    def _differs(self, what: str) -> Disagreement:
        return Disagreement(f"seed {self.seed}: {what}\n" + "\n".join(self.story[-60:]))


def readers(query: Query, tag: str) -> list[str]:
    """Queries that read the result: a copy, and for a table how many rows have a value."""
    copy = f"CREATE {query.kind} E{tag} WITH (VALUE_FORMAT='JSON') AS SELECT * FROM U{tag};"
    counts = (
        f"CREATE TABLE C{tag} WITH (KEY_FORMAT='JSON', VALUE_FORMAT='JSON') AS "
        f"SELECT C0, COUNT(*) AS N FROM U{tag} GROUP BY C0;"
    )
    return [copy] if query.kind == "STREAM" else [copy, counts]


def tell(model: Model, event: Event) -> None:
    """The record to the model."""
    if event.source in "TV":
        model.table(event.source, event.key, event.row)
    elif event.row is not None:
        model.stream(event.source, event.key, event.row, event.time_s)


@cache
def functions(number: int) -> Functions:
    """All functions, and the user's that adds this number."""
    library, problems = load_sources({"bump.py": BUMP.format(number)})
    assert not problems
    return BUILTINS.with_(library)


def by_key(records: Sequence[tuple[str, Values | None]]) -> dict[str, list[Values | None]]:
    """The records of each key, in their order."""
    values_by_key: dict[str, list[Values | None]] = {}
    for key, values in records:
        values_by_key.setdefault(key, []).append(values)
    return values_by_key


def folded(records: list[tuple[Key, Values | None]]) -> dict[Key, Values]:
    """The table that a topic holds."""
    last = dict(records)
    return {key: values for key, values in last.items() if values is not None}


def key_of(data: bytes, kind: str) -> Key:
    """The key with its bounds in seconds, as far as it has any; of a session the end is first."""
    if not kind:
        return data.decode(), 0, 0
    ends = [data[-8:]] if kind == "window" else [data[-16:-8], data[-8:]]
    times = [int.from_bytes(each, "big") // 1000 for each in ends]
    return data[: -8 * len(ends)].decode(), times[-1], times[0] if len(times) > 1 else 0


def values_of(data: bytes | None, format_: str) -> Values | None:
    """The columns of a value, in their order."""
    if data is None:
        return None
    if format_ == "DELIMITED":
        cells = data.decode().replace('"', "").split(",")
        return tuple(int(cell) if cell else None for cell in cells)
    return tuple(json.loads(data).values())
