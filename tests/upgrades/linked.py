"""Tables of tables, each of which is rebuilt, rolled back, paused and restarted at any time.

In the end the rows of a query are those that its statement gives over the rows of its sources.
Another service, which knows nothing of the past, computes them.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from ksql.core.query_version import QueryVersion
from ksql.kafka.latest_by_key import LastRecord
from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import PersistentQuery
from tests.unit.world import World
from tests.upgrades.chance import timestamp
from tests.upgrades.hosts import NOW_MS

KEYS = ("k1", "k2", "k3", "k4", "k5")
TABLES, STREAM = ("T", "V"), "S"
QUERIES = ("Q1", "Q2", "Q3")
STEPS = 40
COLUMNS = "F STRING, N BIGINT, X BIGINT"
GROUPED = "COUNT(*) AS N, SUM(X) AS X"
NAMES = re.compile(r"\b([STVPU]|[QDJIWY]\d)\b")
SETTLED = 12
"""So many looks at the rebuilds are enough for all of them."""


class Unlike(AssertionError):
    """The rows of a query are not those of its statement; the message has the story."""


@dataclass(frozen=True)
class Recipe:
    """The SELECT of a version of a query, and the stream's records for it.

    It has these from the first one on, and none from before a time.
    """

    select: str
    first: int = 0
    since_s: int = 0


@dataclass
class Tally:
    """The number of steps of each kind, the refused ones apart."""

    stories: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    compared: int = 0

    def add(self, other: Tally) -> None:
        """Count those of another one, too."""
        self.stories += other.stories
        self.steps += other.steps
        self.compared += other.compared


def declarations() -> str:
    """The statements of the sources."""
    return declaration("STREAM", STREAM) + "".join(declaration("TABLE", each) for each in TABLES)


def declaration(kind: str, name: str) -> str:
    """The statement of one that has the columns of all."""
    key = "PRIMARY KEY" if kind == "TABLE" else "KEY"
    return (
        f"CREATE {kind} {name} (ID STRING {key}, {COLUMNS}) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


class Scene(Protocol):
    """The service of a story; names in its statements end with ``tag``."""

    tag: str
    start_s: int
    is_still: bool
    """Whether queries read in ``read`` only, and rebuilds end in ``look``: then some begin now."""

    @property
    def catalog(self) -> Catalog:
        """The present sources and queries."""

    def run(self, text: str) -> None:
        """Execute a statement.

        Raises: Refused.
        """

    def append(self, topic: str, key: bytes, value: bytes | None, time_ms: int) -> None:
        """Write a record."""

    def read(self, versions: Sequence[QueryVersion]) -> None:
        """Have them read what is there."""

    def look(self) -> None:
        """Look at the rebuilds once."""

    def restart(self) -> None:
        """Start again."""

    def await_quiet(self) -> None:
        """Wait until all queries have read all that is there."""

    def records(self, topic: str) -> Sequence[LastRecord]:
        """Key, value and time of all records, in their order."""

    def partitions(self, topic: str) -> Sequence[Sequence[LastRecord]]:
        """The records of each partition."""

    def together(self, topics: Sequence[str]) -> Sequence[tuple[str, LastRecord]]:
        """The records of topics in the order in which all are read, where it ``is_still``."""


class Refused(Exception):
    """A statement was refused."""


class InMemory:
    """One process, no Kafka, no Spark."""

    tag = ""
    start_s = 1_000
    is_still = True

    def __init__(self) -> None:
        self._world = World()
        self._world.engine.now_ms = lambda: NOW_MS

    @property
    def catalog(self) -> Catalog:
        catalog: Catalog = self._world.catalog
        return catalog

    def run(self, text: str) -> None:
        before = self._traces()
        try:
            self._world.run(text)
        except RequestFailed as failed:
            assert self._traces() == before
            raise Refused(failed.error.message) from failed

    def _traces(self) -> tuple[Catalog, set[str]]:
        return self._world.catalog, set(self._world.topics.known)

    def append(self, topic: str, key: bytes, value: bytes | None, time_ms: int) -> None:
        self._world.topics.append(topic, key, value, time_ms)

    def read(self, versions: Sequence[QueryVersion]) -> None:
        self._world.runner.drain(versions)

    def look(self) -> None:
        RebuildSupervisor(self._world.engine, Settings()).step()

    def restart(self) -> None:
        """Another service replays the log over the same topics, and the same state."""
        old = self._world
        new = World(log=old.log, runner=lambda _topics: old.runner, topics=old.topics)
        for offset, command in enumerate(old.log.commands):
            new.engine.replay(offset, command)
        assert new.catalog == old.catalog
        new.engine.now_ms = old.engine.now_ms
        self._world = new

    def await_quiet(self) -> None:
        self._world.drain()

    def records(self, topic: str) -> Sequence[LastRecord]:
        return [record for _, record in self.together([topic])]

    def partitions(self, topic: str) -> Sequence[Sequence[LastRecord]]:
        return [self.records(topic)]

    def together(self, topics: Sequence[str]) -> Sequence[tuple[str, LastRecord]]:
        logs = self._world.topics.records
        stored = [(each.sequence, name, each) for name in topics for each in logs.get(name, [])]
        return [(name, (each.key, each.value, each.timestamp)) for _, name, each in sorted(stored)]


class Story:
    """Three queries, each over sources and those before it, and what becomes of them."""

    upgraded: Sequence[str] = QUERIES
    """What is rolled back, or given up."""
    resting: Sequence[str] = QUERIES
    """What is paused."""

    def __init__(self, seed: int, scene: Scene | None = None) -> None:
        self.seed = seed
        self.scene = scene or InMemory()
        self.chance = random.Random(seed)
        self.lines: list[str] = []
        self.recipes: dict[QueryVersion, Recipe] = {}
        self.now_s = self.scene.start_s
        self.added = 0
        self.tally = Tally(1)
        self._run(declarations())
        self.feed()
        for name in QUERIES:
            self._create("TABLE", name, self._select(name))

    def run(self, steps: int = STEPS) -> Tally:
        """Do something so many times; now and then all must be as it should be."""
        kinds = self.kinds()
        for _ in range(steps):
            self.tally.steps[self.chance.choice(kinds)()] += 1
            if self.chance.random() < 0.08:
                self.settle()
        self.settle()
        return self.tally

    def kinds(self) -> list[Callable[[], str]]:
        """The kinds of steps; some are there more often."""
        return [
            *[self.feed] * 6,
            *[self.read] * 4,
            *[self.rebuild] * 4,
            *[self.look] * 4,
            *[self.roll_back] * 2,
            self.abort,
            self.same_again,
            self.pause,
            self.resume,
            self.resume,
            self.grow,
            self.restart,
        ]

    # --- what is done

    def feed(self) -> str:
        """Records of all sources; nobody reads them yet."""
        for _ in range(self.chance.randint(1, 8)):
            name, key = self.chance.choice((*TABLES, STREAM, STREAM)), self.chance.choice(KEYS)
            self.now_s += self.chance.randint(0, 3)
            row = {
                "F": self.chance.choice((*KEYS, None)),
                "N": self.chance.randint(0, 5),
                "X": self.chance.randint(-3, 9),
            }
            deleted = name in TABLES and self.chance.random() < 0.25
            self.lines.append(f"{name} {key} {None if deleted else row} at {self.now_s}")
            value = None if deleted else json.dumps(row).encode()
            self.scene.append(name, key.encode(), value, self.now_s * 1000)
        return "fed"

    def read(self) -> str:
        """Some versions of queries read what is there."""
        versions = list(self.scene.catalog.versions)
        some = self.chance.sample(versions, self.chance.randint(1, len(versions)))
        self.lines.append(f"-- read by {[version.name for version in some]}")
        self.scene.read(some)
        return "read"

    def rebuild(self) -> str:
        """Another statement of the same columns, from the beginning or from now on."""
        name = self.chance.choice(QUERIES)
        select = self._select(name)
        options, recipe = self._start(select)
        query = self._query(name)
        mode = ", ".join(["REPLACE_MODE='rebuild'", *options])
        done = self._try(f"CREATE OR REPLACE TABLE {name} WITH ({mode}) AS {select};")
        if done:
            rebuild = self.scene.catalog.rebuilds.get(query.id)  # it may be cut over already
            candidate = self._query(name) if rebuild is None else rebuild.candidate
            self.recipes[candidate.version] = recipe
        return "rebuilt" if done else "rebuild refused"

    def _start(self, select: str) -> tuple[list[str], Recipe]:
        """START_MODE, or nothing, and what a query is made from that begins so."""
        kind = self.chance.choice(("", "", "", "earliest", "now", "time"))
        if kind == "now" and self.scene.is_still:
            return [f"START_MODE='{kind}'"], Recipe(select, first=len(self._records(STREAM)))
        if kind == "time":
            since_s = self.chance.randint(self.scene.start_s, self.now_s)
            return [f"START_MODE='{timestamp(since_s)}'"], Recipe(select, since_s=since_s)
        return [f"START_MODE='{kind}'"] if kind == "earliest" else [], Recipe(select)

    def _create(self, kind: str, name: str, select: str) -> None:
        """Make a query; it may begin somewhere, too."""
        options, recipe = self._start(select)
        properties = f" WITH ({options[0]})" if options else ""
        self._run(f"CREATE {kind} {name}{properties} AS {select};")
        self.recipes[self._query(name).version] = recipe

    def roll_back(self) -> str:
        """Back to the version before."""
        return self._roll_back(self.chance.choice(self.upgraded))

    def _roll_back(self, name: str) -> str:
        done = self._try(f"ROLLBACK UPGRADE OF {name};")
        return "rolled back" if done else "rollback refused"

    def abort(self) -> str:
        """A candidate is given up."""
        done = self._try(f"ABORT UPGRADE OF {self.chance.choice(self.upgraded)};")
        return "aborted" if done else "abort refused"

    def same_again(self) -> str:
        """A replacement in place by the same statement."""
        name = self.chance.choice(QUERIES)
        select = self.recipes[self._query(name).version].select
        done = self._try(f"CREATE OR REPLACE TABLE {name} AS {select};")
        return "replaced" if done else "replacement refused"

    def pause(self) -> str:
        """A query rests, and its candidate."""
        return self._rest("PAUSE")

    def resume(self) -> str:
        """A query continues."""
        return self._rest("RESUME")

    def _rest(self, verb: str) -> str:
        done = self._try(f"{verb} {self._query(self.chance.choice(self.resting)).id};")
        return verb.lower() if done else f"{verb.lower()} refused"

    def grow(self) -> str:
        """A source gets a column more."""
        if self.added > 4:
            return "nothing"
        self.added += 1
        name = self.chance.choice((*TABLES, STREAM))
        kind = "STREAM" if name == STREAM else "TABLE"
        self._run(f"ALTER {kind} {name} ADD COLUMN C{self.added} BIGINT;")
        return "grown"

    def look(self) -> str:
        """The rebuilds are looked at once."""
        self.lines.append("-- step")
        before = len(self.scene.catalog.rebuilds)
        self.scene.look()
        ended = before - len(self.scene.catalog.rebuilds)
        return f"{ended} cut over"

    def restart(self) -> str:
        """The service starts again."""
        self.lines.append("-- restart")
        self.scene.restart()
        return "restarted"

    # --- what must be

    def settle(self) -> None:
        """All queries continue, all candidates are cut over: then the rows must be right."""
        for name in self.resting:
            if self._query(name).paused:
                self._run(f"RESUME {self._query(name).id};")
        for _ in range(SETTLED):
            self.scene.await_quiet()
            if not self.scene.catalog.rebuilds:
                break
            self.look()
        if self.scene.catalog.rebuilds:
            raise self._unlike(f"not cut over: {list(self.scene.catalog.rebuilds)}")
        self.scene.await_quiet()
        for name in QUERIES:
            recipe = self.recipes[self._query(name).version]
            actual, expected = self._rows(name), self._computed(name, recipe)
            self.tally.compared += 1
            if actual != expected:
                raise self._unlike(f"{name} is {actual}, not {expected}: {recipe}")

    def _computed(self, name: str, recipe: Recipe) -> Mapping[bytes, bytes | None]:
        """The rows that a statement gives over the rows of now, and the stream's records."""
        before = QUERIES[: QUERIES.index(name)]
        declared = declarations() + "".join(declaration("TABLE", each) for each in before)
        rows = [
            (each, row)
            for each in (*TABLES, *before)
            for row in last_of(self._records(each)).values()
        ]
        read = [*rows, *((STREAM, record) for record in self._read(recipe))]
        statement = f"CREATE TABLE {name} AS {recipe.select};"
        return values_of(results(declared, read, statement, name))

    def _read(self, recipe: Recipe) -> Sequence[LastRecord]:
        """The stream's records that a query has read."""
        records = self._records(STREAM)[recipe.first :]
        return [record for record in records if record[2] >= recipe.since_s * 1000]

    def _rows(self, name: str) -> Mapping[bytes, bytes | None]:
        return values_of(self._records(name))

    def _records(self, topic: str) -> Sequence[LastRecord]:
        return self.scene.records(topic + self.scene.tag)

    def _unlike(self, what: str) -> Unlike:
        return Unlike(f"seed {self.seed}: {what}\n" + "\n".join(self.lines))

    # --- statements

    def _query(self, name: str) -> PersistentQuery:
        (query,) = self.scene.catalog.writers(name + self.scene.tag)
        return query

    def _run(self, text: str) -> None:
        self.lines.append(text)
        self.scene.run(self._named(text))

    def _try(self, text: str) -> bool:
        """Execute a statement that may be refused."""
        self.lines.append(text)
        try:
            self.scene.run(self._named(text))
        except Refused as refused:
            self.lines[-1] += f" -- refused: {refused}"
            return False
        return True

    def _named(self, text: str) -> str:
        return NAMES.sub(rf"\1{self.scene.tag}", text)

    # --- what is computed

    def _select(self, name: str) -> str:
        """A SELECT of the same columns as all others."""
        chance = self.chance
        sources = [*TABLES, *QUERIES[: QUERIES.index(name)]] * 2
        sources += QUERIES[: QUERIES.index(name)] * 3
        left = chance.choice(sources)
        right = chance.choice([each for each in sources if each != left])
        number = chance.randint(0, 3)
        value = "L.X + COALESCE(R.X, CAST(0 AS BIGINT)) AS X"
        outer = chance.choice(("", "LEFT "))
        return chance.choice(
            (
                f"SELECT ID, F, N, X + {number} AS X FROM {left} WHERE X > {number}",
                f"SELECT ID, F, N + {number} AS N, X FROM {left}",
                f"SELECT L.ID AS ID, L.F AS F, L.N AS N, {value} FROM {left} L "
                f"{outer}JOIN {right} R ON L.ID = R.ID",
                f"SELECT L.ID AS ID, L.F AS F, L.N AS N, {value} FROM {left} L "
                f"{outer}JOIN {right} R ON L.F = R.ID",
                f"SELECT F AS ID, AS_VALUE(F) AS F, {GROUPED} FROM {left} "
                "GROUP BY F HAVING COUNT(*) > 0",
                f"SELECT ID, LATEST_BY_OFFSET(F) AS F, {GROUPED} FROM {STREAM} "
                f"WHERE X > {number - 2} GROUP BY ID",
                f"SELECT F AS ID, AS_VALUE(F) AS F, {GROUPED} FROM {STREAM} GROUP BY F",
            )
        )


def results(
    declared: str, read: Iterable[tuple[str, LastRecord]], statement: str, sink: str
) -> Sequence[LastRecord]:
    """The results of a query over records of some topics, in a service of its own."""
    other = World(declared)
    for topic, record in read:
        other.topics.append(topic, *record)
    other.run(statement)
    other.drain()
    written = other.topics.records.get(sink, [])
    return [(each.key, each.value, each.timestamp) for each in written]


def last_of(records: Iterable[LastRecord]) -> Mapping[bytes, LastRecord]:
    """The last record of each key, in the order of these."""
    last: dict[bytes, LastRecord] = {}
    for record in records:
        last.pop(record[0], None)
        last[record[0]] = record
    return last


def values_of(records: Iterable[LastRecord]) -> Mapping[bytes, bytes | None]:
    """The rows of a table's topic."""
    last = sorted(last_of(records).items())
    return {key: value for key, (_, value, _) in last if value is not None}
