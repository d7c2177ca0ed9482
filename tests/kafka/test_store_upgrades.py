"""A service whose table has a store of the format without times: what its users see of the upgrade.

The store has a row whose records the topic has not any more.
"""

from __future__ import annotations

import shutil

import pytest

from ksql.kafka.admin import Admin
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import open_store
from tests.kafka.records import unique
from tests.kafka.servers import hosted
from tests.stored import directory
from tests.stored.plain_store import PlainStore
from tests.waits import await_true

NOW_MS = 1_700_000_000_000
AGGREGATED = """
CREATE STREAM {s} (WHO STRING KEY, N INT)
  WITH (KAFKA_TOPIC='{s}', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE {s}_T AS SELECT WHO, COUNT(*) AS C FROM {s} GROUP BY WHO;
"""


def as_format_0(place):
    """Put a store of format 0 in the place of today's, with one row more; return its keys."""
    store = open_store("txn_rocksdb", place, StoreBudget())
    rows, position = [(row.key, row.value) for row in store.scan()], store.position()
    store.close()
    shutil.rmtree(place)
    plain = PlainStore(place)
    plain.write([*rows, (b"gone", b'{"C": 7}')], position=position)
    plain.close()
    return [*(key.decode() for key, _ in rows), "gone"]


def changelog_headers(broker, name):
    """The headers of the records in which the query of a SOURCE TABLE keeps its rows."""
    [topic] = [
        topic
        for topic in Admin(KafkaSettings(broker.bootstrap)).topics()
        if topic.endswith(f"{name}-changelog")
    ]
    with Reader(KafkaSettings(broker.bootstrap)) as reader:
        reader.assign({(topic, 0): 0})
        return [list(record.headers or ()) for batch in reader.read_to_end() for record in batch]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_the_records_of_a_changelog_state_their_version(broker, runtime, tmp_path, guarantee):
    name = unique("kept").upper()
    with hosted(broker.bootstrap, runtime, tmp_path, unique("svc") + "_") as http:
        http.ksql(
            f"CREATE SOURCE TABLE {name} (K STRING PRIMARY KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');",
            {"processing.guarantee": guarantee},
        )
        directory.write(broker.bootstrap, name, [("a", {"N": 1}), ("b", {"N": 2})], NOW_MS)
        rows = {"a": 1, "b": 2}
        await_true("the rows", lambda: dict(http.rows(f"SELECT K, N FROM {name};")) == rows)
    assert changelog_headers(broker, name) == [[("ksql-changelog-version", b"\x01")]] * 2


def health(http):
    return http.client.get("/healthcheck").json()["details"]["stores"]


def test_the_old_store_answers_until_the_next_start(broker, runtime, tmp_path):
    name, service_id = unique("up").upper(), unique("svc") + "_"
    given = broker.bootstrap, runtime, tmp_path, service_id
    table = f"{name}_T"

    def counted(http):
        return dict(http.rows(f"SELECT WHO, C FROM {table};"))

    def times(http):
        return dict(http.rows(f"SELECT WHO, ROWTIME FROM {table};"))

    def click(http, who):
        http.ksql(f"INSERT INTO {name} (ROWTIME, WHO, N) VALUES (1700000000000, '{who}', 1);")

    with hosted(*given) as http:
        http.ksql(AGGREGATED.format(s=name))
        click(http, "ann")
        click(http, "bob")
        await_true("the rows", lambda: counted(http) == {"ann": 1, "bob": 1})
        assert set(times(http).values()) == {1_700_000_000_000}
    [place] = (tmp_path / service_id / "stores").iterdir()
    keys = as_format_0(place / "0")
    assert sorted(keys) == ["ann", "bob", "gone"]
    more = {"ksql__upgrade__mode": "in_place", "ksql__healthcheck__interval__ms": "0"}
    with hosted(*given, **more) as http:
        await_true("the rows", lambda: times(http) == dict.fromkeys(keys, -1))
        click(http, "ann")
        await_true("the count", lambda: counted(http) == {"ann": 2, "bob": 1, "gone": 7})
        assert times(http) == dict.fromkeys(keys, -1)
        shown = "upgrade (in place): partition 0 100%; it ends with the next start"
        await_true("the copy", lambda: shown in str(http.one(f"DESCRIBE {table} EXTENDED;")))
        assert health(http) == {"isHealthy": True, "reason": f"{place.name}: {shown}"}
        assert sorted(each.name for each in place.iterdir() if each.is_dir()) == ["0", "0.new"]
    with hosted(*given, **more) as http:
        after = {**dict.fromkeys(keys, -1), "ann": 1_700_000_000_000}
        await_true("the rows", lambda: times(http) == after)
        assert counted(http) == {"ann": 2, "bob": 1, "gone": 7}
        assert health(http) == {"isHealthy": True}
        assert [each.name for each in place.iterdir() if each.is_dir()] == ["0"]
