"""A query does not continue as what it was before a command that is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.spark.checkpoint import cut_over_mark
from ksql.spark.checkpoint.cut_over_mark import CutOverMark
from ksql.spark.query.spec import State
from ksql.sql.catalog.model import CutOver
from tests.unit.spark.checkpoint.test_plan_fingerprint import (
    GROUPED,
    begun,
    gone_on,
    query_of,
    writing_to,
)
from tests.unit.spark.query.test_runner import Desk

STREAM = "CREATE STREAM O AS SELECT K, A FROM S;"
TABLE = GROUPED.format("COUNT(*) AS C", "")


def cut_over(tmp_path, query):
    """A query whose version 7 has taken over from its first one."""
    begun(tmp_path, query)
    later = replace(query, version_number=7)
    cut_over_mark.write(begun(tmp_path, later), CutOverMark(number=9, done=True))
    later = replace(later, cut_over=CutOver(9, 0))
    _, status = gone_on(tmp_path, later)
    assert status.state is State.RUNNING
    return later


@pytest.mark.parametrize("statement", [STREAM, TABLE])
def test_former_version_is_not_the_query_where_its_cut_over_is_lost(tmp_path, statement):
    """A command topic was restored that is older than the cut-over."""
    query = query_of(statement)
    cut_over(tmp_path, query)
    desk, status = gone_on(tmp_path, query)
    assert desk.runtime.started == []
    assert "knows a later plan than the command topic" in str(status.last_error)
    assert f"ksql.state.anew={query.id}" in str(status.last_error)
    for context in ({"start_over": frozenset({query.id})}, {}):
        _, status = gone_on(tmp_path, query, **context)
        assert status.state is State.RUNNING


def test_former_version_continues_as_a_candidate_and_as_the_query_again(tmp_path):
    query = query_of(TABLE)
    later = cut_over(tmp_path, query)
    candidate = writing_to(query, query.version.results_topic("default_"))
    again = replace(query, cut_over=CutOver(12, 7))
    cut_over_mark.write(tmp_path / "queries" / query.id, CutOverMark(number=12, done=True))
    for version in (candidate, later, candidate, again, again):
        _, status = gone_on(tmp_path, version)
        assert status.state is State.RUNNING
    _, status = gone_on(tmp_path, later)
    assert "knows a later plan than the command topic" in str(status.last_error)


WHERE = "STREAM O AS SELECT K, A FROM S WHERE A > {};"


def replaced(tmp_path):
    """A query and what became of it in place; the latter has run last."""
    first = f"CREATE {WHERE.format(1)}"
    query = query_of(first)
    later = query_of(first, f"CREATE OR REPLACE {WHERE.format(5)}")
    desk = Desk(tmp_path)
    desk.runner.start(query)
    desk.runner.prepare_switch(query, later)
    desk.runner.commit_switch(later)
    desk.runner.stop(later.version)
    return query, later


def test_former_plan_does_not_continue_where_its_replacement_is_lost(tmp_path):
    query, later = replaced(tmp_path)
    _, status = gone_on(tmp_path, later)
    assert status.state is State.RUNNING
    _, status = gone_on(tmp_path, query)
    assert "knows a later plan than the command topic" in str(status.last_error)
    for context in ({"start_over": frozenset({query.id})}, {}):
        _, status = gone_on(tmp_path, query, **context)
        assert status.state is State.RUNNING


def test_same_plan_or_a_later_one_continues(tmp_path):
    query, later = replaced(tmp_path)
    lost = replace(later, offset=query.offset)
    for version in (lost, replace(query, offset=later.offset + 1)):
        _, status = gone_on(tmp_path, version)
        assert status.state is State.RUNNING
    _, status = gone_on(tmp_path, later)
    assert status.state is State.ERROR


def test_replacement_that_is_taken_back_is_not_known(tmp_path):
    query, later = replaced(tmp_path)
    again = replace(query, offset=later.offset + 1)
    desk, _ = gone_on(tmp_path, later)
    desk.runner.prepare_switch(later, again)
    desk.runner.rollback_switch(later)
    _, status = gone_on(tmp_path, later)
    assert status.state is State.RUNNING


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"version": 1}',
        '{"version": 1, "commands": []}',
        '{"version": 1, "commands": {"cut_over": "nine"}}',
    ],
)
def test_a_note_that_cannot_be_read(tmp_path, text):
    query = query_of(STREAM)
    place = begun(tmp_path, query)
    (place / "commands.json").write_text(text)
    _, status = gone_on(tmp_path, query)
    assert "commands.json is damaged" in str(status.last_error)
