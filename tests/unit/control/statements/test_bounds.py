"""A request is bounded: in statements, in text, in the bytes of its answer."""

from __future__ import annotations

import tracemalloc

import pytest

from ksql.control.statements import execute
from ksql.control.statements.bounds import (
    ANSWER,
    BODY,
    STATEMENTS,
    AnswerTooLong,
    TooManyStatements,
    UnpackedTooLong,
    _weight,
)
from ksql.control.statements.execute import RequestFailed
from ksql.core.config import Settings
from server.answers.row_encoders import dumps
from server.wire import to_wire
from tests.unit.world import World


def bounded(**configured):
    world = World()
    world.settings = Settings(configured)
    return world


def failed(text, variables=None, **configured):
    with pytest.raises(RequestFailed) as caught:
        bounded(**configured).run(text, variables)
    return caught.value


def test_statements_are_counted_before_any_is_carried_out():
    failure = failed("SHOW STREAMS;" * 11, **{STATEMENTS: "10"})
    assert isinstance(failure.error, TooManyStatements)
    assert failure.error.message == "the request has more than 10 statements"
    assert failure.entities == ()
    assert len(bounded(**{STATEMENTS: "10"}).run("SHOW STREAMS;" * 10)) == 10


def test_a_request_of_very_many_is_read_no_further_than_to_the_limit():
    tracemalloc.start()
    try:
        assert isinstance(failed("1;" * 1_000_000).error, TooManyStatements)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # 2,000,000 words took 800 MB
    finally:
        tracemalloc.stop()


TEXT, LONG = "DEFINE y = '${x}${x}';" * 3, {"x": "x" * 300}


def test_variables_do_not_unpack_a_request_beyond_a_body():
    failure = failed(TEXT, LONG, **{BODY: "1000"})
    assert isinstance(failure.error, UnpackedTooLong)
    assert "1000 characters" in failure.error.message
    bounded(**{BODY: "2000"}).run(TEXT, LONG)


def test_read_only_request_is_not_checked():
    world = bounded(**{BODY: "1000"})
    request = execute.session(world.services, world.settings, {}, LONG)
    assert not execute.is_distributed(TEXT + "DROP STREAM s;", request)


def test_an_answer_is_counted_as_it_grows():
    failure = failed("SHOW PROPERTIES;" * 50, **{ANSWER: "200000"})
    assert isinstance(failure.error, AnswerTooLong)
    assert 1 < len(failure.entities) < 50
    assert len(dumps(to_wire(list(failure.entities)))) < 200_000
    assert "was carried out" in failure.error.text()


def test_answers_weigh_about_what_is_sent():
    world = World(
        "CREATE STREAM s (a INT, b STRING)"
        " WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    for text in ("SHOW PROPERTIES;", "SHOW FUNCTIONS;", "DESCRIBE s;", "SHOW STREAMS;"):
        [answer] = world.run(text)
        sent = len(dumps(to_wire(answer)))
        assert sent / 3 < _weight(answer) < 3 * sent
