"""A refusal names what has really changed, also where the number of steps is another one."""

from __future__ import annotations

import pytest

from ksql.control.engine.errors import UpgradeRefused
from tests.unit.world import World

SCRIPT = """
CREATE STREAM S (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE STREAM R (K STRING KEY, A BIGINT, B STRING) WITH (KAFKA_TOPIC='r', PARTITIONS=1);
CREATE TABLE T (ID STRING PRIMARY KEY, N STRING) WITH (KAFKA_TOPIC='t', PARTITIONS=1);
CREATE TABLE V (ID STRING PRIMARY KEY, M STRING) WITH (KAFKA_TOPIC='v', PARTITIONS=1);
"""
SUM = "SELECT K, {} AS X FROM S WINDOW {} GROUP BY K EMIT {}"
TUMBLING = "TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 0 SECONDS)"


def verdict(kind, old, new):
    world = World(SCRIPT, f"CREATE {kind} X AS {old};")
    text = f"CREATE OR REPLACE {kind} X AS {new};"
    try:
        return world.engine.dry_run(world.parse(text), text, world.settings).verdict
    except UpgradeRefused as refused:
        return refused.verdict


@pytest.mark.parametrize("window", [TUMBLING, "SESSION (1 MINUTE)"])
@pytest.mark.parametrize("emit", ["CHANGES", "FINAL"])
@pytest.mark.parametrize("then", ["SUM(A + 10)", "MIN(A)"])
def test_a_column_may_not_come_to_depend_on_a_state_that_starts_empty(window, emit, then):
    verdict_ = verdict("TABLE", SUM.format("SUM(A)", window, emit), SUM.format(then, window, emit))
    [reason] = verdict_.reasons
    assert "whose state would start empty (topology)" in reason


@pytest.mark.parametrize("emit", ["CHANGES", "FINAL"])
def test_a_having_over_a_new_aggregate_says_that_it_starts_empty(emit):
    old = f"SELECT K, COUNT(*) N FROM S WINDOW {TUMBLING} GROUP BY K EMIT {emit}"
    new = f"SELECT K, COUNT(*) N FROM S WINDOW {TUMBLING} GROUP BY K HAVING SUM(A) > 1 EMIT {emit}"
    verdict_ = verdict("TABLE", old, new)
    assert verdict_.accepted
    assert any("needs SUM(A), whose state starts empty" in change for change in verdict_.allowed)


def test_emit_and_window_are_both_named():
    old = SUM.format("SUM(A)", TUMBLING, "CHANGES")
    new = SUM.format("SUM(A)", "SESSION (1 MINUTE)", "FINAL")
    clauses = [reason.partition(":")[0] for reason in verdict("TABLE", old, new).reasons]
    assert clauses == ["EMIT", "WINDOW"]
    assert verdict("TABLE", new, new).classes == ("transparent",)


def test_emit_and_the_kind_of_a_join_are_both_named():
    query = (
        "SELECT S.K, COUNT(*) N FROM S {} JOIN R WITHIN 1 MINUTE ON S.K = R.K "
        f"WINDOW {TUMBLING} GROUP BY S.K EMIT {{}}"
    )
    verdict_ = verdict("TABLE", query.format("", "CHANGES"), query.format("LEFT", "FINAL"))
    assert [reason.partition(":")[0] for reason in verdict_.reasons] == ["EMIT", "JOIN"]


def test_a_group_that_comes_with_a_window_and_a_join():
    old = f"SELECT K, COUNT(*) N FROM S WINDOW {TUMBLING} GROUP BY K"
    new = "SELECT S.K, COUNT(*) N FROM S JOIN T ON S.K = T.ID GROUP BY S.K"
    verdict_ = verdict("TABLE", old, new)
    assert "JOIN: a join was added (source modifying)" in verdict_.reasons
    assert any(reason.startswith("WINDOW: TUMBLING") for reason in verdict_.reasons)


def test_a_join_that_was_taken_out():
    both = "SELECT S.K, N, M FROM S JOIN T ON S.K = T.ID JOIN V ON S.K = V.ID"
    verdict_ = verdict("STREAM", both, "SELECT S.K, N, 'x' M FROM S JOIN T ON S.K = T.ID")
    assert verdict_.reasons == (
        "JOIN: a join was removed (source modifying)",
        "FROM: V is no longer read (source modifying)",
    )
    verdict_ = verdict("STREAM", both, "SELECT S.K, 'x' N, M FROM S JOIN V ON S.K = V.ID")
    assert verdict_.reasons == (
        "JOIN: a join was removed (source modifying)",
        "FROM: T is no longer read (source modifying)",
    )


def test_a_join_of_another_sort_that_was_taken_out():
    both = "SELECT S.K, R.B, N FROM S JOIN R WITHIN 1 MINUTE ON S.K = R.K JOIN T ON S.K = T.ID"
    verdict_ = verdict(
        "STREAM", both, "SELECT S.K, R.B, 'x' N FROM S JOIN R WITHIN 2 MINUTES ON S.K = R.K"
    )
    assert [reason for reason in verdict_.reasons if "FROM" in reason or "JOIN" in reason] == [
        "JOIN: a join was removed (source modifying)",
        "FROM: T is no longer read (source modifying)",
    ]


# --- grace periods and sessions

SESSION = (
    "SELECT K, COUNT(*) N FROM S WINDOW SESSION "
    "(5 SECONDS, RETENTION 1 HOUR, GRACE PERIOD {} SECONDS) GROUP BY K EMIT {}"
)


def test_final_sessions_may_not_be_opened_again():
    verdict_ = verdict("TABLE", SESSION.format(0, "FINAL"), SESSION.format(60, "FINAL"))
    assert verdict_.reasons == (
        "GRACE PERIOD: 0 MILLISECONDS became 60000 MILLISECONDS; late records would open sessions "
        "whose final result was given (topology)",
    )


@pytest.mark.parametrize(
    ("before", "after", "emit"), [(60, 0, "FINAL"), (0, 60, "CHANGES"), (60, 0, "CHANGES")]
)
def test_other_grace_periods_of_sessions(before, after, emit):
    verdict_ = verdict("TABLE", SESSION.format(before, emit), SESSION.format(after, emit))
    assert verdict_.classes == ("data selection",)
    assert verdict_.accepted


# --- conditions that are different each time


@pytest.mark.parametrize(
    ("kind", "source"), [("STREAM", "SELECT K, A FROM S"), ("TABLE", "SELECT ID, N FROM T")]
)
def test_the_number_of_volatile_conditions_counts(kind, source):
    one, two = "RANDOM() > 0.5", "RANDOM() > 0.5 AND RANDOM() > 0.5"
    verdict_ = verdict(kind, f"{source} WHERE {one}", f"{source} WHERE {two}")
    assert verdict_.classes == ("data selection",)
    passes = "a row that no longer passes stays" in verdict_.guarantees[0].note
    assert passes == (kind == "TABLE")
    assert verdict(kind, f"{source} WHERE {two}", f"{source} WHERE {two}").classes == (
        "transparent",
    )
