"""One of two queries that write a stream is replaced, while the other one continues."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.kafka.records import Feeder, create_topic, read_all, unique
from tests.kafka.servers import EARLIEST
from tests.waits import await_true

PARTITIONS = 2
WAITING = EARLIEST | {"ksql.upgrade.wait.ms": "60000"}


@pytest.fixture
def source(server, http):
    name = unique("src").upper()
    create_topic(server.bootstrap, name, PARTITIONS)
    http.ksql(
        f"CREATE STREAM {name} (K STRING KEY, P INT, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
    )
    return name


def results(server, stream):
    """The values of N by who wrote them, in their order, for each key."""
    by_writer: dict[str, dict[str | None, list[int]]] = defaultdict(lambda: defaultdict(list))
    for seen in read_all(server.bootstrap, stream):
        by_writer[seen.value["W"]][seen.key].append(seen.value["N"])
    return by_writer


@pytest.mark.parametrize(
    ("guarantee", "mode"), [("exactly_once_v2", "rebuild"), ("at_least_once", "in_place")]
)
def test_one_of_two_writers(server, http, source, guarantee, mode):
    stream = unique("out").upper()
    settings = EARLIEST | {"processing.guarantee": guarantee}
    select = f"SELECT K, P, N, '{{}}' AS W FROM {source}"
    [created, inserted] = (
        http.one(text, settings)["commandStatus"]["queryId"]
        for text in (
            f"CREATE STREAM {stream} AS {select.format('other')};",
            f"INSERT INTO {stream} {select.format('old')};",
        )
    )
    with Feeder(server.bootstrap, source, PARTITIONS) as feeder:
        feeder.await_sent(150)
        await_true("results", lambda: results(server, stream)["old"])
        answer = http.one(
            f"CREATE OR REPLACE QUERY {inserted} WITH (REPLACE_MODE='{mode}') AS "
            f"INSERT INTO {stream} {select.format('new')};",
            settings | WAITING,
        )
        assert answer["commandStatus"]["queryId"] == inserted
        assert not answer.get("warnings")
        feeder.await_sent(300)
        await_true("new results", lambda: results(server, stream)["new"])
        count = feeder.end()
    whole = {f"k{part}": list(range(count)) for part in range(PARTITIONS)}

    def both_whole():
        rows = results(server, stream)
        replaced = {key: rows["old"][key] + rows["new"][key] for key in whole}
        return rows["other"] == whole and replaced == whole

    await_true("each record once from each writer", both_whole)
    assert {http.queries()[query_id] for query_id in (created, inserted)} == {"RUNNING"}
    described = http.one(f"DESCRIBE {stream} EXTENDED;")["sourceDescription"]
    assert {query["id"] for query in described["writeQueries"]} == {created, inserted}
    upgrades = http.one(f"SHOW UPGRADES FOR {stream};")["upgrades"]
    assert [upgrade["queryId"] for upgrade in upgrades] == [inserted]
