"""A version that was replaced by a cut-over does not continue as if it had not been."""

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
    assert "belongs to a version that was replaced" in str(status.last_error)
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
    assert "belongs to a version that was replaced" in str(status.last_error)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"version": 1}',
        '{"version": 1, "replaced": []}',
        '{"version": 1, "replaced": {"cut_over": "nine"}}',
    ],
)
def test_a_note_that_cannot_be_read(tmp_path, text):
    query = query_of(STREAM)
    place = begun(tmp_path, query)
    (place / "replaced.json").write_text(text)
    _, status = gone_on(tmp_path, query)
    assert "replaced.json is damaged" in str(status.last_error)
