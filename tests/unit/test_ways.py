"""The ways of a statement and of a pull query lead down, and seldom back up."""

from __future__ import annotations

import pytest

from tests.ways import Call, Function, Way, pull, statement

CANCELLED = Call(
    Function("ksql.views.table_scan", "TableScan.rows"),
    Function("ksql.serving.pull", "PullQuery.batches.<locals>.<lambda>"),
)
"""A scan asks before each chunk whether its reader has left."""


@pytest.fixture(scope="module")
def ways(tmp_path_factory) -> dict[str, Way]:
    folder = tmp_path_factory.mktemp("ways")
    return {"statement": statement(folder / "statement"), "pull": pull(folder / "pull")}


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("statement", ("ksql.control.statements.execute", "ksql.spark.query.runner")),
        ("pull", ("ksql.serving.query_service", "ksql.views.stores.txn")),
    ],
)
def test_a_way_leads_from_the_text_to_what_runs_or_keeps_it(ways, name, ends):
    assert set(ends) <= {function.module for function in ways[name].functions}


@pytest.mark.parametrize(("name", "climbs"), [("statement", ()), ("pull", (CANCELLED,))])
def test_nothing_below_calls_back_into_a_package_that_waits_for_it(ways, name, climbs):
    assert list(map(str, ways[name].climbs)) == list(map(str, climbs))


@pytest.mark.parametrize(("name", "most"), [("statement", 165), ("pull", 66)])
def test_calls_between_packages_stay_few(ways, name, most):
    assert len(ways[name].calls) <= most, "\n".join(map(str, ways[name].calls))
