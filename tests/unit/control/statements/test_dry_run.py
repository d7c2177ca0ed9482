"""A dry run: each statement with what it would do, and nothing is done."""

from __future__ import annotations

import pytest

from ksql.control.statements.dry_run import dry_run
from ksql.control.statements.execute import RequestFailed
from tests.unit.world import World

S = "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
COPY = "CREATE STREAM C AS SELECT * FROM S;"
FILTERED = "CREATE OR REPLACE STREAM C AS SELECT * FROM S WHERE A > ${least};"


class Book:
    """Keeps what goes into the history."""

    def __init__(self):
        self.refusals = []

    def refused(self, upgrade):
        self.refusals.append(upgrade)


def _run(world, text, **variables):
    return dry_run(text, world.services, world.settings, {}, variables)


def _refused(world, text):
    with pytest.raises(RequestFailed) as caught:
        _run(world, text)
    return caught.value


@pytest.mark.parametrize(
    ("select", "stated", "mode"),
    [
        ("K, A FROM S WHERE A > 1", "auto", "in_place"),
        ("K, A FROM S WHERE A > 1", "rebuild", "rebuild"),
        ("K, A FROM S WHERE A > 1", "in_place", "in_place"),
        ("K, A FROM S2", "auto", "rebuild"),
    ],
)
def test_the_mode_that_is_taken(select, stated, mode):
    world = World(S, S.replace("STREAM S", "STREAM S2"), "CREATE STREAM C AS SELECT K, A FROM S;")
    text = f"CREATE OR REPLACE STREAM C WITH (REPLACE_MODE='{stated}') AS SELECT {select};"
    [answer] = _run(world, text)
    assert answer.upgrade.mode == mode
    assert not world.catalog.rebuilds


def test_each_statement_sees_those_before_and_nothing_is_done():
    world = World()
    answers = _run(
        world,
        f"{S} SET 'auto.offset.reset'='earliest'; {COPY} DEFINE least='3'; {FILTERED} "
        "INSERT INTO C VALUES ('k', 1); DROP STREAM IF EXISTS NOWHERE; DROP STREAM C DELETE TOPIC;",
    )
    assert [(answer.message, answer.query_id) for answer in answers] == [
        ("Stream created", None),
        ("", None),
        ("Created query", None),
        ("", None),
        ("Created query", None),
        ("", None),
        ("Source `NOWHERE` does not exist.", None),
        ("Source `C` (topic: C) was dropped.", None),
    ]
    assert [answer.upgrade and answer.upgrade.classes for answer in answers] == [
        *([None] * 4),
        ("data selection",),
        *([None] * 3),
    ]
    assert answers[4].statement_text == FILTERED.replace("${least}", "3")
    assert dict(world.catalog.sources) == {}
    assert world.topics.known == {}


def test_a_running_query_keeps_its_id():
    world = World(S, COPY)
    [answer] = _run(world, FILTERED, least="3")
    assert (answer.message, answer.query_id) == ("Created query with ID CSAS_C_1", "CSAS_C_1")
    assert answer.upgrade.query_id == "CSAS_C_1"


def test_a_refusal_has_the_answers_of_those_before_and_is_not_recorded():
    book = Book()
    world = World(S, COPY, history=book)
    failed = _refused(world, "SET 'auto.offset.reset'='latest'; " + COPY.replace("*", "K, K AS B"))
    assert len(failed.entities) == 1
    failed = _refused(world, "CREATE OR REPLACE STREAM C AS SELECT K, 1 AS A FROM S;")
    assert "Cannot upgrade data source" in failed.error.message
    assert book.refusals == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INSERT INTO NOWHERE VALUES (1);", "unknown stream/table: `NOWHERE`"),
        (S + "INSERT INTO S VALUES ('k');", "Expected a value for each column"),
        (S + "INSERT INTO S VALUES ('k', 'text');", "text"),
        ("CREATE SOURCE CONNECTOR c WITH (a='x');", "no Kafka Connect is configured"),
        ("DROP CONNECTOR c;", "no Kafka Connect is configured"),
    ],
)
def test_what_a_request_refuses_only_later(text, said):
    failed = _refused(World(), text)
    assert said in failed.error.message
    assert failed.statement_text == text.removeprefix(S)
