"""A chain of replacements, compared with the model after each."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from ksql.core.errors import KsqlError
from tests.upgrades.chance import LATE_S, LATE_TO_A_JOIN_S, TTLS_S, Chance, Event, records
from tests.upgrades.filled import filled
from tests.upgrades.hosts import Host, InMemory
from tests.upgrades.model import Key, Model, Values
from tests.upgrades.rules import (
    acceptable,
    fillable,
    rebuildable,
    returnable,
    same,
    says_null,
    starts_empty,
)
from tests.upgrades.spec import STREAM, TABLE, Query, sources

EVENTS = 14
REBUILT = 0.7
"""How often what is refused in place is rebuilt."""
ROLLED_BACK, AT_ONCE, FILLED = 0.15, 0.07, 0.4
"""How often a pair is a rollback, a rebuild at once, and of aggregates a backfill."""
FED_BETWEEN, ABORTED = 0.5, 0.25
"""How often records come before the cut-over of a candidate, and how often it is given up."""
Mode = Literal["rebuild", "backfill", "rollback"]


class Disagreement(AssertionError):
    """The service and the model differ; the message has the chain so far."""


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


@dataclass
class Version:
    """A version of the query: what it has come to.

    ``built_with`` are the columns of stream and table of which no row that it keeps lacks one.
    ``read`` is how many of the chain's records it has read when it was replaced.
    """

    model: Model
    built_with: tuple[set[str], set[str]]
    read: int = 0


class Chain:
    """One query, its replacements, and queries that read its result."""

    def __init__(self, seed: int, host: Host | None = None) -> None:
        self.seed = seed
        self.host = host or InMemory()
        self.random = random.Random(seed)
        ttls_s = TTLS_S[1:] if self.host.buckets else TTLS_S
        self.chance = Chance(self.random, bumps=self.host.recodes, ttls_s=ttls_s)
        self.story: list[str] = []
        self.events: list[Event] = []
        self.lost: Counter[str] = Counter()
        self.now_s = self.host.start_s
        query = self.chance.query()
        self.version = Version(Model(query), (set(STREAM), set(TABLE)))
        self.candidate: Version | None = None
        self.former: Version | None = None
        self._run(sources(self.host.tag))
        self._run(query.text(tag=self.host.tag))
        self.reads = query.kind == "STREAM" or not query.window_s
        self.width = len(query.columns)
        if self.reads:
            for text in readers(query, self.host.tag):
                self._run(text)

    @property
    def model(self) -> Model:
        """That of the version that runs."""
        return self.version.model

    def run(self, pairs: int, tally: Tally) -> None:
        """Records, a replacement, records, and so on."""
        self.feed()
        for _ in range(pairs):
            if self.random.random() < 0.1:
                self._grow()
            if self.host.recodes and self.random.random() < 0.15:
                self._recode()
            if self.host.loses and self.random.random() < 0.1:
                self._lose()
            tally.pairs += 1
            tally.outcomes[self._upgrade()] += 1
            self.feed()

    def feed(self) -> None:
        """Some records; then all that was written must be what the model says."""
        late_s = LATE_TO_A_JOIN_S if self.model.query.shape == "met" else LATE_S
        events = list(records(self.random, self.now_s, EVENTS, late_s))
        self.now_s += EVENTS
        for event in self.host.feed(events):
            self.story.append(f"{event.source} {event.key} {event.row} at {event.time_s}")
            tell(self.model, event)
            if self.candidate is not None:
                tell(self.candidate.model, event)
            self.events.append(event)
        self._compare()

    def _upgrade(self) -> str:
        """Try one upgrade or its rollback; gives what became of it."""
        query, turn = self.model.query, self.random.random()
        if turn < (ROLLED_BACK if self.former else ROLLED_BACK / 5):
            return self.roll_back()
        if turn < ROLLED_BACK + AT_ONCE:
            return self.rebuild(self.chance.other(query))
        if self.random.random() < (FILLED if query.shape == "grouped" else FILLED / 10):
            return self.backfill(self.chance.filled(query))
        return self.replace(self.chance.other(query))

    def replace(self, new: Query) -> str:
        """Try a replacement in place; what is refused may be rebuilt."""
        old, text = self.model.query, new.text(replace=True, tag=self.host.tag)
        later, recoded = self._later(old), self.model.recoded
        expected = acceptable(old, new, later, recoded=recoded)
        self.story.append(f"{'+' if expected else '-'} {text}")
        try:
            verdict = self.host.replace(text)
        except KsqlError as error:
            raise self._differs(f"{error}") from error
        if (verdict is not None) != expected:
            raise self._differs("refused" if expected else "accepted")
        if verdict is None:
            return self.rebuild(new) if self.random.random() < REBUILT else "refused"
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

    def _later(self, query: Query) -> set[str]:
        """The columns that rows which the query keeps may lack."""
        known = set(self.chance.stream), set(self.chance.table)
        grown = [now - before for now, before in zip(known, self.version.built_with, strict=True)]
        return grown[query.shape != "met"]

    # --- candidates

    def rebuild(self, new: Query) -> str:
        """Build the query as a candidate; its result is that of a query over all that is read."""
        return self._beside(new, "rebuild", rebuildable(self.model.query, new, reads=self.reads))

    def backfill(self, new: Query) -> str:
        """Build added aggregates in a candidate; the others keep their state."""
        model = self.model
        return self._beside(new, "backfill", fillable(model.query, new, recoded=model.recoded))

    def roll_back(self) -> str:
        """Go back to the version before the last cut-over; it has read nothing since."""
        former, query = self.former, self.model.query
        text = f"ROLLBACK UPGRADE OF U{self.host.tag};"
        if former is None or not returnable(query, former.model.query, reads=self.reads):
            return self._begun(text, former, "rollback", expected=False)
        former.model.code = self.model.code
        ahead = [event for n, event in self._left("") if n >= former.read]
        return self._begun(text, former, "rollback", expected=True, ahead=ahead)

    def _beside(self, new: Query, mode: Mode, possible: bool) -> str:
        start = self.chance.start(self.host.start_s, self.now_s)
        text = new.text(replace=True, tag=self.host.tag, mode=mode, start=start)
        known = self.chance.stream, self.chance.table
        kept = (*dict.fromkeys((*Model(new).kept, *known[0], *known[1])),)
        model = Model(new, kept, self.model.code, self.model.code)
        candidate = Version(model, (set(known[0]), set(known[1])))
        ahead = [event for _, event in self._left(start)]
        expected = possible and bool(start or not self._has_lost(self.model.query, new))
        return self._begun(text, candidate, mode, expected=expected, ahead=ahead)

    def _begun(
        self,
        text: str,
        candidate: Version | None,
        mode: Mode,
        *,
        expected: bool,
        ahead: Sequence[Event] = (),
    ) -> str:
        """Begin a candidate that reads what is ``ahead`` of it; cut over to it, or give it up."""
        self.story.append(f"{'*' if expected else '-'} {text}")
        before, traces = self._records("U"), self.host.traces()
        try:
            accepted = self.host.begin(text)
        except KsqlError as error:
            raise self._differs(f"{error}") from error
        if accepted != expected:
            raise self._differs("refused" if expected else "accepted")
        if not accepted or candidate is None:
            return f"{mode} refused"
        for event in self.host.as_candidate(ahead):
            tell(candidate.model, event)
        if self.host.waits and self.random.random() < FED_BETWEEN:
            self.candidate = candidate
            self.feed()
            self.candidate, before = None, self._records("U")
        if self.host.waits and self.random.random() < ABORTED:
            return self._abort(candidate, traces, mode)
        self._cut_over(candidate, before, mode)
        return f"{mode} cut over"

    def _abort(self, candidate: Version, traces: Any, mode: Mode) -> str:
        """Give a candidate up: there must be no trace of it."""
        self._run(f"ABORT UPGRADE OF U{self.host.tag};")
        candidate.read = len(self.events)
        for was, now in zip(traces, self.host.traces(), strict=True):
            self._equal("traces", was, now)
        self._compare()
        return f"{mode} aborted"

    def _cut_over(
        self, candidate: Version, before: list[tuple[Key, Values | None]], mode: Mode
    ) -> None:
        """The candidate takes over: of a table the rows that differ were written, no others."""
        self.host.cut_over()
        old = self.version
        if mode == "backfill":
            candidate.model = filled(old.model, candidate.model)
        candidate.model.written = [*old.model.written]
        old.read = len(self.events)
        self.version, self.former = candidate, old
        if self.model.query.kind == "TABLE":
            self._difference(before)
        self._compare()

    def _difference(self, before: list[tuple[Key, Values | None]]) -> None:
        """At the cut-over the rows that differ were written, and no others."""
        rows, now = folded(before), self.model.result
        changed = {key: now.get(key) for key in rows | now if rows.get(key) != now.get(key)}
        written = self._records("U")[len(before) :]
        self._equal("U", sorted(changed.items()), sorted(written))

    def _left(self, start: str) -> Iterator[tuple[int, Event]]:
        """The records that a query reads which begins there, numbered; tables from the first on."""
        numbers: Counter[str] = Counter()
        begun: set[str] = set()
        for number, event in enumerate(self.events):
            is_left = numbers[event.source] >= self.lost[event.source]
            numbers[event.source] += 1
            if is_left and _has_begun(event, start):
                begun.add(event.source)
            if is_left and event.source in begun:
                yield number, event

    def _has_lost(self, *queries: Query) -> bool:
        """Whether a stream that they read has lost its beginning."""
        return any(self.lost[name] for query in queries for name in query.streams)

    def _lose(self) -> None:
        """Retention takes records that every version has read."""
        read = self.events[: self.former.read if self.former else None]
        topic = self.random.choice("SR")
        count = sum(event.source == topic for event in read)
        most = self.random.randint(0, count)
        if most > self.lost[topic]:
            self.lost[topic] = most
            self.story.append(f"-- {topic} has lost {most} records")
            self.host.lose(topic, most)

    # --- statements

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


def _has_begun(event: Event, start: str) -> bool:
    """Whether a query that begins there reads from that record of a topic on."""
    if event.source in "TV" or start in ("", "earliest"):
        return True
    return start != "now" and event.time_s >= datetime.fromisoformat(start).timestamp()


def tell(model: Model, event: Event) -> None:
    """The record to the model."""
    if event.source in "TV":
        model.table(event.source, event.key, event.row)
    elif event.row is not None:
        model.stream(event.source, event.key, event.row, event.time_s)


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
