"""From what a token names to how far the topic must be read that is asked for."""

from __future__ import annotations

import pytest

from ksql.cluster.replicas.consistency import ConsistencyResolver, NotFollowed, QueryStuck
from ksql.cluster.replicas.read_request import Processed
from ksql.core.token import Token
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);
CREATE STREAM M AS SELECT * FROM S;
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM M GROUP BY K;
CREATE TABLE BASE (K STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='b', PARTITIONS=2);
CREATE TABLE J AS SELECT S.K AS K, COUNT(*) AS C FROM S JOIN BASE ON S.K = BASE.K GROUP BY S.K;
CREATE SOURCE TABLE KEPT (K STRING PRIMARY KEY, A BIGINT) WITH (KAFKA_TOPIC='b');
"""
WRITTEN = Token().with_({("s", 0): 5})


class Kafka:
    """Topics' ends and queries' positions as a test sets them; counts who asks."""

    def __init__(self):
        self.world = World()
        self.world.topic("s", 2)
        self.world.topic("b", 2)
        self.world.run(SETUP)
        self.tops = {("s", 0): 5, ("s", 1): 9, ("M", 0): 50, ("M", 1): 60, ("b", 0): 3}
        self.done = {}
        self.failures = {}
        self.requests = []
        self.following = ConsistencyResolver(lambda: self.world.catalog, self.processed, self.ends)

    def query(self, sink):
        return self.world.query(sink).id

    def processed(self, query_id, credentials):
        self.requests.append((query_id, credentials))
        return Processed(self.done.get(query_id, {}), self.failures.get(query_id, ""))

    def ends(self, topics):
        return {place: end for place, end in self.tops.items() if place[0] in topics}

    def demands(self, topic, token=WRITTEN, **more):
        return self.following.demands(topic, token, **more)


@pytest.fixture
def kafka():
    return Kafka()


def test_a_topic_that_the_token_names_must_be_read_up_to_there(kafka):
    assert kafka.demands("s") == {("s", 0): 5}
    assert kafka.requests == []


def test_a_topic_that_does_not_follow_from_it_may_be_read_anyhow(kafka):
    assert kafka.demands("b") == {}
    assert kafka.demands("M", Token().with_({("b", 0): 3})) == {}
    assert kafka.demands("T", Token()) == {}
    assert kafka.requests == []


def test_a_query_must_have_processed_it_and_then_its_topic_is_to_be_read_to_its_end(kafka):
    m = kafka.query("M")
    with pytest.raises(NotFollowed, match=f"the query {m} has processed partition 0 of s up to"):
        kafka.demands("M")
    kafka.done[m] = {"s": {0: 4, 1: 9}}
    with pytest.raises(NotFollowed, match="the offset 4; 5 is asked for"):
        kafka.demands("M")
    kafka.done[m] = {"s": {0: 5}}
    assert kafka.demands("M") == {("M", 0): 50, ("M", 1): 60}


def test_the_way_goes_through_all_queries_between(kafka):
    m, t = kafka.query("M"), kafka.query("T")
    kafka.done[m] = {"s": {0: 5}}
    kafka.done[t] = {"M": {0: 50, 1: 59}}
    with pytest.raises(NotFollowed, match=f"the query {t} has processed partition 1 of M"):
        kafka.demands("T")
    kafka.tops["M", 1] = 1000  # a busy topic goes on: what was found before is enough
    kafka.done[t] = {"M": {0: 50, 1: 60}}
    kafka.tops["T", 0] = 7
    assert kafka.demands("T") == {("T", 0): 7}


def test_a_query_that_has_failed_is_in_the_way_only_of_what_it_has_not_processed(kafka):
    m = kafka.query("M")
    kafka.failures[m] = "the topic M is gone."
    with pytest.raises(QueryStuck) as caught:
        kafka.demands("M")
    assert caught.value.code == 50301
    assert m in caught.value.message
    assert f"the topic M is gone; the query {m} has processed" in caught.value.detail
    kafka.done[m] = {"s": {0: 5}}
    assert kafka.demands("M") == {("M", 0): 50, ("M", 1): 60}


def test_resolved_offsets_are_cached_for_good(kafka):
    kafka.done[kafka.query("M")] = {"s": {0: 5}}
    first = kafka.demands("M")
    kafka.tops["M", 0] = 70
    kafka.requests.clear()
    assert kafka.demands("M") == first
    assert kafka.requests == []
    kafka.world.run("CREATE STREAM OTHER AS SELECT * FROM S;")  # it may be another topic now
    assert kafka.demands("M")["M", 0] == 70


def test_every_query_that_writes_the_topic_counts(kafka):
    kafka.world.run("INSERT INTO M SELECT * FROM S;")
    first, second = (q.id for q in kafka.world.catalog.writers("M"))
    kafka.done[first] = {"s": {0: 5}}
    with pytest.raises(NotFollowed, match=f"the query {second} "):
        kafka.demands("M")


def test_every_source_of_a_query_counts(kafka):
    token = WRITTEN.with_({("b", 0): 3})
    kafka.done[kafka.query("J")] = {"s": {0: 5}, "b": {0: 2}}
    with pytest.raises(NotFollowed, match="partition 0 of b up to the offset 2; 3 is asked for"):
        kafka.demands("J", token)
    assert kafka.demands("J") == {}  # the other one was not written to; J has no records


def test_the_rows_of_a_source_table_follow_from_its_topic(kafka):
    kept = kafka.world.catalog.source("KEPT").materialization
    token = Token().with_({("b", 0): 3})
    with pytest.raises(NotFollowed, match=str(kept.query_id)):
        kafka.demands(kept.topic, token)
    kafka.done[kept.query_id] = {"b": {0: 3}}
    kafka.tops[kept.topic, 0] = 2
    assert kafka.demands(kept.topic, token) == {(kept.topic, 0): 2}


def test_records_that_are_gone_with_their_topic_are_not_waited_for(kafka):
    kafka.tops["s", 0] = 4
    assert kafka.demands("s") == {}
    assert kafka.demands("M") == {}
    del kafka.tops["s", 0]
    assert Kafka.demands(kafka, "s", Token().with_({("s", 0): 1})) == {}


def test_position_read_here_needs_no_request(kafka):
    kafka.tops.clear()
    seen = Token().with_({("T", 0): 7})
    assert kafka.demands("T", seen, here={("T", 0): 7}) == {("T", 0): 7}
    assert kafka.demands("T", seen.with_({("T", 0): 8}), here={("T", 0): 7}) == {}


def test_an_offset_of_nothing_demands_nothing_whatever_partitions_there_are(kafka):
    assert kafka.demands("s", Token().with_({("s", 0): 0, ("s", 99): 0})) == {}
    assert kafka.demands("M", Token().with_({("s", 99): 0})) == {}
    assert kafka.requests == []


def test_the_clients_credentials_go_along(kafka):
    m = kafka.query("M")
    kafka.done[m] = {"s": {0: 5}}
    kafka.demands("M", credentials="Basic x")
    assert kafka.requests == [(m, "Basic x")]
