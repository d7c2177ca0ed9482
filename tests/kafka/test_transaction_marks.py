"""Topics with marks of transactions and aborted records: browsing, PRINT, and DELETE FROM there.

Marks are no records, though each has an offset.
"""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from tests.kafka.records import create_topic, read_all, unique
from tests.kafka.servers import EARLIEST
from tests.waits import PATIENCE_S, await_true

EXACTLY_ONCE = EARLIEST | {
    "processing.guarantee": "exactly_once_v2",
    "cache.max.bytes.buffering": "0",
}


class Writer:
    """Writes transactions to one topic."""

    def __init__(self, bootstrap):
        self.topic = unique("MARKED").upper()
        create_topic(bootstrap, self.topic)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": self.topic, "linger.ms": 0}
        )
        self._producer.init_transactions(PATIENCE_S)
        # After a much later record Kafka begins another segment, and compacts the former one
        self.start_ms = self._latest_ms = int(time.time() * 1000) - 60_000

    def begin(self, *keys, value=b'{"S":"Quay"}'):
        """Begin a transaction; each record is a second later than the one before."""
        self._producer.begin_transaction()
        for key in keys:
            self._latest_ms += 1000
            self._producer.produce(self.topic, value, key, timestamp=self._latest_ms)
        assert self._producer.flush(PATIENCE_S) == 0

    def commit(self, *keys, **value):
        """Write the records in a transaction, or end the one that is open."""
        if keys:
            self.begin(*keys, **value)
        self._producer.commit_transaction(PATIENCE_S)

    def abort(self, *keys):
        """Write records that nobody sees."""
        self.begin(*keys)
        self._producer.abort_transaction(PATIENCE_S)


@pytest.fixture
def writer(server):
    return Writer(server.bootstrap)


@pytest.fixture
def browse(http):
    """Keys and offsets of a topic of one partition, then where to read on, and the end."""

    def browsed(topic, **ask):
        answer = http.client.get(f"/topics/{topic}/records", params=ask).json()
        [extent] = answer["partitions"]
        records = {each["key"]: each["offset"] for each in answer["records"]}
        return records, extent["next"], extent["end"]

    return browsed


def printed(http, topic, limit):
    """The keys that PRINT shows from the beginning."""
    body = {"sql": f"PRINT '{topic}' FROM BEGINNING LIMIT {limit};", "properties": {}}
    _keys, _values, *lines = http.client.post("/query-stream", json=body).text.splitlines()
    return [line.split("key: ")[1].split(",")[0] for line in lines if "key: " in line]


def test_browsing_shows_what_is_committed_and_counts_no_marks(http, writer, browse):
    writer.commit("a", "b")  # 0 and 1, with a mark at 2
    writer.abort("x")  # 3, and 4
    writer.commit("d")  # 5, and 6
    writer.abort("y")
    there = {"a": 0, "b": 1, "d": 5}
    assert browse(writer.topic) == (there, 9, 9)
    assert browse(writer.topic, offset=3) == ({"d": 5}, 9, 9)
    assert browse(writer.topic, time=writer.start_ms + 3000) == ({"d": 5}, 9, 9)
    assert browse(writer.topic, offset=-1) == ({"d": 5}, 9, 9)
    assert browse(writer.topic, offset=-2) == ({"b": 1, "d": 5}, 9, 9)
    assert browse(writer.topic, offset=-50) == (there, 9, 9)
    assert browse(writer.topic, limit=1) == ({"a": 0}, 1, 9)
    assert browse(writer.topic, limit=1, next="0:1") == ({"b": 1}, 5, 9)
    assert browse(writer.topic, limit=1, next="0:5") == ({"d": 5}, 9, 9)

    writer.begin("e")
    assert browse(writer.topic) == (there, 9, 9)
    assert printed(http, writer.topic, 3) == ["a", "b", "d"]
    writer.commit()
    await_true("e", lambda: browse(writer.topic) == (there | {"e": 9}, 11, 11))
    assert printed(http, writer.topic, 4) == ["a", "b", "d", "e"]


def test_rows_are_deleted_under_exactly_once(server, http, writer, browse):
    counts = unique("COUNTS").upper()
    http.ksql(
        f"CREATE TABLE {writer.topic} (K STRING PRIMARY KEY, S STRING) "
        f"WITH (KAFKA_TOPIC='{writer.topic}', VALUE_FORMAT='JSON');"
        f"CREATE TABLE {counts} AS SELECT S, COUNT(*) AS N FROM {writer.topic} GROUP BY S;",
        EXACTLY_ONCE,
    )

    def await_counts(*expected):
        rows = [[street, count] for street, count in expected]
        await_true(f"{rows}", lambda: sorted(http.rows(f"SELECT * FROM {counts};")) == rows)

    writer.commit("a", "b", "c")
    await_counts(("Quay", 3))
    http.ksql(f"DELETE FROM {writer.topic} WHERE K = 'a';")
    await_counts(("Quay", 2))
    writer.begin("d", value=b'{"S":"Mill"}')
    http.ksql(f"DELETE FROM {writer.topic} WHERE K = 'b';")  # an open transaction is before it
    assert browse(writer.topic) == ({"a": 4, "b": 1, "c": 2}, 5, 5)
    writer.commit()
    await_counts(("Mill", 1), ("Quay", 1))
    writer.abort("b")
    http.ksql(f"DELETE FROM {writer.topic} WHERE K = 'd';")
    await_counts(("Mill", 0), ("Quay", 1))
    seen = [
        (each.key, each.value and each.value["N"]) for each in read_all(server.bootstrap, counts)
    ]
    assert seen == [("Quay", n) for n in (1, 2, 3, 2)] + [("Mill", 1), ("Quay", 1), ("Mill", 0)]

    query_id = http.one(f"DESCRIBE {counts};")["sourceDescription"]["writeQueries"][0]["id"]
    http.ksql(f"TERMINATE {query_id};")
    http.ksql(f"DELETE FROM {counts} WHERE S = 'Quay';")
    answer = http.client.get(f"/topics/{counts}/records", params={"offset": -1}).json()
    [last], [extent] = answer["records"], answer["partitions"]
    assert (last["key"], last["value"], last["offset"]) == ("Quay", None, extent["end"] - 1)
