"""Whether a topic that may only grow is still the one that was read; Kafka is a fake."""

from __future__ import annotations

import pytest

from ksql.kafka.errors import KafkaUnreachable
from ksql.kafka.topic_integrity import LOOKS, Span, TopicIntegrity, damage

WAS = Span("a", 0, 8)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (WAS, ""),
        (Span("a", 0, 10), ""),
        (Span("", 0, 8), ""),  # brokers that give no ids
        (Span(None), "the topic t was deleted"),
        (Span("b", 0, 8), "the topic t was deleted and recreated (its id was a, now b)"),
        (Span("a", 4, 8), "records of the topic t before offset 4 were removed"),
        (Span("a", 0, 6), "the topic t ends at offset 6, and had records up to 8"),
    ],
)
def test_it_may_grow_and_nothing_else(now, said):
    assert damage("t", WAS, now) == said


class Looking:
    """A topic that is looked at."""

    def __init__(self):
        self.topic = TopicIntegrity("t")
        self.topic.know(WAS)

    def look(self, now):
        def ask(topic):
            assert topic == "t"
            if now is None:
                raise KafkaUnreachable("b:1", "away")
            return now

        return self.topic.check(ask)


def test_finding_of_two_looks_in_a_row_counts_and_is_logged_once():
    looking = Looking()
    findings = [looking.look(Span(None)) for _ in range(LOOKS + 2)]
    assert findings == [False, True, False, False]
    assert looking.topic.problem == "the topic t was deleted"


@pytest.mark.parametrize("between", [WAS, None])
def test_single_or_interrupted_findings_prove_nothing(between):
    looking = Looking()
    for now in (Span("b"), between, Span("b"), between):
        assert not looking.look(now)
    assert looking.topic.problem == ""


def test_topic_that_is_back_unchanged_is_whole():
    looking = Looking()
    for _ in range(LOOKS):
        looking.look(Span(None))
    assert looking.look(Span("a", 0, 8))
    assert looking.topic.problem == ""
    assert not looking.look(Span("a", 0, 12))


def test_another_one_of_its_name_is_not_and_what_is_wrong_now_is_said():
    looking = Looking()
    for _ in range(LOOKS):
        looking.look(Span(None))
    assert not looking.look(Span("b", 0, 12))
    assert "its id was a, now b" in looking.topic.problem


def test_records_of_the_last_look_must_stay():
    looking = Looking()
    looking.look(Span("a", 0, 12))
    assert looking.topic.damage(Span("a", 0, 10))


def test_the_first_look_at_one_of_which_nothing_is_known_knows_it():
    topic = TopicIntegrity("t")
    assert not topic.check(lambda _topic: WAS)
    assert topic.damage(Span("a", 0, 7))
