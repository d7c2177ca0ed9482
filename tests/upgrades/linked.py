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

KEYS = ("k1", "k2", "k3", "k4", "k5")
TABLES, STREAM = ("T", "V"), "S"
QUERIES = ("Q1", "Q2", "Q3")
STEPS = 40
COLUMNS = "F STRING, N BIGINT, X BIGINT"
GROUPED = "COUNT(*) AS N, SUM(X) AS X"
NAMES = re.compile(r"\b([STV]|Q\d)\b")
SETTLED = 12
"""So many looks at the rebuilds are enough for all of them."""


class Unlike(AssertionError):
    """The rows of a query are not those of its statement; the message has the story."""


@dataclass(frozen=True)
class Recipe:
    """The SELECT of a version of a query, and the stream's first record for it."""

    select: str
    first: int = 0


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


class Refused(Exception):
    """A statement was refused."""


class InMemory:
    """One process, no Kafka, no Spark."""

    tag = ""
    start_s = 1_000
    is_still = True

    def __init__(self) -> None:
        self._world = World()

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
        self._world = new

    def await_quiet(self) -> None:
        self._world.drain()

    def records(self, topic: str) -> Sequence[LastRecord]:
        records = self._world.topics.records.get(topic, [])
        return [(each.key, each.value, each.timestamp) for each in records]


class Story:
    """Three queries, each over sources and those before it, and what becomes of them."""

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
            select = self._select(name)
            self._run(f"CREATE TABLE {name} AS {select};")
            self.recipes[self._query(name).version] = Recipe(select)

    def run(self, steps: int = STEPS) -> Tally:
        """Do something so many times; now and then all must be as it should be."""
        kinds: list[Callable[[], str]] = [
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
        for _ in range(steps):
            self.tally.steps[self.chance.choice(kinds)()] += 1
            if self.chance.random() < 0.08:
                self.settle()
        self.settle()
        return self.tally

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
        select, start = self._select(name), self.chance.choice(("", "", "", "earliest", "now"))
        if start == "now" and not self.scene.is_still:
            start = ""
        mode = "REPLACE_MODE='rebuild'" + (f", START_MODE='{start}'" if start else "")
        first = len(self._records(STREAM)) if start == "now" else 0
        query = self._query(name)
        done = self._try(f"CREATE OR REPLACE TABLE {name} WITH ({mode}) AS {select};")
        if done:
            rebuild = self.scene.catalog.rebuilds.get(query.id)  # it may be cut over already
            candidate = self._query(name) if rebuild is None else rebuild.candidate
            self.recipes[candidate.version] = Recipe(select, first)
        return "rebuilt" if done else "rebuild refused"

    def roll_back(self) -> str:
        """Back to the version before."""
        done = self._try(f"ROLLBACK UPGRADE OF {self.chance.choice(QUERIES)};")
        return "rolled back" if done else "rollback refused"

    def abort(self) -> str:
        """A candidate is given up."""
        done = self._try(f"ABORT UPGRADE OF {self.chance.choice(QUERIES)};")
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
        done = self._try(f"{verb} {self._query(self.chance.choice(QUERIES)).id};")
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
        for name in QUERIES:
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
        other = World(declarations())
        before = QUERIES[: QUERIES.index(name)]
        for each in before:
            other.run(declaration("TABLE", each))
        for each in (*TABLES, *before):
            for key, (_, value, time_ms) in last_of(self._records(each)).items():
                other.topics.append(each, key, value, time_ms)
        for key, value, time_ms in self._records(STREAM)[recipe.first :]:
            other.topics.append(STREAM, key, value, time_ms)
        other.run(f"CREATE TABLE {name} AS {recipe.select};")
        other.drain()
        rows = other.topics.records.get(name, [])
        return values_of((each.key, each.value, each.timestamp) for each in rows)

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
