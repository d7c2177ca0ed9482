"""Chains whose tables change while the records of streams come.

Tables are joined with each other, by foreign keys too, or come of a GROUP BY. All records are in
order, and no two topics have records of one time: so what a join meets follows from their times.
"""

from __future__ import annotations

from tests.chains.cases import Chain, Link
from tests.chains.making import (
    FOLDS,
    NAMES,
    RECORDS,
    SECOND,
    START_MS,
    STREAM,
    TABLE,
    TEXTS,
    Making,
    stream,
)
from tests.cuts.cases import Event, Source
from tests.cuts.chance import partition_of

OTHER = "T1"
ROWS = (20, 60)
"""How many changes a table has."""
DELETED = 0.25
NONE = "CAST(0 AS BIGINT)"


class Changing(Making):
    """A chain on its way; what a query of a table writes has the columns of the first table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.behind_ms = 0
        self.grouped = False
        self.second = self.chance.random() < 0.5

    def chain(self) -> Chain:
        """All of it: a table or two, what streams make of them, and an aggregate."""
        self.before()
        self.between()
        self.after()
        chance = self.chance
        streams = (STREAM, SECOND) if self.second or self.paired else (STREAM,)
        return Chain(
            (*map(stream, streams), table(TABLE), table(OTHER)),
            self.partitions,
            tuple(self.links),
            tuple(self._all_events(streams)),
            chance.choice((1, 2, 3, 4)),
            # the changes within an interval would be one for a query that joins the aggregate
            chance.random() < 0.3 and not self.grouped,
        )

    def before(self) -> None:
        """A table or two of what changes."""
        kinds = [self.other_table, self.twin, self.twin, self.foreign, self.summed]
        kinds += [self.counted] if self.second else []
        for _ in range(self.chance.choice((1, 1, 2))):
            self.chance.choice(kinds)()

    def between(self) -> None:
        """Streams that meet these tables, or each other."""
        chance = self.chance
        shapes = [chance.choice((self.joined, self.joined, self.plain, self.moved))]
        shapes += [self.joined] if chance.random() < 0.6 else []
        if self.second and not self.grouped and chance.random() < 0.4:
            shapes.append(self.with_stream)
        for number, shape in enumerate(shapes):
            shape(last=number == len(shapes) - 1)

    def after(self) -> None:
        """An aggregate, perhaps of windows, or one that meets the last table."""
        if self.chance.random() < 0.5:
            self.window()
        elif self.chance.random() < 0.5:
            self.aggregate()
        else:
            self.both_ends()

    # --- tables

    def other_table(self) -> None:
        """Some rows of the table, projected."""
        self._of_tables("table", f"SELECT TK, F, V + 1 AS V FROM {self.table} WHERE V > 1")

    def twin(self) -> None:
        """The table joined with the other one."""
        chance = self.chance
        kind = chance.choice(("", "LEFT ", "FULL OUTER "))
        key = "ROWKEY AS TK" if kind.startswith("FULL") else "A.TK AS TK"
        value = f"COALESCE(A.V, {NONE}) + COALESCE(B.V, {NONE}) AS V"
        self._of_tables(
            "twin",
            f"SELECT {key}, COALESCE(A.F, B.F) AS F, {value} FROM {self.table} A "
            f"{kind}JOIN {OTHER} B ON A.TK = B.TK",
        )

    def foreign(self) -> None:
        """The table joined with the row of the other one that it names."""
        left = "LEFT " if self.chance.random() < 0.5 else ""
        self._of_tables(
            "foreign",
            f"SELECT A.TK AS TK, A.F AS F, A.V + COALESCE(B.V, {NONE}) AS V FROM {self.table} A "
            f"{left}JOIN {OTHER} B ON A.F = B.TK",
        )

    def summed(self) -> None:
        """The rows of the table by what they name."""
        self.grouped = True
        folds = "AS_VALUE(F) AS F, SUM(V) AS V"
        self._of_tables("summed", f"SELECT F AS TK, {folds} FROM {self.table} GROUP BY F")

    def counted(self) -> None:
        """The records of the second stream, by one of their columns."""
        self.grouped = True
        by = self.chance.choice(TEXTS)
        folds = f"AS_VALUE({by}) AS F, COUNT(*) AS V"
        self._of_tables("counted", f"SELECT {by} AS TK, {folds} FROM {SECOND} GROUP BY {by}")

    def _of_tables(self, shape: str, select: str) -> None:
        sink = self._sink()
        text = f"CREATE TABLE {sink} AS {select};"
        self.links.append(Link(shape, sink, text, self.partitions, ordered=True))
        self.table = sink

    def both_ends(self) -> None:
        """The last table, aggregated, and joined with what the streams have come to."""
        by, counts = self.key, self._sink()
        if by not in TEXTS:
            self.aggregate()
            return
        partitions = self.links[-1].partitions
        text = f"CREATE TABLE {counts} AS SELECT {by}, {FOLDS} FROM {self.read} GROUP BY {by};"
        self.links.append(Link("grouped", counts, text, partitions, ordered=True))
        if partitions != self.partitions or "KEY_FORMAT" in "".join(
            each.text for each in self.links
        ):
            return
        sink = self._sink()
        left = "LEFT " if self.chance.random() < 0.5 else ""
        columns = f"A.{by} AS TK, A.C AS C, A.TOTAL AS TOTAL, B.V AS V"
        text = (
            f"CREATE TABLE {sink} AS SELECT {columns} FROM {counts} A {left}JOIN {self.table} B "
            f"ON A.{by} = B.TK;"
        )
        self.links.append(Link("ended", sink, text, partitions, ordered=True))

    # --- records

    def _all_events(self, topics: tuple[str, ...]) -> list[Event]:
        """The records of the streams at whole seconds and between; those of tables elsewhere."""
        events = []
        for place, topic in enumerate((TABLE, OTHER)):
            events += [self._change(topic, name, START_MS - 9 + place) for name in NAMES[::2]]
            events += self._changes(topic, place + 1)
        for place, topic in enumerate(topics):
            now = START_MS + 500 * place
            for _ in range(self.chance.randint(*RECORDS)):
                now += self.chance.choice((0, 1000, 20_000, 90_000, 400_000))
                events.append(self._record(topic, now))
        return events

    def _changes(self, topic: str, now: int) -> list[Event]:
        now += START_MS
        rows = []
        for _ in range(self.chance.randint(*ROWS)):
            now += self.chance.choice((0, 1000, 60_000, 300_000, 900_000))
            rows.append(self._change(topic, self.chance.choice(NAMES), now))
        return rows

    def _change(self, topic: str, name: str, now: int) -> Event:
        place = partition_of(name, self.partitions)
        now -= self._late_ms(topic) if self.behind_ms else 0
        if self.chance.random() < DELETED:
            return Event(topic, place, name, None, now)
        row = {"F": self.chance.choice(NAMES), "V": self.chance.randint(0, 9)}
        return Event(topic, place, name, row, now)


def table(name: str) -> Source:
    """Its declaration, with a column that names a row of the other one."""
    return Source(name, "TABLE", "TK", "STRING", {"F": "STRING", "V": "BIGINT"})
