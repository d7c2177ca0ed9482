"""The same cases on our own engine, in memory."""

from __future__ import annotations

import json

from ksql.types.windowed import WindowedKeys
from tests.streams.cases import Case
from tests.streams.oracle import Result
from tests.streams.shapes import Given, statements
from tests.unit.world import World

_EVERY_CHANGE = {"cache.max.bytes.buffering": "0"}


def results(case: Case) -> list[Result]:
    """What we make of a case, each record by itself as in a test driver of Kafka Streams."""
    world = World(**_EVERY_CHANGE)
    world.run(statements(case.given))
    for topic, key, row, time in case.records:
        data = None if row is None else json.dumps(row).encode()
        world.topics.append(topic, None if key is None else key.encode(), data, time)
    world.drain()
    return [
        (
            _key(case.given, each.key),
            None if each.value is None else json.loads(each.value),
            each.timestamp,
        )
        for each in world.topics.records.get("OUT", [])
    ]


def _key(given: Given, data: bytes | None) -> str | None:
    if data is None:
        return None
    if "retention" not in given:
        return data.decode()
    key, (start, end) = WindowedKeys(given.get("size")).split(data)
    return f"{key.decode()}@{start}/{end}"
