"""Readers of what is upgraded: joins, windows with EMIT FINAL, streams over topics, INSERT INTO.

Tables are rebuilt as in ``linked``; a stream, too, of which no record may be lost or come twice. A
reader's results are those that its statement gives over the records of its sources, cut-over or no.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ksql.core.query_version import QueryVersion
from ksql.kafka.latest_by_key import LastRecord
from tests.upgrades.linked import COLUMNS, QUERIES, STREAM, Scene, Story, declaration, results

PLANS, CHANGED = "P", "U"
"""The stream that is upgraded: of each record it has the number of its plan. And a table.

Its rows are of several plans where these were replaced in place: only its readers are compared.
"""
WINDOW = "WINDOW TUMBLING (SIZE 6 SECONDS, GRACE PERIOD 3 SECONDS)"
Compared = tuple[str, Counter[Any], Counter[Any]]
"""What is compared, what it should be, and what it is."""


@dataclass(frozen=True)
class Reader:
    """A query over one topic whose records may be taken partition by partition."""

    sink: str
    source: str
    declared: str
    statement: str


class ReadStory(Story):
    """A story of tables, two of which have readers, and of a stream."""

    upgraded = (*QUERIES, PLANS, CHANGED)
    read_tables = 2

    def __init__(self, seed: int, scene: Scene | None = None) -> None:
        super().__init__(seed, scene)
        self._create("TABLE", CHANGED, counts(0))
        self._create("STREAM", PLANS, plan(0))
        first = self._query(PLANS).version
        self.begun = self.recipes[first]
        self.numbers = {first: 0}
        self.plans = [0]
        self.readers: list[Reader] = []
        self.joins: list[tuple[str, str]] = []
        for number, table in enumerate(self._some_tables()):
            self._read_table(table, number)
        self._read_stream(PLANS, PLANS, self.read_tables)
        sinks = [reader.sink for reader in self.readers if reader.sink[0] != "I"]
        self.resting = (*self.upgraded, *sinks, *(join for join, _ in self.joins))

    def _some_tables(self) -> Sequence[str]:
        """Those that have readers."""
        return self.chance.sample((*QUERIES, CHANGED), self.read_tables)

    def _read_table(self, table: str, number: int) -> None:
        """A join with it and the windows of that, and what reads its topic as a stream."""
        over, join = f"D{number}", f"J{number}"
        self._run(stream_over(over, table))
        self._read_stream(over, table, number)
        self._run(f"CREATE STREAM {join} AS {joined(table)};")
        self.joins.append((join, table))
        declared = stream_over(join, join, "N BIGINT, X BIGINT")
        self._begin(Reader(f"Y{number}", join, declared, windowed(f"Y{number}", join)))

    def _read_stream(self, stream: str, topic: str, number: int) -> None:
        """Windows of a stream, and a stream that gets its records and those of another one."""
        window, sink = f"W{number}", f"I{number}"
        declared = stream_over(stream, topic)
        self._begin(Reader(window, topic, declared, windowed(window, stream)))
        self._run(stream_over(sink, sink))
        for source, text in ((stream, declared), (STREAM, stream_over(STREAM, STREAM))):
            insertion = f"INSERT INTO {sink} SELECT ID, F, N, X FROM {source};"
            origin = topic if source == stream else STREAM
            self._begin(Reader(sink, origin, text + stream_over(sink, sink), insertion))

    def _begin(self, reader: Reader) -> None:
        self._run(reader.statement)
        self.readers.append(reader)

    # --- what is done

    def kinds(self) -> list[Callable[[], str]]:
        """The stream and its like are upgraded, too."""
        return [*super().kinds(), *[self.upgrade_stream] * 4, *[self.upgrade_table] * 2]

    def upgrade_stream(self) -> str:
        """Another plan for the stream; its number is in the results."""
        number = max(self.numbers.values()) + 1
        done = self._upgrade("STREAM", PLANS, plan(number))
        if done:
            self.numbers[self._coming()] = number
            self.plans.append(number)
        return "stream upgraded" if done else "stream refused"

    def upgrade_table(self) -> str:
        """Another plan for the table."""
        done = self._upgrade("TABLE", CHANGED, counts(self.chance.randint(0, 9)))
        return "table upgraded" if done else "table refused"

    def _upgrade(self, kind: str, name: str, select: str) -> bool:
        mode = self.chance.choice(("in_place", "rebuild", "auto"))
        options = self._start(select)[0] if mode == "rebuild" else []
        stated = ", ".join([f"REPLACE_MODE='{mode}'", *options])
        return self._try(f"CREATE OR REPLACE {kind} {name} WITH ({stated}) AS {select};")

    def _roll_back(self, name: str) -> str:
        outcome = super()._roll_back(name)
        if name == PLANS and outcome == "rolled back":
            self.plans.append(self.numbers[self._coming()])
        return outcome

    def _coming(self) -> QueryVersion:
        """The version of the stream's query that is built, or has just been."""
        query = self._query(PLANS)
        rebuild = self.scene.catalog.rebuilds.get(query.id)
        return query.version if rebuild is None else rebuild.candidate.version

    # --- what must be

    def settle(self) -> None:
        """The readers, too, have read all that is there, and the stream."""
        super().settle()
        for what, expected, actual in [*self._streams(), *self._joins(), *self._readers()]:
            self.tally.compared += 1
            if expected != actual:
                lost, more = expected - actual, actual - expected
                raise self._unlike(f"{what} lacks {lost}, has more of {more}")
        for records in self.scene.partitions(PLANS + self.scene.tag):
            numbers = [json.loads(value or b"")["N"] for _, value, _ in records]
            self._check_plans([number for number, _ in groupby(numbers)])

    def _streams(self) -> Iterator[Compared]:
        """Each record of the stream is there once, by whichever plan."""
        expected = Counter(_of(record, "F", "X") for record in self._read(self.begun))
        yield PLANS, expected, Counter(_of(record, "F", "X") for record in self._records(PLANS))

    def _check_plans(self, numbers: Sequence[int]) -> None:
        """Plans follow one another as they were stated."""
        stated = iter(self.plans)
        if not all(number in stated for number in numbers):
            raise self._unlike(f"{PLANS} has plans {numbers}, stated were {self.plans}")

    def _joins(self) -> Iterator[Compared]:
        """Each record of the stream has met the table once."""
        declared = stream_over(STREAM, STREAM) + "".join(
            declaration("TABLE", each) for _, each in self.joins
        )
        for join, table in self.joins:
            records = self._records(join)
            read = Counter(_of(record, "N") for record in self._records(STREAM))
            yield join, read, Counter(_of(record, "N") for record in records)
            if self.scene.is_still:
                read_in_order = self.scene.together([STREAM, table])
                statement = f"CREATE STREAM {join} AS {joined(table)};"
                yield (
                    join,
                    Counter(results(declared, read_in_order, statement, join)),
                    Counter(records),
                )
            else:
                rows = {_of(row, "X")[::2] for row in self._records(table)}
                met = Counter(_of(record, "X")[::2] for record in records)
                strange = Counter(row for row in met if row not in rows and row[1] is not None)
                yield f"{join} meets", Counter(), strange

    def _readers(self) -> Iterator[Compared]:
        """The results are those of the statements over the records of now."""
        expected: dict[str, Counter[Any]] = {}
        for reader in self.readers:
            for records in self.scene.partitions(reader.source + self.scene.tag):
                read = [(reader.source, record) for record in records]
                given = results(reader.declared, read, reader.statement, reader.sink)
                expected.setdefault(reader.sink, Counter()).update(given)
        for sink, results_ in expected.items():
            yield sink, results_, Counter(self._records(sink))


