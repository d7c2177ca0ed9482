"""Warnings end with the query that they are about, whatever its successors are called."""

from __future__ import annotations

import gc
import weakref

import pytest

from ksql.app.query_warnings import QueryWarnings
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.spark.query.query_metrics import DropCounts, QueryMetrics, Totals

Q = QueryVersion(QueryId("Q"))
STUCK = Totals(rows_in=10, errors=10, recent=DropCounts(10, 10))


def counts(totals, incarnation="a"):
    metrics = QueryMetrics()
    metrics.begin(incarnation)
    metrics.totals = totals
    return metrics


@pytest.fixture
def warnings():
    """Those of a query that handles none of its records, and drops them."""
    warnings = QueryWarnings()
    warnings.observe({Q: counts(STUCK)}, 1)
    assert len(warnings.of(Q)) == 2
    return warnings


def test_a_query_that_takes_the_id_of_another_one_has_none_of_its_warnings(warnings):
    warnings.observe({Q: counts(Totals())}, 2)
    assert warnings.of(Q) == ()


def test_a_new_query_is_compared_with_nothing_of_the_former_one(warnings):
    """It has read more by the first look at it than the former one had."""
    warnings.observe({Q: counts(Totals(rows_in=30, errors=20, rows_out=10))}, 2)
    warnings.observe({Q: counts(Totals(rows_in=12, errors=12))}, 3)
    [(since, text)] = warnings.of(Q)
    assert since == 3
    assert "last 12 records" in text


def test_a_query_whose_checkpoint_begins_anew_has_no_former_warnings():
    metrics, warnings = counts(STUCK), QueryWarnings()
    warnings.observe({Q: metrics}, 1)
    metrics.begin("b")
    warnings.observe({Q: metrics}, 2)
    assert warnings.of(Q) == ()


def test_a_replacement_in_place_keeps_the_warnings():
    """It continues the counts."""
    metrics, warnings = counts(STUCK), QueryWarnings()
    warnings.observe({Q: metrics}, 1)
    metrics.begin("a")
    warnings.observe({Q: metrics}, 2)
    assert [since for since, _ in warnings.of(Q)] == [1, 1]


def test_a_query_that_is_gone_is_forgotten():
    warnings, versions = QueryWarnings(), [QueryVersion(QueryId("Q"), n) for n in range(1, 5)]
    held = [look_at(warnings, version) for version in versions]  # each replaces the one before
    gc.collect()
    assert [counts_id() is not None for counts_id in held] == [False, False, False, True]
    assert [bool(warnings.of(version)) for version in versions] == [False, False, False, True]


def look_at(warnings, version):
    """Have a version looked at; gives what holds its counts."""
    metrics = counts(STUCK)
    metrics.counts_id = CountsId()
    warnings.observe({version: metrics}, 1)
    return weakref.ref(metrics.counts_id)


class CountsId:
    """An object for weak references."""
