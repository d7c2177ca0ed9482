"""Every point at which a process is killed, each with the state that must be there afterwards."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.crash.points import ANSWER
from tests.crash.site import Site
from tests.crash.world import EXACTLY_ONCE, World
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import Refused
from tests.waits import await_true

EITHER_WAY = ("CREATE", "DROP .. DELETE TOPIC", "REPLACE aggregate", "INSERT INTO", "TERMINATE")

BATCH_POINTS = {
    True: ("unbegun", "begun", "uncommitted", "committed"),
    False: ("read", "sent", "unacknowledged", "acknowledged"),
}
VICTIMS = ("server", "jvm", "broker")
KINDS = ("stateless", "aggregate", "join")


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    guarantee: str
    what: str
    point: str
    seconds: float
    fault: str = ""


@dataclass(frozen=True)
class Statement:
    """A statement to be killed in, again and again.

    ``prepare`` brings about what it needs and returns its text; ``judge`` is called once the next
    server runs.
    """

    name: str
    prepare: Callable[[World], str]
    judge: Callable[[World, str], None]


class Matrix:
    """Runs all points of one guarantee over one world; a fault gets the next point a new world."""

    def __init__(self, guarantee: str, make_site: Callable[[], Site]) -> None:
        self.guarantee = guarantee
        self._make_site = make_site
        self._world: World | None = None
        self.rows: list[Row] = []

    def run(self, only: str = "") -> Iterator[Row]:
        """All statements, and points of a batch, whose line holds the text."""
        for statement in STATEMENTS:
            if only in statement.name and self._concerns(statement):
                yield from self._statement(statement)
        for number, (victim, index) in enumerate(itertools.product(VICTIMS, range(3))):
            name = f"batch of {KINDS[index]}"
            points = BATCH_POINTS[self.guarantee == EXACTLY_ONCE]
            for point in (points[number % 2], points[2 + number % 2]):
                if only in f"{name} {point}, {victim}":
                    yield self._batch(index, name, point, victim)
        self.end()

    def _concerns(self, statement: Statement) -> bool:
        """Whether the guarantee could make a difference; exactly once goes through all."""
        return self.guarantee == EXACTLY_ONCE or statement.name in EITHER_WAY

    def end(self) -> None:
        """End the processes."""
        if self._world is not None:
            self._world.site.abandon()
            self._world.site.broker.stop()
            self._world = None

    # --- statements

    def _statement(self, statement: Statement) -> Iterator[Row]:
        effects: list[str] = []

        def learn() -> None:
            world = self._ready()
            effects.extend(_trace(world, statement))

        traced = self._row(statement.name, "not killed", learn)
        yield traced
        for number, effect in enumerate([*effects, ANSWER], 1):
            if number <= len(effects) and effect == ANSWER:
                continue
            yield self._row(
                statement.name,
                f"{number} before {effect}",
                lambda number=number: self._kill(statement, number),
            )

    def _kill(self, statement: Statement, number: int) -> None:
        world = self._ready()
        site = world.site
        text = statement.prepare(world)
        site.order(statement=text[:60], kill_at=number)
        family = site.family()
        with contextlib.suppress(httpx.TransportError):
            site.http.ksql(text, world.settings)
            raise AssertionError("the server has outlived the point: there are fewer effects now")
        site.await_dead(family)
        site.order()
        site.start()
        world.running(or_paused=True)
        statement.judge(world, text)
        world.verify()

    # --- batches

    def _batch(self, index: int, name: str, point: str, victim: str) -> Row:
        return self._row(
            name, f"{point}, {victim}", lambda: self._kill_in_batch(index, point, victim)
        )

    def _kill_in_batch(self, index: int, point: str, victim: str) -> None:
        world = self._ready()
        site, kind = world.site, world.kinds[index]
        hit = site.folder / unique("hit")
        family = site.family()
        site.order(batch=point, victim=_pid(site, victim), hit=str(hit))
        with ThreadPoolExecutor(1) as pool:
            feeding = pool.submit(world.feed, kind, 25)  # it waits while the broker is away
            await_true(f"{point} is reached", hit.exists)
            if victim == "broker":
                time.sleep(1.0)  # how long the broker is away is the subject
                site.broker.restart()
            elif victim == "server":
                site.await_dead(family)
                site.start()
            feeding.result()
        site.order()
        world.verify((kind,))

    # --- worlds

    def _row(self, what: str, point: str, run: Callable[[], None]) -> Row:
        began = time.monotonic()
        fault = ""
        try:
            run()
        except (AssertionError, Refused, httpx.HTTPError, OSError) as problem:
            fault = f"{type(problem).__name__}: {problem}"
            self.end()
        row = Row(self.guarantee, what, point, time.monotonic() - began, fault)
        self.rows.append(row)
        return row

    def _ready(self) -> World:
        if self._world is None:
            site = self._make_site()
            site.order()
            site.start()
            self._world = World(site, self.guarantee)
            self._world.create()
            for kind in self._world.kinds:
                self._world.feed(kind)
            self._world.verify()
        return self._world


def _trace(world: World, statement: Statement) -> list[str]:
    """The effects of the statement when nobody dies."""
    file = world.site.folder / "trace.json"
    file.unlink(missing_ok=True)
    text = statement.prepare(world)
    world.site.order(statement=text[:60], trace=str(file))
    world.site.http.ksql(text, world.settings)
    world.site.order()
    statement.judge(world, text)
    world.verify()
    steps: list[str] = json.loads(Path(file).read_text(encoding="utf-8"))
    return steps[:-1]  # the last is the answer


def _pid(site: Site, victim: str) -> int:
    match victim:
        case "server":
            return site.server_pid
        case "jvm":
            return site.jvm_pid()
        case _:
            return site.broker.pid


# --- the statements -------------------------------------------------------------------------------


def _new_sink(world: World) -> str:
    return unique("D").upper()


def _copy_of(world: World, name: str) -> str:
    return f"CREATE STREAM {name} AS SELECT K, N FROM {world.source(world.kinds[0])};"


def _name_in(text: str) -> str:
    """The name of what a statement makes, drops or replaces."""
    words = text.rstrip(";").replace(" OR REPLACE", "").split()
    return words[2]


def _drop(world: World, name: str) -> None:
    world.site.http.ksql(f"DROP STREAM {name} DELETE TOPIC;")


def _judge_create(world: World, text: str) -> None:
    """All or nothing; if nothing, the same statement again does all."""
    name = _name_in(text)
    if not world.has_source(name):
        world.site.http.ksql(text, world.settings)
    world.running()
    world.await_complete(world.kinds[0], name)
    _drop(world, name)
    assert not world.has_topic(name)


def _prepare_drop(world: World) -> str:
    name = _new_sink(world)
    world.site.http.ksql(_copy_of(world, name), world.settings)
    world.await_complete(world.kinds[0], name)
    return f"DROP STREAM {name} DELETE TOPIC;"


def _judge_drop(world: World, text: str) -> None:
    """Still there, whole; or gone, topic and query and all."""
    name = _name_in(text)
    if world.has_source(name):
        world.await_complete(world.kinds[0], name)
        world.site.http.ksql(text)
    else:
        await_true("the topic is gone", lambda: not world.has_topic(name), 20)
    assert not any(f"_{name}_" in query for query in world.running())
    world.site.http.ksql(_copy_of(world, name), world.settings)  # the name is free, and clean
    world.await_complete(world.kinds[0], name)
    _drop(world, name)


def _replacing(index: int) -> Statement:
    def prepare(world: World) -> str:
        kind = world.kinds[index]
        return world.statement(kind, "CREATE OR REPLACE", world.version[kind.name] + 1)

    def judge(world: World, text: str) -> None:
        kind = world.kinds[index]
        old = world.version[kind.name]
        if world.learn_version(kind, {old, old + 1}) == old:
            world.site.http.ksql(text, world.settings)
            world.version[kind.name] = old + 1

    return Statement(f"REPLACE {KINDS[index]}", prepare, judge)


def _prepare_insert_query(world: World) -> str:
    name = _new_sink(world)
    world.site.http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=2, VALUE_FORMAT='JSON');"
    )
    return (
        f"INSERT INTO {name} WITH (QUERY_ID='again_{name}') "
        f"SELECT K, N FROM {world.source(world.kinds[0])};"
    )


def _query_id(text: str) -> str:
    return text.split("'")[1].upper()


def _judge_insert_query(world: World, text: str) -> None:
    name, query = _name_in(text), _query_id(text)
    if query not in world.running():
        world.site.http.ksql(text, world.settings)
    world.await_complete(world.kinds[0], name)
    world.site.http.ksql(f"TERMINATE {query};")
    _drop(world, name)


def _prepare_terminate(world: World) -> str:
    text = _prepare_insert_query(world)
    world.site.http.ksql(text, world.settings)
    world.await_complete(world.kinds[0], _name_in(text))
    return f"TERMINATE {_query_id(text)};"


def _judge_terminate(world: World, text: str) -> None:
    """Ended or not, never lost: under the same id a new life reads all from the beginning."""
    query = text.split()[1].rstrip(";")
    name = query.removeprefix("AGAIN_")
    if query in world.running():
        world.site.http.ksql(text)
    again = unique("D").upper()
    source = world.source(world.kinds[0])
    world.site.http.ksql(
        f"CREATE STREAM {again} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{again}', PARTITIONS=2, VALUE_FORMAT='JSON');"
        f"INSERT INTO {again} WITH (QUERY_ID='{query}') SELECT K, N FROM {source};",
        world.settings,
    )
    world.await_complete(world.kinds[0], again)
    world.site.http.ksql(f"TERMINATE {query};")
    _drop(world, again)
    _drop(world, name)


def _aggregate_id(world: World) -> str:
    return next(i for i in world.site.http.queries() if f"_{world.kinds[1].name}_" in i)


def _prepare_pause(world: World) -> str:
    return f"PAUSE {_aggregate_id(world)};"


def _judge_pause(world: World, text: str) -> None:
    world.site.http.ksql(text.replace("PAUSE", "RESUME"))


def _prepare_resume(world: World) -> str:
    query = _aggregate_id(world)
    world.site.http.ksql(f"PAUSE {query};")
    world.feed(world.kinds[1])
    return f"RESUME {query};"


def _judge_resume(world: World, text: str) -> None:
    world.site.http.ksql(text)


def _prepare_values(world: World) -> str:
    """One row, in a topic of its own: acknowledged rows stay, the doubtful one may be there."""
    name = _new_sink(world)
    world.site.http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
        f"INSERT INTO {name} VALUES ('k0', 1);"
    )
    return f"INSERT INTO {name} VALUES ('k0', 2);"


def _judge_values(world: World, text: str) -> None:
    name = _name_in(text)
    values = [seen.value["N"] for seen in read_all(world.site.broker.bootstrap, name)]
    assert values in ([1], [1, 2]), values
    _drop(world, name)


def _prepare_declare(world: World) -> str:
    name = _new_sink(world)
    return (
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


def _judge_declare(world: World, text: str) -> None:
    name = _name_in(text)
    if not world.has_source(name):
        world.site.http.ksql(text)
    produce(world.site.broker.bootstrap, name, [("k0", {"N": 1})])
    _drop(world, name)


def _prepare_alter(world: World) -> str:
    text = _prepare_declare(world)
    world.site.http.ksql(text)
    return f"ALTER STREAM {_name_in(text)} ADD COLUMN X INT;"


def _judge_alter(world: World, text: str) -> None:
    name = _name_in(text)
    described = world.site.http.one(f"DESCRIBE {name};")["sourceDescription"]
    if "X" not in [field["name"] for field in described["fields"]]:
        world.site.http.ksql(text)
    _drop(world, name)


STATEMENTS = (
    Statement("CREATE", lambda world: _copy_of(world, _new_sink(world)), _judge_create),
    Statement("DROP .. DELETE TOPIC", _prepare_drop, _judge_drop),
    *(_replacing(index) for index in range(3)),
    Statement("INSERT INTO", _prepare_insert_query, _judge_insert_query),
    Statement("TERMINATE", _prepare_terminate, _judge_terminate),
    Statement("PAUSE", _prepare_pause, _judge_pause),
    Statement("RESUME", _prepare_resume, _judge_resume),
    Statement("INSERT VALUES", _prepare_values, _judge_values),
    Statement("declare", _prepare_declare, _judge_declare),
    Statement("ALTER", _prepare_alter, _judge_alter),
)
