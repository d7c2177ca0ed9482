"""A server says why it should get no requests, and waits for nobody to say it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ksql.app.readiness import Readiness


@dataclass
class State:
    is_up: bool = True
    replaying: bool = False
    kafka_trouble: str = ""
    lost: str = ""
    tables: dict[str, int] = field(default_factory=dict)

    def kafka(self):
        return self.kafka_trouble

    def leadership(self):
        return self.lost

    def filling(self):
        return self.tables


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State(), []),
        (State(is_up=False, replaying=True), ["replaying"]),
        (State(is_up=False), ["starting"]),
        (State(kafka_trouble="no answer"), ["kafka"]),
        (State(lost="another leads"), ["leadership"]),
        (State(tables={"T": 5}), ["filling"]),
        (State(is_up=False, kafka_trouble="no answer", tables={"T": 5}), ["starting", "kafka"]),
    ],
)
def test_each_reason_has_its_word(state, words):
    assert list(Readiness(state).reasons()) == words


def test_a_table_that_is_created_later_fills_while_the_server_stays_ready():
    state = State(tables={"T": -1})
    readiness = Readiness(state)
    assert readiness.reasons() == {
        "filling": "1 tables are being filled, 0 records or more are to be read"
    }
    state.tables = {}
    assert readiness.reasons() == {}
    state.tables = {"U": 7}
    assert readiness.reasons() == {}
