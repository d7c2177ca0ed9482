"""Topics that are deleted or made anew while queries read them; the queries are fakes."""

from __future__ import annotations

from ksql.base.errors import KsqlError
from ksql.kafka.errors import KafkaUnreachable
from ksql.spark.lookout import Lookout


class Gone(KsqlError):
    """What a query says of its checkpoint."""


class Reader:
    """A query that runs, and the problems that it was ended for."""

    def __init__(self, query_id, **topics):
        self.query_id = query_id
        self.topics = topics
        self.ended = []
        self.missing = None

    def lost(self):
        return self.missing

    def reads(self):
        return self.topics

    def end_for(self, problem):
        self.ended.append(problem.text())


class Kafka:
    """Topics by id; every request is counted."""

    def __init__(self, **ids):
        self.ids = ids
        self.asked = []
        self.away = False

    def topic_ids(self, topics):
        self.asked.append(tuple(topics))
        if self.away:
            raise KafkaUnreachable("b:1", "away")
        return {name: self.ids[name] for name in topics if name in self.ids}


def looking(kafka, *queries, looks=1):
    lookout = Lookout(kafka.topic_ids)
    for _ in range(looks):
        lookout.look(queries)
    return lookout


def test_all_queries_are_asked_for_in_one_request():
    kafka = Kafka(a="1", b="2")
    queries = [Reader("Q", a="1", b="2"), Reader("R", b="2"), Reader("RESTS")]
    looking(kafka, *queries)
    assert kafka.asked == [("a", "b")]
    assert [query.ended for query in queries] == [[], [], []]


def test_nothing_is_asked_where_nothing_runs():
    kafka = Kafka()
    looking(kafka, Reader("RESTS"), looks=2)
    assert kafka.asked == []


def test_a_deleted_topic_ends_who_reads_it_and_nobody_else():
    gone, other = Reader("Q", a="1", b="2"), Reader("R", b="2")
    looking(Kafka(b="2"), gone, other, looks=2)
    (said,) = gone.ended
    assert 'topic "a", which query Q reads, was deleted' in said
    assert "TERMINATE Q" in said
    assert "ksql.state.anew=Q" in said
    assert other.ended == []


def test_one_that_was_made_anew_is_named_with_both_ids():
    query = Reader("Q", a="1")
    looking(Kafka(a="9"), query, looks=2)
    (said,) = query.ended
    assert 'topic "a" was deleted and made anew since query Q has read it' in said
    assert "a: 1, now 9" in said


def test_a_checkpoint_that_has_gone_ends_its_query_at_the_first_look():
    query, other = Reader("Q", a="1"), Reader("R", a="1")
    query.missing = Gone("the checkpoint of query Q is missing")
    looking(Kafka(a="1"), query, other)
    assert query.ended == ["the checkpoint of query Q is missing"]
    assert other.ended == []


def test_a_difference_counts_once_it_was_seen_twice_in_a_row():
    kafka, query = Kafka(a="1"), Reader("Q", a="1")
    lookout = Lookout(kafka.topic_ids)
    for ids in ({}, {"a": "1"}, {}, {"a": "9"}):  # what a broker says that is just coming up
        kafka.ids = ids
        lookout.look([query])
        assert query.ended == []
    lookout.look([query])
    assert len(query.ended) == 1


def test_brokers_that_give_no_ids_are_asked_for_existence_only():
    query = Reader("Q", a="", b="2")
    looking(Kafka(a="7", b=""), query, looks=2)
    assert query.ended == []
    looking(Kafka(b=""), query, looks=2)
    assert 'topic "a", which query Q reads, was deleted' in query.ended[0]


def test_a_kafka_that_does_not_answer_is_no_deletion_and_logged_once(caplog):
    kafka, query = Kafka(a="1"), Reader("Q", a="1")
    kafka.away = True
    lookout = looking(kafka, query, looks=3)
    assert query.ended == []
    assert caplog.text.count("topics_not_compared") == 1
    kafka.away = False
    lookout.look([query])
    kafka.away = True
    lookout.look([query])
    assert caplog.text.count("topics_not_compared") == 2
