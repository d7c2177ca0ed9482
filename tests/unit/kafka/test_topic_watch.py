"""Topics that are deleted or made again while queries read them; the queries are fakes."""

from __future__ import annotations

import pytest

from ksql.core.errors import KsqlError
from ksql.kafka.admin import UNKNOWN, Identity
from ksql.kafka.errors import KafkaDenied, KafkaUnreachable
from ksql.kafka.topic_watch import GONE_S, QueryTopics, TopicWatch, Watched
from ksql.spark.checkpoint.checkpoint_topics import PROBLEMS


class Gone(KsqlError):
    """What a query says of its checkpoint."""


class Reader:
    """A query that runs, and the problems that it was ended for."""

    def __init__(self, query_id, **topics):
        self.query_id = query_id
        self.topics = topics
        self.ended = []
        self.missing = None
        self.result = ""

    def writes(self):
        return self.result

    def lost(self):
        return self.missing

    def reads(self):
        return self.topics

    def fail_with(self, problem, ids):
        assert ids is self.topics
        self.ended.append(problem.text())


class Kafka:
    """Topics by id; every request is counted."""

    def __init__(self, **ids):
        self.ids = ids
        self.lookups = []
        self.away = False
        self.denied = set()
        self.now = 0.0

    def identities(self, topics):
        self.lookups.append(tuple(topics))
        if self.away:
            raise KafkaUnreachable("b:1", "away")
        denied = {name: KafkaDenied(f"not {name}") for name in topics if name in self.denied}
        there = [name for name in topics if name in self.ids]
        return {name: Identity(self.ids[name], 1) for name in there} | denied


def looking(kafka, *queries, looks=1, apart_s=1.0):
    readers = QueryTopics(lambda: queries, PROBLEMS, lambda: kafka.now)
    topic_watch = TopicWatch(kafka.identities, [readers.watched])
    for _ in range(looks):
        look(topic_watch, kafka, after_s=apart_s)
    return topic_watch


def look(topic_watch, kafka, *, after_s=1.0):
    kafka.now += after_s
    topic_watch.poll()


def test_all_queries_are_requested_in_one_request():
    kafka = Kafka(a="1", b="2")
    queries = [Reader("Q", a="1", b="2"), Reader("R", b="2"), Reader("RESTS")]
    looking(kafka, *queries)
    assert kafka.lookups == [("a", "b")]
    assert [query.ended for query in queries] == [[], [], []]


def test_nothing_is_queried_where_nothing_runs():
    kafka = Kafka()
    looking(kafka, Reader("RESTS"), looks=2)
    assert kafka.lookups == []


def test_a_deleted_topic_ends_who_reads_it_and_nobody_else():
    gone, other = Reader("Q", a="1", b="2"), Reader("R", b="2")
    looking(Kafka(b="2"), gone, other, looks=2, apart_s=GONE_S)
    (said,) = gone.ended
    assert 'topic "a", which query Q reads, was deleted' in said
    assert "TERMINATE Q" in said
    assert "ksql.state.anew=Q" in said
    assert other.ended == []


def test_a_deleted_result_ends_who_writes_it_though_there_is_nothing_to_read():
    kafka = Kafka(a="1", other="2")
    idle, other = Reader("Q", a="1"), Reader("R", a="1")
    idle.result, other.result = "out", "other"
    topic_watch = looking(kafka, idle, other)
    assert kafka.lookups == [("a", "other", "out")]
    look(topic_watch, kafka)
    assert idle.ended == []  # a broker that has just come up may not know it yet
    look(topic_watch, kafka, after_s=GONE_S)
    (said,) = idle.ended
    assert 'topic "out", which query Q writes, was deleted' in said
    assert "TERMINATE Q" in said
    assert other.ended == []


def test_a_result_that_was_recreated_is_written_on():
    kafka, query = Kafka(a="1", out="2"), Reader("Q", a="1")
    query.result = "out"
    topic_watch = looking(kafka, query)
    kafka.ids["out"] = "3"
    for _ in range(3):
        look(topic_watch, kafka, after_s=GONE_S)
    assert query.ended == []


def test_recreated_topic_is_named_with_both_ids():
    query = Reader("Q", a="1")
    looking(Kafka(a="9"), query, looks=2)
    (said,) = query.ended
    assert 'topic "a" was deleted and recreated since query Q has read it' in said
    assert "a: 1, now 9" in said


def test_a_checkpoint_that_two_looks_in_a_row_do_not_find_ends_its_query():
    kafka, query, other = Kafka(a="1"), Reader("Q", a="1"), Reader("R", a="1")
    topic_watch = looking(kafka, query, other)
    missing = Gone("the checkpoint of query Q is missing")
    for problem in (missing, None, missing):
        query.missing = problem
        look(topic_watch, kafka)
        assert query.ended == []
    look(topic_watch, kafka)
    assert query.ended == ["the checkpoint of query Q is missing"]
    assert other.ended == []


def test_a_difference_counts_once_it_was_seen_twice_in_a_row():
    kafka, query = Kafka(a="1"), Reader("Q", a="1")
    topic_watch = looking(kafka, query)
    for ids in ({"a": "9"}, {"a": "1"}, {}, {"a": "9"}):
        kafka.ids = ids
        look(topic_watch, kafka)
        assert query.ended == []
    look(topic_watch, kafka)
    assert len(query.ended) == 1