def plan(number: int) -> str:
    """The SELECT of the stream's plan of that number."""
    return f"SELECT ID, F, CAST({number} AS BIGINT) AS N, X FROM {STREAM}"


def counts(number: int) -> str:
    """The SELECT of the table's plan of that number."""
    folds = f"LATEST_BY_OFFSET(F) AS F, COUNT(*) + {number} AS N, SUM(X) + {number} AS X"
    return f"SELECT ID, {folds} FROM {STREAM} GROUP BY ID"


def joined(table: str) -> str:
    """The SELECT of a stream that meets a table."""
    return (
        f"SELECT {STREAM}.ID AS ID, {STREAM}.N AS N, {table}.X AS X "
        f"FROM {STREAM} LEFT JOIN {table} ON {STREAM}.ID = {table}.ID"
    )


def windowed(sink: str, stream: str) -> str:
    """The windows of a stream, as they end."""
    return (
        f"CREATE TABLE {sink} AS SELECT ID, COUNT(*) AS N, SUM(X) AS X FROM {stream} "
        f"{WINDOW} GROUP BY ID EMIT FINAL;"
    )


def stream_over(name: str, topic: str, columns: str = COLUMNS) -> str:
    """The declaration of a stream."""
    return (
        f"CREATE STREAM {name} (ID STRING KEY, {columns}) "
        f"WITH (KAFKA_TOPIC='{topic}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


def _of(record: LastRecord, *names: str) -> tuple[Any, ...]:
    """The key and the time of a record, and some of its columns."""
    key, value, time_ms = record
    row = json.loads(value) if value else {}
    return key, time_ms, *(row.get(name) for name in names)
