"""Queries of every operator and their records, made at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from tests.cuts.cases import SINK, Case, Event, Key, Source, Value, key_bytes

Kind = Literal["STREAM", "TABLE"]
KEYS: Mapping[str, tuple[int | str, ...]] = {"STRING": ("a", "b", "c"), "BIGINT": (1, 2, 300)}
FOLDS = ("COUNT(*)", "SUM({})", "MIN({})", "MAX({})", "COUNT({})")
STREAM_FOLDS = (*FOLDS, "LATEST_BY_OFFSET({})", "EARLIEST_BY_OFFSET({})", "COLLECT_LIST({})")
TABLE_FOLDS = ("COUNT(*)", "SUM({})", "COUNT({})", "COLLECT_LIST({})")
EVERY_KIND = ("", "LEFT ", "RIGHT ", "FULL OUTER ")


def cases(
    seed: int,
    cuts: int,
    *,
    shape: str = "",
    tag: str = "",
    start_ms: int = 0,
    densities: Sequence[float] = (0.1, 0.3, 1),
) -> Iterator[Case]:
    """The query of a seed over its records, which are cut in so many ways.

    The shapes take turns where none is stated. ``densities`` are how many of the records a new
    micro-batch may begin with.
    """
    chance = random.Random(seed)
    case = _Making(chance, tag, start_ms).case(shape or tuple(SHAPES)[seed % len(SHAPES)])
    for _ in range(cuts):
        density = chance.choice(densities)
        cut = (replace(each, cut=chance.random() < density) for each in case.events)
        yield replace(case, events=tuple(cut))


@dataclass
class _Making:
    """One case on its way; all sources have keys of one type, so that they can meet."""

    chance: random.Random
    tag: str
    start_ms: int
    sources: list[Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key_type = self.chance.choice(tuple(KEYS))

    def case(self, shape: str) -> Case:
        """A query and records for it."""
        query = (SHAPES | APART)[shape](self)
        partitions = self.chance.choice((1, 1, 2, 3))
        return Case(
            shape,
            tuple(self.sources),
            query,
            tuple(self._events(partitions)),
            partitions,
            self.chance.choice((1, 1, 2, 3)),
            self.tag,
        )

    # --- sources and what is made of them

    def source(self, kind: Kind, window_s: int = 0) -> Source:
        """A source whose names are its own; G has the type of the keys."""
        n = len(self.sources)
        numbers = {f"{name}{n}": "BIGINT" for name in "ABC"[: self.chance.randint(1, 3)]}
        columns = {f"G{n}": self.key_type, **numbers, f"L{n}": "ARRAY<BIGINT>"}
        timestamp = ""
        if kind == "STREAM" and self.chance.random() < 0.2:
            timestamp = f"E{n}"
            columns[timestamp] = "TIMESTAMP"
        name = f"{kind[0]}{n}{self.tag}"
        described = Source(name, kind, f"K{n}", self.key_type, columns, window_s, timestamp)
        self.sources.append(described)
        return described

    def number(self, among: Sequence[Source] = ()) -> str:
        """A numeric column."""
        sources = among or self.sources
        names = [n for each in sources for n, type_ in each.columns.items() if type_ == "BIGINT"]
        return self.chance.choice(names)

    def scalar(self) -> str:
        """An expression over numbers, some of which fail for some rows."""
        column = self.number()
        return self.chance.choice(
            (column, column, f"{column} + 1", f"ABS({column})", f"12 / {column}")
        )

    def where(self) -> str:
        """A condition, or none."""
        if self.chance.random() < 0.5:
            return ""
        return f" WHERE {self.number()} {self.chance.choice(('>', '<', '<>'))} {self._small()}"

    def _small(self) -> int:
        return self.chance.randint(-1, 4)

    def stated(self, kind: Kind, select: str, options: str = "") -> str:
        """The whole statement."""
        return f"CREATE {kind} {SINK}{self.tag}{options} AS {select};"

    # --- shapes

    def plain(self) -> str:
        """Filters and projections of a stream or a table."""
        kind: Kind = self.chance.choice(("STREAM", "TABLE"))
        source = self.source(kind)
        columns = f"{source.key}, {self.scalar()} AS X, {self.scalar()} AS Y"
        return self.stated(kind, f"SELECT {columns} FROM {source.name}{self.where()}")

    def moved(self) -> str:
        """PARTITION BY."""
        source = self.source("STREAM")
        by = self.chance.choice((source.reference, self.number(), "NULL"))
        selected = source.key if by == "NULL" else f"{by}, {source.key}"
        text = f"SELECT {selected}, {self.scalar()} + 1 AS X FROM {source.name}{self.where()}"
        return self.stated("STREAM", f"{text} PARTITION BY {by}")

    def exploded(self) -> str:
        """A table function."""
        source = self.source("STREAM")
        calls = f"{source.key}, {self.scalar()} AS X, EXPLODE(L0) AS E"
        return self.stated("STREAM", f"SELECT {calls} FROM {source.name}{self.where()}")

    def grouped(self) -> str:
        """GROUP BY without windows."""
        return self._aggregate("")

    def expiring(self) -> str:
        """GROUP BY whose rows leave when they are too old."""
        return self._aggregate("", f"RETENTION_MS={self._size()}000")

    def tumbling(self) -> str:
        """Tumbling windows."""
        return self._aggregate(f"TUMBLING (SIZE {self._size()} SECONDS{self._kept()})")

    def hopping(self) -> str:
        """Hopping windows."""
        size = self._size()
        step = self.chance.choice((size // 2, size // 5))
        return self._aggregate(
            f"HOPPING (SIZE {size} SECONDS, ADVANCE BY {step} SECONDS{self._kept()})"
        )

    def session(self) -> str:
        """Sessions."""
        return self._aggregate(f"SESSION ({self._size()} SECONDS{self._kept()})")

    def _size(self) -> int:
        return self.chance.choice((10, 20, 60))

    def _kept(self) -> str:
        """How late records may be; sometimes state is soon forgotten."""
        if self.chance.random() < 0.25:
            return ""
        retention = ", RETENTION 2 MINUTES" if self.chance.random() < 0.3 else ""
        return f"{retention}, GRACE PERIOD {self.chance.choice((0, 5, 20))} SECONDS"

    def _aggregate(self, window: str, option: str = "") -> str:
        """A stream grouped, or what a stream gives with a table or another stream."""
        chance, stream = self.chance, self.source("STREAM")
        read = stream.name
        if chance.random() < 0.4:
            other = self.source(chance.choice(("STREAM", "TABLE")))
            within = self._within() if other.kind == "STREAM" else ""
            kind = chance.choice(("", "LEFT "))
            read += f" {kind}JOIN {other.name}{within} ON {stream.key} = {other.key}"
        by = chance.choice((stream.key, "G0", f"{stream.key}, G0", self.number()))
        return self._grouped(read, by, STREAM_FOLDS, window, option)

    def _grouped(
        self, read: str, by: str, folds: Sequence[str], window: str, option: str = ""
    ) -> str:
        chance = self.chance
        aggregates = [
            chance.choice(folds).format(self.number()) for _ in range(chance.randint(1, 3))
        ]
        columns = ", ".join(f"{fold} AS X{n}" for n, fold in enumerate(aggregates))
        over = f" WINDOW {window}" if window else ""
        having = chance.choice(("", "", f" HAVING COUNT(*) > {chance.randint(0, 2)}"))
        final = " EMIT FINAL" if window and chance.random() < 0.4 else ""
        text = f"SELECT {by}, {columns} FROM {read}{over}{self.where()} GROUP BY {by}"
        # the sources' format of keys holds one column
        stated = [each for each in ("KEY_FORMAT='JSON'" if "," in by else "", option) if each]
        options = f" WITH ({', '.join(stated)})" if stated else ""
        return self.stated("TABLE", f"{text}{having}{final}", options)

    def undone(self) -> str:
        """A table's rows grouped, or those of two joined tables."""
        table = self.source("TABLE")
        read = table.name
        if self.chance.random() < 0.4:
            other = self.source("TABLE")
            kind = self.chance.choice(EVERY_KIND[:3])
            read += f" {kind}JOIN {other.name} ON {table.key} = {other.key}"
        return self._grouped(read, self.chance.choice(("G0", self.number())), TABLE_FOLDS, "")

    def stream_table(self) -> str:
        """A stream with tables, on its key or on another column."""
        return self._joined(self.source("STREAM"), ["TABLE"])

    def stream_stream(self) -> str:
        """Two streams."""
        return self._joined(self.source("STREAM"), ["STREAM"])

    def table_table(self) -> str:
        """Two tables."""
        return self._joined(self.source("TABLE"), ["TABLE"])

    def chain(self) -> str:
        """Three or four sources of mixed kinds."""
        chance = self.chance
        if chance.random() < 0.3:
            return self._joined(self.source("TABLE"), ["TABLE"] * chance.randint(2, 3))
        kinds: list[Kind] = chance.choices(("STREAM", "TABLE"), k=chance.randint(2, 3))
        return self._joined(self.source("STREAM"), kinds)

    def foreign(self) -> str:
        """A table with another one that its rows refer to, and perhaps one more."""
        left, right = self.source("TABLE"), self.source("TABLE")
        kind = self.chance.choice(("", "LEFT "))
        text = f"SELECT * FROM {left.name} {kind}JOIN {right.name} ON G0 = {right.key}"
        if self.chance.random() < 0.3:
            third = self.source("TABLE")
            text += f" {self.chance.choice(('', 'LEFT '))}JOIN {third.name} ON {left.key} = "
            text += third.key
        return self.stated("TABLE", text + self.where())

    def windowed(self) -> str:
        """Streams whose keys have windows."""
        return self._joined(self.source("STREAM", window_s=20), ["STREAM"], window_s=20)

    # --- joins in a row

    def _joined(self, first: Source, kinds: Sequence[Kind], window_s: int = 0) -> str:
        """The first source and, one after the other, sources of those kinds."""
        chance, text = self.chance, first.name
        ons = [first.key] if first.kind == "TABLE" or window_s else [first.key, "G0"]
        for kind in kinds:
            other = self.source(kind, window_s)
            tables = first.kind == "TABLE" or kind == "STREAM"
            join = chance.choice(EVERY_KIND if tables else EVERY_KIND[:2])
            within = self._within() if kind == "STREAM" else ""
            key = other.key
            if kind == "STREAM" and not window_s and chance.random() < 0.3:
                key = other.reference
            text += f" {join}JOIN {other.name}{within} ON {chance.choice(ons)} = {key}"
            if first.kind == "TABLE":
                if join.startswith("FULL"):  # what follows would need its own key
                    break
                ons = [other.key] if join.startswith("RIGHT") else ons
            else:
                ons += [other.key, other.reference]
        return self.stated(first.kind, f"SELECT * FROM {text}{self.where()}")

    def _within(self) -> str:
        chance = self.chance
        reach = chance.choice((5, 20, 60))
        within = chance.choice((f"{reach} SECONDS", f"({reach} SECONDS, {reach // 2} SECONDS)"))
        grace = chance.choice(("", " GRACE PERIOD 0 SECONDS", " GRACE PERIOD 30 SECONDS"))
        return f" WITHIN {within}{grace}"

    # --- records

    def _events(self, partitions: int) -> list[Event]:
        """Records of all sources; a key is in the partition that Kafka's producers choose."""
        events = []
        for source in self.sources:
            now = self.start_ms + self.chance.randint(0, 30) * 1000
            for _ in range(self.chance.randint(4, 20)):
                now += self.chance.choice((0, 500, 1000, 4000, 7000, 30_000))
                late = self.chance.choice((0, 0, 2, 5, 10, 15, 30, 90)) * 1000
                events.append(self._event(source, partitions, max(self.start_ms, now - late)))
        return events

    def _event(self, source: Source, partitions: int, time: int) -> Event:
        chance = self.chance
        keys = KEYS[self.key_type]
        key = chance.choice(keys)
        partition = partition_of(key, partitions)
        window = None
        if source.window_s:
            window = self.start_ms + chance.choice((0, 1)) * source.window_s * 1000
        elif source.kind == "STREAM" and chance.random() < 0.06:
            return Event(source.name, partition, None, self._row(source, time), time)
        if chance.random() < 0.04:
            return Event(source.name, partition, key, None, time, window, broken=True)
        if chance.random() < (0.2 if source.kind == "TABLE" else 0.05):
            timeless = bool(source.timestamp)
            return Event(source.name, partition, key, None, time, window, timeless=timeless)
        written = time + chance.randint(0, 90_000) if source.timestamp else None
        return Event(source.name, partition, key, self._row(source, time), time, window, written)

    def _row(self, source: Source, time: int) -> dict[str, Value]:
        values = {name: self._value(type_) for name, type_ in source.columns.items()}
        return values | {source.timestamp: time} if source.timestamp else values

    def _value(self, type_: str) -> Value:
        chance = self.chance
        if type_ == "ARRAY<BIGINT>":
            return chance.choice((None, [], [1], [2, 3, 5]))
        if chance.random() < 0.1:
            return None
        if type_ == self.key_type and (type_ == "STRING" or chance.random() < 0.5):
            return chance.choice(KEYS[type_])
        return chance.randint(-2, 6)


def partition_of(key: Key, partitions: int) -> int:
    """The partition of a key in the format KAFKA."""
    [partition] = partitions_of([key_bytes(key)], partitions)
    return partition


SHAPES: dict[str, Callable[[_Making], str]] = {
    "plain": _Making.plain,
    "moved": _Making.moved,
    "exploded": _Making.exploded,
    "grouped": _Making.grouped,
    "tumbling": _Making.tumbling,
    "hopping": _Making.hopping,
    "session": _Making.session,
    "undone": _Making.undone,
    "stream-table": _Making.stream_table,
    "stream-stream": _Making.stream_stream,
    "table-table": _Making.table_table,
    "chain": _Making.chain,
    "foreign": _Making.foreign,
    "windowed": _Making.windowed,
}
APART: dict[str, Callable[[_Making], str]] = {"expiring": _Making.expiring}
"""Shapes that take no turns, so that a seed has the query that it always had."""