def test_a_broker_that_does_not_know_the_topics_yet_ends_nothing():
    kafka, query = Kafka(), Reader("Q", a="1")
    topic_watch = looking(kafka, query, looks=int(GONE_S))
    assert query.ended == []
    kafka.ids = {"a": "1"}
    look(topic_watch, kafka)
    kafka.ids = {}
    look(topic_watch, kafka)
    assert query.ended == []
    look(topic_watch, kafka, after_s=GONE_S)
    assert len(query.ended) == 1


@pytest.mark.parametrize("ids", [{}, {"a": "9"}])
def test_findings_before_an_outage_do_not_count_after_it(ids):
    kafka, query = Kafka(**ids), Reader("Q", a="1")
    topic_watch = looking(kafka, query)
    kafka.away = True
    look(topic_watch, kafka, after_s=GONE_S)
    kafka.away = False
    look(topic_watch, kafka)
    assert query.ended == []
    look(topic_watch, kafka, after_s=GONE_S)
    assert len(query.ended) == 1


@pytest.mark.parametrize("sight", ["topics", "checkpoint"])
def test_findings_of_a_former_launch_do_not_count(sight):
    kafka, query = Kafka(a="9"), Reader("Q", a="1")
    if sight == "checkpoint":
        kafka.ids, query.missing = {"a": "1"}, Gone("the checkpoint of query Q is missing")
    topic_watch = looking(kafka, query)
    query.topics = dict(query.topics)
    look(topic_watch, kafka)
    assert query.ended == []
    look(topic_watch, kafka)
    assert len(query.ended) == 1


def test_brokers_that_give_no_ids_are_requested_existence_only():
    query = Reader("Q", a="", b="2")
    looking(Kafka(a="7", b=""), query, looks=2)
    assert query.ended == []
    looking(Kafka(b=""), query, looks=2, apart_s=GONE_S)
    assert 'topic "a", which query Q reads, was deleted' in query.ended[0]


def test_a_kafka_that_does_not_answer_is_no_deletion_and_logged_once(caplog):
    kafka, query = Kafka(a="1"), Reader("Q", a="1")
    kafka.away = True
    topic_watch = looking(kafka, query, looks=3)
    assert query.ended == []
    assert caplog.text.count("topics_not_compared") == 1
    kafka.away = False
    topic_watch.poll()
    kafka.away = True
    topic_watch.poll()
    assert caplog.text.count("topics_not_compared") == 2


class User:
    """Watches topics, and keeps the answers."""

    def __init__(self, *topics):
        self.topics = topics
        self.answers = []

    def watched(self):
        return Watched(self.topics, self.answers.append)


def test_all_users_are_answered_from_one_request():
    kafka = Kafka(a="1", b="2")
    users = [User("b", "a"), User("b", "gone"), User()]
    TopicWatch(kafka.identities, [user.watched for user in users]).poll()
    assert kafka.lookups == [("a", "b", "gone")]
    there = {"a": Identity("1", 1), "b": Identity("2", 1)}
    assert [user.answers for user in users] == [[there]] * 3


def test_nothing_is_known_of_a_denied_topic_and_everything_of_the_others(caplog):
    kafka = Kafka(a="1", b="2")
    kafka.denied = {"b"}
    free, denied = User("a"), User("a", "b")
    topic_watch = TopicWatch(kafka.identities, [free.watched, denied.watched])
    topic_watch.poll()
    topic_watch.poll()
    assert free.answers == denied.answers == [{"a": Identity("1", 1), "b": UNKNOWN}] * 2
    assert len(kafka.lookups) == 2
    assert caplog.text.count("topics_not_compared") == 1
    kafka.denied = {"a"}
    topic_watch.poll()
    assert caplog.text.count("topics_not_compared") == 2


@pytest.mark.parametrize(
    ("ids", "problem"), [({}, "was deleted"), ({"a": "9"}, "was deleted and recreated")]
)
def test_a_denied_topic_of_one_query_hides_no_deletion_from_another(ids, problem):
    kafka = Kafka(**ids, b="2")
    kafka.denied = {"b"}
    denied, other = Reader("Q", b="2"), Reader("R", a="1")
    looking(kafka, denied, other, looks=2, apart_s=GONE_S)
    assert denied.ended == []
    (said,) = other.ended
    assert problem in said


class Broken(User):
    """Fails before the request, or after it."""

    def __init__(self, *, early):
        super().__init__("a")
        self.early = early

    def watched(self):
        if self.early:
            raise ValueError("broken")
        return super().watched()._replace(compare=self.fail)

    def fail(self, _now):
        raise ValueError("broken")


@pytest.mark.parametrize("early", [True, False])
def test_user_that_fails_hides_the_answer_from_no_other(early):
    kafka, before, after = Kafka(a="1", b="2"), User("a"), User("b")
    users = [before, Broken(early=early), Broken(early=not early), after]
    topic_watch = TopicWatch(kafka.identities, [user.watched for user in users])
    with pytest.raises(ValueError, match="broken"):  # the periodic worker logs it
        topic_watch.poll()
    there = {"a": Identity("1", 1), "b": Identity("2", 1)}
    assert before.answers == after.answers == [there]


def test_an_answer_that_does_not_come_is_told_to_all():
    kafka, user, idle = Kafka(a="1"), User("a"), User()
    kafka.away = True
    TopicWatch(kafka.identities, [user.watched, idle.watched]).poll()
    assert (user.answers, idle.answers) == ([None], [None])
