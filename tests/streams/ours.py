"""The same cases on our own engine, in memory: alone, and in one of several partitions."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from ksql.exec.dataflow.compiled import writing
from ksql.functions.registry import BUILTINS
from tests.cuts.cases import Event
from tests.cuts.run import run
from tests.streams.cases import Case
from tests.streams.oracle import Result, shown_key
from tests.streams.shapes import Given, statements
from tests.unit.world import World

EVERY_CHANGE = {"cache.max.bytes.buffering": "0"}
PARTITIONS, MINE = 3, 1
_FAR_MS = 10 * 86_400_000


def results(case: Case) -> list[Result]:
    """What we make of a case, each record by itself as in a test driver of Kafka Streams."""
    world = World(**EVERY_CHANGE)
    world.run(statements(case.given))
    for topic, key, row, time in case.records:
        data = None if row is None else json.dumps(row).encode()
        world.topics.append(topic, None if key is None else key.encode(), data, time)
    world.drain()
    written = world.topics.records.get("OUT", [])
    return [result(case.given, each.key, each.value, each.timestamp) for each in written]


def among_others(case: Case) -> list[Result] | None:
    """The same while records of other keys and times come in other partitions.

    None for a query that goes by no time: its records may meet whatever partition they are in.
    """
    chance = random.Random(case.text)
    world = World(**EVERY_CHANGE)
    world.run(statements(case.given))
    plan = world.plan("OUT")
    if not plan.lanes:
        return None
    program = writing(replace(plan, lanes=PARTITIONS), BUILTINS)
    batches = []
    for topic, key, row, time in case.records:
        others = [_other(case, chance) for _ in range(chance.randint(0, 2))]
        batches += [[each] for each in (*others, Event(topic, MINE, key, row, time))]
    written = run(program, batches, chance.randint(1, PARTITIONS)).records
    results = [result(case.given, key, value, time) for key, value, time, _ in written]
    return [each for each in results if each[0] is None or not each[0].startswith(_OTHER)]


_OTHER = "other"


def _other(case: Case, chance: random.Random) -> Event:
    """A record like one of the case's, in another partition and at another time."""
    topic, _, row, time = chance.choice(case.records)
    moved = max(0, time + chance.choice((-_FAR_MS, 0, 1, _FAR_MS)))
    return Event(topic, chance.choice((0, 2)), f"{_OTHER}{chance.randint(0, 1)}", row, moved)


def result(given: Given, key: bytes | None, value: bytes | None, timestamp: int) -> Result:
    """A record of a result's topic."""
    shown = shown_key(given, None if key is None else key.decode("latin-1"))
    return shown, None if value is None else json.loads(value), timestamp
