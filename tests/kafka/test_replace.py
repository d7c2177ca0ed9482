"""CREATE OR REPLACE while records keep coming: nothing lost, nothing twice, one offset between."""

from __future__ import annotations

import pytest

from tests.kafka.wires import Feeder, await_true, create_topic, read_all, unique

PARTITIONS = 4


@pytest.fixture
def source(server, http):
    """A declared stream over a topic of its own; its name is the topic's."""
    name = unique("src").upper()
    create_topic(server.bootstrap, name, PARTITIONS)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, P INT, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    return name


def switch_offsets(entity, topic):
    """Where the old plan ended, per partition."""
    offsets = entity["upgrade"]["switch"]["offsets"][topic]
    return {int(part): offset for part, offset in offsets.items()}


def await_output(server, topic, enough):
    """The sink's records, once there are enough."""
    return await_true(
        f"the output in {topic}",
        lambda: (seen := read_all(server.bootstrap, topic)) and enough(seen) and seen,
    )


def test_a_stateless_query_is_replaced_twice(server, http, source):
    sink = unique("out").upper()
    created = http.one(f"CREATE STREAM {sink} AS SELECT K, P, N FROM {source};")
    query_id = created["commandStatus"]["queryId"]
    assert http.queries()[query_id] == "RUNNING"
    switches = []
    with Feeder(server.bootstrap, source, PARTITIONS) as feeder:
        await_output(server, sink, lambda seen: len({s.value["P"] for s in seen}) == PARTITIONS)
        for select in (
            "SELECT K, P, N, N * 2 AS TWICE FROM {} WHERE N % 3 <> 0",
            "SELECT K, P, N, N * 2 AS TWICE, UCASE(K) AS LOUD FROM {} WHERE N % 2 <> 0",
        ):
            text = f"CREATE OR REPLACE STREAM {sink} AS {select.format(source)};"
            entity = http.one(text)
            assert entity["commandStatus"]["queryId"] == query_id
            assert set(entity["upgrade"]["classes"]) == {"data selection", "schema evolution"}
            switches.append(switch_offsets(entity, source))
            feeder.await_sent(200)
        count = feeder.end()
    first, second = switches

    def wanted(part):
        return (
            [(n, {"P", "N"}) for n in range(first[part])]
            + [(n, {"P", "N", "TWICE"}) for n in range(first[part], second[part]) if n % 3]
            + [(n, {"P", "N", "TWICE", "LOUD"}) for n in range(second[part], count) if n % 2]
        )

    total = sum(len(wanted(part)) for part in range(PARTITIONS))
    seen = await_output(server, sink, lambda seen: len(seen) >= total)
    for part in range(PARTITIONS):
        assert 0 < first[part] < second[part] < count
        found = [(s.value["N"], set(s.value)) for s in seen if s.value["P"] == part]
        assert found == wanted(part)
    assert http.queries()[query_id] == "RUNNING"


def test_a_stateful_query_is_replaced_twice(server, http, source):
    sink = unique("cnt").upper()
    every_change = {"auto.offset.reset": "earliest", "cache.max.bytes.buffering": "0"}
    created = http.one(
        f"CREATE TABLE {sink} AS SELECT K, COUNT(*) AS C, LATEST_BY_OFFSET(N) AS LAST "
        f"FROM {source} GROUP BY K;",
        every_change,
    )
    query_id = created["commandStatus"]["queryId"]
    switches = []
    with Feeder(server.bootstrap, source, PARTITIONS, per_second=200) as feeder:
        await_output(server, sink, lambda seen: len({s.key for s in seen}) == PARTITIONS)
        for more in ("SUM(N) AS S", "SUM(N) AS S, MIN(N) AS LEAST"):
            entity = http.one(
                f"CREATE OR REPLACE TABLE {sink} AS SELECT K, COUNT(*) AS C, "
                f"LATEST_BY_OFFSET(N) AS LAST, {more} FROM {source} GROUP BY K;",
                every_change,
            )
            assert entity["commandStatus"]["queryId"] == query_id
            assert entity["upgrade"]["classes"] == ["schema evolution"]
            switches.append(switch_offsets(entity, source))
            feeder.await_sent(100)
        count = feeder.end()
    first, second = switches

    def wanted(part):
        rows = []
        for n in range(count):
            row = {"C": n + 1, "LAST": n}
            if n >= first[part]:  # the sum starts empty at the first switch
                row["S"] = sum(range(first[part], n + 1))
            if n >= second[part]:  # and the minimum at the second
                row["LEAST"] = second[part]
            rows.append(row)
        return rows

    seen = await_output(server, sink, lambda seen: len(seen) >= count * PARTITIONS)
    for part in range(PARTITIONS):
        assert 0 < first[part] < second[part] < count
        assert [s.value for s in seen if s.key == f"k{part}"] == wanted(part)
    pulled = {row[0]: row[1:] for row in http.rows(f"SELECT K, C, LAST, S FROM {sink};")}
    assert pulled == {
        f"k{part}": [count, count - 1, sum(range(first[part], count))] for part in range(PARTITIONS)
    }
