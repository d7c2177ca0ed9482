"""A backlog through chains of queries on a real service: no window loses a record.

Records of 18 hours lie in four partitions before the queries exist, each partition four minutes out
of order at most. Windows that wait for 30 minutes must hold all of them.
"""

from __future__ import annotations

import contextlib
import json
import random

import pytest

from tests.chains.cases import disorder
from tests.kafka.records import create_topic, ordered_producer, read_all, unique
from tests.waits import PATIENCE_S, await_true

PARTITIONS = 4
RECORDS = 4000
SPAN_MS = 18 * 3_600_000
START_MS = 1_700_000_000_000
BEHIND_MS = 240_000
CLOSING_MS = START_MS + 10 * SPAN_MS
AREAS = [f"area{n}" for n in range(20)]
WINDOW = (
    "WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 30 DAYS, GRACE PERIOD 30 MINUTES) "
    "GROUP BY {by} EMIT FINAL"
)


@pytest.fixture(scope="module")
def backlog(server):
    """The declared table and stream, all of whose records are written: their names."""
    table, stream = unique("dev").upper(), unique("read").upper()
    for topic in (table, stream):
        create_topic(server.bootstrap, topic, PARTITIONS)
    server.http.ksql(
        f"CREATE TABLE {table} (D STRING PRIMARY KEY, KIND STRING) "
        f"WITH (KAFKA_TOPIC='{table}', VALUE_FORMAT='JSON');"
        f"CREATE STREAM {stream} (K STRING KEY, D STRING, AREA STRING, N INT) "
        f"WITH (KAFKA_TOPIC='{stream}', VALUE_FORMAT='JSON');"
    )
    devices = [(f"d{n}", {"KIND": f"kind{n % 3}"}, START_MS - SPAN_MS) for n in range(50)]
    write(server.bootstrap, table, devices)
    write(server.bootstrap, stream, readings())
    return table, stream


def readings():
    """In the order of time but for what is late."""
    chance = random.Random(22)
    for n in range(RECORDS):
        late = chance.randint(0, BEHIND_MS) if chance.random() < 0.5 else 0
        row = {"D": f"d{chance.randrange(50)}", "AREA": chance.choice(AREAS), "N": 1}
        yield f"k{chance.randrange(200)}", row, START_MS + n * SPAN_MS // RECORDS - late


def closing():
    """So many records, each far later than all windows, that every partition gets some."""
    for n in range(400):
        yield f"k{n}", {"D": f"d{n % 50}", "AREA": AREAS[n % 20], "N": 0}, CLOSING_MS + n


def write(bootstrap, topic, records):
    """Each where its key belongs, as clients in Java place it."""
    producer = ordered_producer(bootstrap, partitioner="murmur2_random")
    for key, row, time in records:
        producer.produce(topic, json.dumps(row), key, timestamp=time)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def joined(table, stream):
    """The stream with the table, which meet by another column than the stream's key."""
    return (
        f"SELECT S.D AS D, S.K AS K, S.AREA AS AREA, S.N AS N, T.KIND AS KIND "
        f"FROM {stream} S JOIN {table} T ON S.D = T.D"
    )


def counted(read, by):
    return f"SELECT {by}, COUNT(*) AS C, SUM(N) AS TOTAL FROM {read} {WINDOW.format(by=by)}"


def join_then_window(table, stream, names):
    """A join on another column, and windows grouped by yet another one."""
    return [("STREAM", joined(table, stream)), ("TABLE", counted(names[0], "AREA"))]


def join_then_move_then_window(table, stream, names):
    """The same with PARTITION BY in between."""
    moved = f"SELECT AREA, D, K, N FROM {names[0]} PARTITION BY AREA"
    return [("STREAM", joined(table, stream)), ("STREAM", moved), ("TABLE", counted(names[1], "K"))]


def move_then_window(table, stream, names):
    """PARTITION BY, and windows of the new key."""
    moved = f"SELECT AREA, D, K, N FROM {stream} PARTITION BY AREA"
    return [("STREAM", moved), ("TABLE", counted(names[0], "AREA"))]


@pytest.fixture(scope="module")
def chains(server, backlog):
    """All chains, made at once over the backlog; the sinks of each by its name."""
    names_by_query, (table, stream) = {}, backlog
    for chain in (join_then_window, join_then_move_then_window, move_then_window):
        names = [unique(f"c{n}").upper() for n in range(3)]
        chained = chain(table, stream, names)
        statements = [
            f"CREATE {kind} {name} AS {select};"
            for (kind, select), name in zip(chained, names, strict=False)
        ]
        server.http.ksql("".join(statements))
        names_by_query[chain.__name__] = names[: len(chained)]
    streams = [sink for sinks in names_by_query.values() for sink in sinks[:-1]]
    for sink in streams:
        await_whole(server.bootstrap, sink)
    write(server.bootstrap, stream, closing())
    return names_by_query


def await_whole(bootstrap, sink):
    """Wait until a stream has the results of the whole backlog."""
    await_true(f"{RECORDS} in {sink}", lambda: len(read_all(bootstrap, sink)) >= RECORDS)


@pytest.mark.parametrize(
    "chain", ["join_then_window", "join_then_move_then_window", "move_then_window"]
)
def test_windows_hold_the_whole_backlog(server, chains, chain):
    *streams, table = chains[chain]

    held = 0

    def whole():
        nonlocal held
        held = sum(seen.value["TOTAL"] for seen in read_all(server.bootstrap, table))
        return held == RECORDS

    with contextlib.suppress(AssertionError):  # what is missing says more
        await_true(f"{RECORDS} in windows", whole)
    assert held == RECORDS
    for sink in streams:
        records = read_all(server.bootstrap, sink)
        for partition in range(PARTITIONS):
            behind, _ = disorder(each.timestamp for each in records if each.partition == partition)
            assert behind <= BEHIND_MS, (sink, partition)


@pytest.mark.parametrize(
    "most", [pytest.param("500000", id="one batch"), pytest.param("600", id="steps")]
)
def test_windows_hold_the_backlogs_of_two_writers(server, backlog, most):
    """Each source goes into the stream by a query of its own."""
    _, stream = backlog
    other, both, held = (unique(name).upper() for name in ("other", "both", "held"))
    create_topic(server.bootstrap, other, PARTITIONS)
    write(server.bootstrap, other, readings())
    server.http.ksql(
        f"CREATE STREAM {other} (K STRING KEY, D STRING, AREA STRING, N INT) "
        f"WITH (KAFKA_TOPIC='{other}', VALUE_FORMAT='JSON');"
        f"CREATE STREAM {both} AS SELECT * FROM {stream} WHERE N > 0;"
        f"INSERT INTO {both} SELECT * FROM {other};"
        f"CREATE TABLE {held} AS {counted(both, 'AREA')};",
        {"auto.offset.reset": "earliest", "ksql.query.max.records.per.batch": most},
    )
    await_true("both", lambda: len(read_all(server.bootstrap, both)) >= 2 * RECORDS)
    write(server.bootstrap, other, closing())
    sums = 0

    def whole():
        nonlocal sums
        sums = sum(seen.value["TOTAL"] for seen in read_all(server.bootstrap, held))
        return sums == 2 * RECORDS

    with contextlib.suppress(AssertionError):  # what is missing says more
        await_true("all in windows", whole)
    assert sums == 2 * RECORDS, server.http.ksql(f"DESCRIBE {held} EXTENDED;")
