"""The same cases on our own engine, in memory."""

from __future__ import annotations

import json

from ksql.types.windowed import WindowedKeys
from tests.streams.cases import Case
from tests.streams.oracle import Result
from tests.streams.shapes import Given, statements
from tests.unit.world import World

EVERY_CHANGE = {"cache.max.bytes.buffering": "0"}


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


def result(given: Given, key: bytes | None, value: bytes | None, timestamp: int) -> Result:
    """A record of a result's topic."""
    return _key(given, key), None if value is None else json.loads(value), timestamp


def _key(given: Given, data: bytes | None) -> str | None:
    if data is None:
        return None
    if "retention" not in given:
        return data.decode()
    key, (start, end) = WindowedKeys(given.get("size")).split(data)
    return f"{key.decode()}@{start}/{end}"
