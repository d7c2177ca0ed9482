"""Statements are counted by kind and outcome."""

from __future__ import annotations

import pytest

from ksql.control.statements.execute import RequestFailed
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);"


def test_statements_that_were_carried_out_are_counted():
    world = World()
    world.run(S + "SHOW STREAMS; SHOW TABLES;")
    assert world.services.statements.counts() == {
        ("CreateSource", "done"): 1,
        ("Show", "done"): 2,
    }


def test_a_request_that_is_refused_as_a_whole_counts_once():
    world = World()
    with pytest.raises(RequestFailed):
        world.run("SHOW STREAMS; CREATE STREAM C AS SELECT * FROM NOWHERE;")
    with pytest.raises(RequestFailed):
        world.run("SELEC;")
    assert world.services.statements.counts() == {("Request", "refused"): 2}


def test_a_statement_that_fails_counts_once_however_long_it_has_waited():
    world = World()
    world.run(S)
    with pytest.raises(RequestFailed):
        world.run("ASSERT TOPIC nowhere TIMEOUT 0 SECONDS;")
    assert world.services.statements.counts() == {
        ("CreateSource", "done"): 1,
        ("AssertTopic", "failed"): 1,
    }
