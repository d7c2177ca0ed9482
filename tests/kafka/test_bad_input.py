"""Input that nobody wishes for, on the real road: each kind has a clear outcome."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from ksql.kafka import topic_watch
from ksql.kafka.admin import Admin
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.records import create_topic, produce, read_all, topics, unique
from tests.waits import PATIENCE_S, await_true


def deleted(scene, topic=None):
    name = topic or scene.src
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    admin.delete_topics([name])[name].result(PATIENCE_S)
    await_true("it is gone", lambda: name not in topics(scene.bootstrap))


def counting(scene, http, properties=None):
    """The id of a query that has counted one record."""
    scene.declare(http, properties or {})
    (query,) = http.queries()
    assert scene.count() == 1
    return query


def test_a_topic_that_is_deleted_under_a_query_is_an_error_that_names_it(scene):
    with scene.served() as http:
        query = counting(scene, http)
        deleted(scene)
        error = http.await_error(query, "was deleted")
        assert f'topic "{scene.src}", which query {query} reads, was deleted' in error
        assert f"TERMINATE {query}" in error
        assert f"ksql.state.anew={query}" in error


def test_recreated_topic_is_not_read_from_the_middle(scene):
    """More records than the former topic had: the query's offset is one of the new topic's."""
    with scene.served() as http:
        query = counting(scene, http)
        deleted(scene)
        create_topic(scene.bootstrap, scene.src)
        error = http.await_error(query, "was deleted and recreated")
        assert f'topic "{scene.src}"' in error
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        before = read_all(scene.bootstrap, scene.dst)
        assert [seen.value["C"] for seen in before] == [1]
    with scene.served() as http:
        http.await_error(query, "was deleted and recreated")
        assert read_all(scene.bootstrap, scene.dst) == before
    with scene.served(ksql__state__anew=query) as http:
        await_true(
            "all of the new topic",
            lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 5,
        )
        assert http.queries() == {query: "RUNNING"}


def test_one_that_may_lose_data_reads_the_new_topic_from_its_beginning(scene, monkeypatch):
    monkeypatch.setattr(topic_watch, "GONE_S", 2.0)  # no broker comes up here
    with scene.served() as http:
        query = counting(scene, http, {"ksql.query.fail.on.data.loss": "false"})
        deleted(scene)
        http.await_error(query, "was deleted")
        create_topic(scene.bootstrap, scene.src)
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        await_true(
            "its state and all of the new topic",
            lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 6,
        )
        await_true("it runs", lambda: http.queries() == {query: "RUNNING"})


def test_a_deleted_result_is_noticed_though_there_is_nothing_to_write(scene, monkeypatch):
    monkeypatch.setattr(topic_watch, "GONE_S", 2.0)  # no broker comes up here
    with scene.served() as http:
        query = counting(scene, http)
        deleted(scene, scene.dst)
        error = http.await_error(query, "was deleted")
        assert f'topic "{scene.dst}", which query {query} writes, was deleted' in error
        create_topic(scene.bootstrap, scene.dst)
        await_true("it runs again", lambda: http.queries() == {query: "RUNNING"})
        produce(scene.bootstrap, scene.src, [("k", {"N": 2})])
        await_true(
            "what has changed since",
            lambda: [seen.value["C"] for seen in read_all(scene.bootstrap, scene.dst)] == [2],
        )


def test_the_topic_of_a_table_that_is_made_anew_is_followed_from_its_beginning(scene):
    """More records than the former one had: the store's position is one of the new topic's."""

    def made_anew(stem):
        deleted(scene, scene.dst)
        create_topic(scene.bootstrap, scene.dst)
        rows = {f"{stem}{n}": n for n in range(5)}
        produce(scene.bootstrap, scene.dst, [(key, {"C": n}) for key, n in rows.items()])
        return rows

    def rows(http):
        return dict(http.rows(f"SELECT K, C FROM {scene.dst};"))

    with scene.served() as http:
        counting(scene, http)
        await_true("the row", lambda: rows(http) == {"k": 1})
        new = made_anew("running")
        await_true("the rows of the new topic", lambda: rows(http) == new)
        [query] = http.one("SHOW QUERIES;")["queries"]
        assert f"its topic {scene.dst} was deleted and recreated" in query["warnings"][-1]
    new = made_anew("stopped")
    with scene.served() as http:
        await_true("the rows of the new topic", lambda: rows(http) == new)


@pytest.mark.parametrize(
    ("recreate", "words"), [(True, "was deleted and recreated"), (False, "was deleted while")]
)
def test_clients_queries_end_when_their_topic_is_no_longer_the_one_they_read(
    scene, monkeypatch, recreate, words
):
    """They would read the new topic from the middle, and wait for the deleted one for ever."""
    monkeypatch.setattr(topic_watch, "GONE_S", 2.0)  # no broker comes up here
    look, looks = topic_watch.TopicWatch.poll, Counter[str]()
    monkeypatch.setattr(
        topic_watch.TopicWatch, "poll", lambda watch: (look(watch), looks.update(["look"]))
    )
    texts = [
        f"SELECT * FROM {scene.src} EMIT CHANGES;",
        f"SELECT K, COUNT(*) FROM {scene.src} GROUP BY K EMIT CHANGES;",
    ]
    with scene.served() as http, contextlib.ExitStack() as streams:
        scene.declare(http)
        produce(scene.bootstrap, scene.src, [("k", {"N": 1})])
        opened = [streams.enter_context(http.stream(text)) for text in texts]
        begun = [[next(lines), next(lines)] for lines in opened]
        assert [first[1][0] for first in begun] == ["k", "k"]
        seen = looks["look"]
        await_true("a look at what they read", lambda: looks["look"] >= seen + 2)
        deleted(scene)
        if recreate:
            create_topic(scene.bootstrap, scene.src)
            produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        lasts = [list(lines)[-1] for lines in opened]
        for last in lasts:
            assert f'topic "{scene.src}" {words}' in last["message"]
        if recreate:
            rows = http.rows(f"SELECT N FROM {scene.src} EMIT CHANGES LIMIT 5;")
            assert rows == [[n] for n in range(5)]


def test_unread_records_that_are_gone_are_an_error_that_names_the_partition(scene):
    with scene.served() as http:
        query = counting(scene, http)
        http.ksql(f"PAUSE {query};")
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(5)])
        admin = AdminClient({"bootstrap.servers": scene.bootstrap})
        place = TopicPartition(scene.src, 0, 4)
        admin.delete_records([place])[place].result(PATIENCE_S)
        http.ksql(f"RESUME {query};")
        error = http.await_error(query, "are gone")
        assert f"{scene.src}-0" in error
        assert "ksql.query.fail.on.data.loss" in error


def test_a_checkpoint_that_is_removed_under_a_query_is_an_error_at_once_and_at_the_next_start(
    scene,
):
    """Spark goes on writing where the directory was: that is no checkpoint."""
    with scene.served() as http:
        query = counting(scene, http)
        home = scene.folder / "state" / scene.service_id / "queries" / query
        home.rename(scene.folder / "removed")  # at once: a batch may be writing into it
        produce(scene.bootstrap, scene.src, [("k", {"N": 1})])
        error = http.await_error(query, "is missing")
        assert f"the checkpoint of query {query} is missing" in error
        assert f"ksql.state.anew={query}" in error
    with scene.served() as http:
        http.await_error(query, "is missing")
    with scene.served(ksql__state__anew=query) as http:
        await_true(
            "it begins anew", lambda: read_all(scene.bootstrap, scene.dst)[-1].value["C"] == 2
        )


def last_count(scene):
    return read_all(scene.bootstrap, scene.dst)[-1].value["C"]


LEAST_FREE = 16 << 20


def fill(filler, leave):
    """Fill the disk of a file until so many bytes are free."""
    with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
        while shutil.disk_usage(filler).free > leave and file.write(bytes(1 << 12)):
            pass


def test_a_full_state_directory_is_an_error_and_costs_nothing(scene, small_disk):
    """The state directory is full; Kafka lies elsewhere. A rebuild ends before that."""
    scene.folder = small_disk
    filler = small_disk / "filler"
    slow = {"ksql__upgrade__rebuild__max__records__per__second": "1"}
    with scene.served(ksql__upgrade__rebuild__min__free__bytes=str(LEAST_FREE), **slow) as http:
        query = counting(scene, http)
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(500)])
        http.ksql(
            f"CREATE OR REPLACE TABLE {scene.dst} WITH (REPLACE_MODE='rebuild') AS "
            f"SELECT K, COUNT(*) AS C FROM {scene.src} WHERE N > 1 GROUP BY K;"
        )
        candidate = next((small_disk / "state" / scene.service_id / "queries").glob("*.v*"))
        fill(filler, leave=LEAST_FREE // 2)

        def upgrade():
            [upgrade] = http.one(f"SHOW UPGRADES FOR {scene.dst};")["upgrades"]
            return upgrade["status"] == "aborted" and upgrade

        await_true("the rebuild is ended", upgrade)
        await_true("its state is gone", lambda: not candidate.exists())
        await_true("the query has run on", lambda: last_count(scene) == 501)
        assert http.queries() == {query: "RUNNING"}

        fill(filler, leave=0)
        produce(scene.bootstrap, scene.src, [("k", {"N": n}) for n in range(50)])
        http.await_error(query, "No space left on device")
        filler.unlink()
        await_true("it goes on", lambda: last_count(scene) == 551)
        await_true("it runs", lambda: http.queries() == {query: "RUNNING"})


def test_a_record_far_ahead_of_the_clock_closes_windows_but_not_silently(scene):
    hour = 3_600_000
    now = int(time.time() * 1000)
    begin = now - now % hour - hour
    far = begin + 40 * 365 * 24 * hour
    with scene.served() as http:
        http.ksql(
            f"CREATE STREAM {scene.src} (K STRING KEY, T BIGINT) WITH (KAFKA_TOPIC='{scene.src}', "
            f"VALUE_FORMAT='JSON', TIMESTAMP='T');"
        )
        times = [begin, begin + 1, -5, far, begin + 2]
        produce(scene.bootstrap, scene.src, [("k", {"T": time}) for time in times])
        http.ksql(  # behind its records: they are one batch
            f"CREATE TABLE {scene.dst} AS SELECT K, COUNT(*) AS C FROM {scene.src} "
            "WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 0 SECONDS) GROUP BY K;"
        )
        (query,) = http.queries()

        def warned():
            (shown,) = http.one("SHOW QUERIES;")["queries"]
            warnings = shown.get("warnings", ())
            return len(warnings) == 2 and warnings

        def log():
            topic = f"{scene.service_id}ksql_processing_log"
            entries = [seen.value for seen in read_all(scene.bootstrap, topic)]
            return [e["message"]["recordProcessingError"]["errorMessage"] for e in entries]

        said = await_true("its entries", lambda: len(entries := log()) >= 3 and "\n".join(entries))
        assert f'the latest {far} (topic "{scene.src}", partition 0, offset 3)' in said
        assert "negative timestamp -5" in said
        assert f"late record for the window starting at {begin}" in said
        dropped, ahead = await_true("the warnings", warned)
        assert f"a record has the timestamp {far}" in ahead
        assert dropped.startswith("40% of the last minutes' records were dropped, or have a NULL")
        assert ": 2 of 5; 1 came" in dropped
        behind = f'{far - begin - 2} ms behind it (topic "{scene.src}", partition 0)'
        assert behind in dropped
        assert "1 could not be handled" in dropped
        described = http.one(f"EXPLAIN {query};")["queryDescription"]
        assert dropped in [each["errorMessage"] for each in described["queryErrors"]]
        assert (
            dropped
            in http.one(f"DESCRIBE {scene.dst} EXTENDED;")["sourceDescription"]["errorStats"]
        )
        assert http.queries() == {query: "RUNNING"}
        http.await_committed(query, len(times))
        assert [seen.value["C"] for seen in read_all(scene.bootstrap, scene.dst)] == [2, 1]


def test_keys_of_a_mebibyte_are_counted_and_found_again(scene):
    large = {"max.message.bytes": str(4 << 20)}
    admin = Admin(KafkaSettings(scene.bootstrap))
    admin.create(Topic(scene.dst, 1, configs=large))
    admin.alter_configs(scene.src, large)
    keys = [f"{n}" + "x" * (1 << 20) for n in range(12)]

    def feed():
        config = {"bootstrap.servers": scene.bootstrap, "message.max.bytes": 4 << 20}
        producer = Producer(config)
        for key in keys:
            producer.produce(scene.src, b'{"N": 1}', key)
            assert producer.flush(PATIENCE_S) == 0

    def counts():
        return {str(seen.key)[:3]: seen.value["C"] for seen in read_all(scene.bootstrap, scene.dst)}

    for times in (1, 2):  # the second time the state is read from the checkpoint
        with scene.served() as http:
            if times == 1:
                scene.declare(http)
            feed()
            await_true(
                "all of them",
                lambda: counts() == {k[:3]: times for k in keys},  # noqa: B023
            )
            (state,) = http.queries().values()
            assert state == "RUNNING"


def test_hot_key_with_a_tenth_of_all_records(scene):
    records = [("hot" if n % 10 == 0 else f"k{n}", {"N": n}) for n in range(40_000)]
    with scene.served() as http:
        scene.declare(http)
        produce(scene.bootstrap, scene.src, records)

        def counts():
            return {seen.key: seen.value["C"] for seen in read_all(scene.bootstrap, scene.dst)}

        expected = dict(Counter(key for key, _ in records))
        await_true("every count", lambda: counts() == expected)
        assert list(http.queries().values()) == ["RUNNING"]


def test_sides_of_other_partitions_are_no_join(scene):
    create_topic(scene.bootstrap, scene.dst, partitions=3)
    with scene.served() as http:
        for name in (scene.src, scene.dst):
            http.ksql(
                f"CREATE STREAM {name} (K STRING KEY, N INT) "
                f"WITH (KAFKA_TOPIC='{name}', VALUE_FORMAT='JSON');"
            )
        error = http.refused(
            f"CREATE STREAM J{scene.dst} AS SELECT A.K, A.N FROM {scene.src} A "
            f"JOIN {scene.dst} B WITHIN 1 HOUR ON A.K = B.K;"
        )
        assert "since the number of partitions don't match" in error["message"]
        assert f"`{scene.src}` partitions = 1; `{scene.dst}` partitions = 3" in error["message"]
        assert http.queries() == {}


def test_a_source_that_grows_beyond_its_result(scene):
    """What lies in partitions that the result lacks goes where the keys belong."""
    source, result = unique("grown").upper(), unique("kept").upper()
    create_topic(scene.bootstrap, source, partitions=2)
    with scene.served() as http:
        http.ksql(
            f"CREATE STREAM {source} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{source}', VALUE_FORMAT='JSON');"
            f"CREATE STREAM {result} AS SELECT * FROM {source};"
        )
        produce(scene.bootstrap, source, [(f"k{n}", {"N": n}) for n in range(10)])
        await_true("the first", lambda: len(read_all(scene.bootstrap, result)) == 10)
        admin = AdminClient({"bootstrap.servers": scene.bootstrap})
        admin.create_partitions([NewPartitions(source, 5)])[source].result(PATIENCE_S)
        for partition in range(5):
            records = [(f"k{n}", {"N": n}) for n in range(10)]
            produce(scene.bootstrap, source, records, partition)
        await_true("all", lambda: len(read_all(scene.bootstrap, result)) == 60)
        assert {seen.partition for seen in read_all(scene.bootstrap, result)} == {0, 1}
        assert list(http.queries().values()) == ["RUNNING"]
