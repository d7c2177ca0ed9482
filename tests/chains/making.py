"""Chains of two to four queries and their records, made at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.chains.cases import Chain, Link
from tests.cuts.cases import Event, Source
from tests.cuts.chance import partition_of

NAMES = tuple("abcdefghijkl")
TABLE, STREAM, SECOND = "T0", "S0", "S1"
COLUMNS = ("K", "G", "H", "N")
TEXTS = ("K", "G")
"""The columns that can meet the key of the table; H and N are numbers."""
FOLDS = "COUNT(*) AS C, SUM(N) AS TOTAL, MIN(N) AS LEAST, MAX(N) AS MOST"
START_MS = 86_400_000
RECORDS = (60, 160)
KEYLESS = 0.03
"""How many of the streams' records have no key; they lie in any partition."""


@dataclass
class Making:
    """A chain on its way: what the next query reads, and the key of that."""

    chance: random.Random
    links: list[Link] = field(default_factory=list)
    read: str = STREAM
    key: str = "K"
    table: str = TABLE
    mixed: bool = False
    paired: bool = False

    def __post_init__(self) -> None:
        self.partitions = self.chance.choice((1, 2, 3, 4, 6))
        self.behind_ms = self.chance.choice((0, 5_000, 60_000, 240_000))

    def chain(self) -> Chain:
        """All of it."""
        chance = self.chance
        count = chance.randint(2, 4)
        windowed = chance.random() < 0.7
        second = chance.random() < 0.3
        grouped = not windowed and not second and count > 2 and chance.random() < 0.6
        kinds = [self.plain, self.moved, self.joined, self.joined, self.exploded]
        kinds += [] if second else [self.with_stream]
        shapes = [chance.choice(kinds) for _ in range(count - 2 if grouped else count - 1)]
        if chance.random() < 0.15:
            self.other_table()
        for number, shape in enumerate(shapes):
            shape(last=number == len(shapes) - 1)
            if second and not number:
                self.inserted()
        if windowed:
            self.window()
        else:
            self.aggregate()
        if grouped:
            self.regrouped()
        streams = (STREAM, SECOND) if second or self.paired else (STREAM,)
        return Chain(
            (*map(stream, streams), _table()),
            self.partitions,
            tuple(self.links),
            tuple(self._events(streams)),
            chance.choice((1, 2, 3, 4)),
            # a group that is left again within a batch would not be there
            chance.random() < 0.3 and not grouped,
        )

    # --- queries

    def plain(self, last: bool) -> None:
        """A filter and a projection; the key stays."""
        values = ("N + 1 AS N" if name == "N" else name for name in self._values(self.key))
        columns = ", ".join((self.key, *values))
        where = self.chance.choice(("", " WHERE N <> 3", " WHERE H > 0"))
        self._stream("plain", f"SELECT {columns} FROM {self.read}{where}", self.key, last)

    def moved(self, last: bool) -> None:
        """PARTITION BY another column."""
        by = self.chance.choice([name for name in COLUMNS if name != self.key])
        columns = ", ".join((by, *self._values(by)))
        text = f"SELECT {columns} FROM {self.read} PARTITION BY {by}"
        self._stream("moved", text, by, last)

    def joined(self, last: bool) -> None:
        """The table, met by the key or by another column; perhaps moved after that."""
        chance, by = self.chance, self.chance.choice(TEXTS)
        left = chance.random() < 0.3
        number = f"{self.read}.N + COALESCE({self.table}.V, CAST(0 AS BIGINT))"
        joined = f"{'LEFT ' if left else ''}JOIN {self.table} ON {self.read}.{by} = {self.table}.TK"
        self._meeting("joined", joined, by, number, last)

    def with_stream(self, last: bool) -> None:
        """The second stream, by its key; what only one of the two has gives nothing."""
        self.paired, by = True, self.chance.choice(TEXTS)
        within = f"WITHIN 10 MINUTES GRACE PERIOD {self.behind_ms // 1000} SECONDS"
        joined = f"JOIN {SECOND} {within} ON {self.read}.{by} = {SECOND}.K"
        self._meeting("paired", joined, by, f"{self.read}.N + {SECOND}.N", last)

    def _meeting(self, shape: str, joined: str, by: str, number: str, last: bool) -> None:
        """A join by a column; its results perhaps move to another one at once."""
        chance = self.chance
        key = chance.choice(COLUMNS[:3]) if chance.random() < 0.3 else by
        columns = ", ".join(
            f"{number} AS N" if name == "N" else f"{self.read}.{name} AS {name}"
            for name in (key, *self._values(key))
        )
        text = f"SELECT {columns} FROM {self.read} {joined}"
        if key != by:
            text += f" PARTITION BY {self.read}.{key}"
        self._stream(shape, text, key, last)

    def exploded(self, last: bool) -> None:
        """Two results of each record; perhaps moved."""
        key = self.chance.choice((self.key, self.key, "G", "H"))
        values = (
            "EXPLODE(ARRAY[N, N + 2]) AS N" if name == "N" else name for name in self._values(key)
        )
        columns = ", ".join((key, *values))
        moved = "" if key == self.key else f" PARTITION BY {key}"
        self._stream("exploded", f"SELECT {columns} FROM {self.read}{moved}", key, last)

    def other_table(self) -> None:
        """The table that joins read: a result, too."""
        sink = self._sink()
        text = f"CREATE TABLE {sink} AS SELECT TK, V + 1 AS V FROM {TABLE} WHERE V > 1;"
        self.links.append(Link("table", sink, text, self.partitions, ordered=True))
        self.table = sink

    def inserted(self) -> None:
        """A second writer of the first result: the other stream, with the same columns."""
        columns = ", ".join((self.key, *self._values(self.key)))
        moved = "" if self.key == "K" else f" PARTITION BY {self.key}"
        text = f"INSERT INTO {self.read} SELECT {columns} FROM {SECOND}{moved};"
        partitions = self.links[-1].partitions
        self.links.append(Link("inserted", self.read, text, partitions, ordered=False))
        self.links[-2] = replace(self.links[-2], ordered=False)
        self.mixed = True

    def window(self) -> None:
        """Windows that wait for every record."""
        grace = f"RETENTION 2 DAYS, GRACE PERIOD {self.behind_ms // 1000} SECONDS"
        windows = (
            f"TUMBLING (SIZE 10 MINUTES, {grace})",
            f"HOPPING (SIZE 20 MINUTES, ADVANCE BY 5 MINUTES, {grace})",
            f"SESSION (3 MINUTES, {grace})",
        )
        final = " EMIT FINAL" if self.chance.random() < 0.5 else ""
        self._table("window", f" WINDOW {self.chance.choice(windows)}", final)

    def aggregate(self) -> None:
        """GROUP BY without windows; rows expire in some chains whose records are in order."""
        if self.behind_ms == 0 and len(self.links) % 2:
            self._table("expiring", "", "", "RETENTION_MS=1800000")
        else:
            self._table("grouped", "", "")

    def regrouped(self) -> None:
        """The table that came of GROUP BY, filtered or grouped again."""
        select = "SELECT C, COUNT(*) AS CC, SUM(TOTAL) AS T FROM {} GROUP BY C;"
        if self.chance.random() < 0.4:
            select = f"SELECT {self.key}, C, TOTAL FROM {{}} WHERE C > 2;"
        sink = self._sink()
        text = f"CREATE TABLE {sink} AS {select.format(self.read)}"
        partitions = self.links[-1].partitions
        self.links.append(Link("regrouped", sink, text, partitions, ordered=True, mixed=self.mixed))

    def _values(self, key: str) -> list[str]:
        return [name for name in COLUMNS if name != key]

    def _sink(self) -> str:
        return f"R{len(self.links)}"

    def _stream(self, shape: str, select: str, key: str, last: bool) -> None:
        """Only the last stream may have other partitions: a join wants those of its table."""
        partitions, options, chance = self.partitions, [], self.chance
        if last and chance.random() < 0.3:
            partitions = chance.choice((1, 2, 3, 5))
            options.append(f"PARTITIONS={partitions}")
        if chance.random() < 0.2:
            options.append(f"KEY_FORMAT='{chance.choice(('JSON', 'KAFKA'))}'")
        sink, with_ = self._sink(), f" WITH ({', '.join(options)})" if options else ""
        text = f"CREATE STREAM {sink}{with_} AS {select};"
        self.links.append(Link(shape, sink, text, partitions, ordered=True, mixed=self.mixed))
        self.read, self.key = sink, key

    def _table(self, shape: str, window: str, final: str, option: str = "") -> None:
        several = self.chance.random() < 0.2
        by = "G, H" if several else self.chance.choice((self.key, "K", "G", "H"))
        stated = [each for each in ("KEY_FORMAT='JSON'" if several else "", option) if each]
        options = f" WITH ({', '.join(stated)})" if stated else ""
        sink = self._sink()
        text = (
            f"CREATE TABLE {sink}{options} AS SELECT {by}, {FOLDS} FROM {self.read}{window} "
            f"GROUP BY {by}{final};"
        )
        partitions = self.links[-1].partitions
        # sessions that merge are deleted at their own time, windows are closed long after theirs
        ordered = not final and "SESSION" not in window
        self.links.append(Link(shape, sink, text, partitions, ordered, self.mixed))
        self.read, self.key = sink, by

    # --- records

    def _events(self, topics: Sequence[str]) -> list[Event]:
        """The table's records, then those of the streams; each topic's by time but for disorder."""
        rows = [self._row(number, name) for number, name in enumerate(NAMES[:-2])]
        for topic in topics:
            now = START_MS
            for _ in range(self.chance.randint(*RECORDS)):
                now += self.chance.choice((0, 1000, 20_000, 90_000, 400_000))
                rows.append(self._record(topic, now))
        return rows

    def _row(self, number: int, name: str) -> Event:
        place = partition_of(name, self.partitions)
        row = {"V": self.chance.randint(0, 9)}
        return Event(TABLE, place, name, row, 3_600_000 + number)

    def _record(self, topic: str, now: int) -> Event:
        chance = self.chance
        late_ms = self._late_ms(topic)
        if chance.random() < KEYLESS:
            key, place = None, chance.randrange(self.partitions)
        else:
            key = chance.choice(NAMES)
            place = partition_of(key, self.partitions)
        row = {"G": chance.choice(NAMES), "H": chance.randint(0, 5), "N": chance.randint(0, 9)}
        return Event(topic, place, key, row, now - late_ms)

    def _late_ms(self, topic: str) -> int:
        """How far the next record of a topic is behind."""
        del topic
        return self.chance.randint(0, self.behind_ms) if self.chance.random() < 0.4 else 0


def stream(name: str) -> Source:
    """Its declaration."""
    return Source(name, "STREAM", "K", "STRING", {"G": "STRING", "H": "BIGINT", "N": "BIGINT"})


def _table() -> Source:
    return Source(TABLE, "TABLE", "TK", "STRING", {"V": "BIGINT"})
