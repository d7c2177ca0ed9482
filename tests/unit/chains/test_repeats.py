"""Results that may be written again: what is lost or invented is seen all the same."""

from __future__ import annotations

from collections import Counter

from tests.chains.cases import Chain, Link
from tests.chains.repeats import again, worse

STREAM = Link("plain", "R0", "CREATE STREAM R0 AS ..", 1, ordered=True)
TABLE = Link("grouped", "R1", "CREATE TABLE R1 AS ..", 1, ordered=True)
CHAIN = Chain((), 1, (STREAM, TABLE), (), 1, caching=False)


def contents(count, *records):
    return {"R0": Counter(records), "R1": {b"k": b'{"C": %d}' % count}}


EXPECTED = contents(2, "one", "other")


def test_a_record_that_is_there_again_is_seen():
    assert not again(EXPECTED, contents(2, "one", "other"))
    assert again(EXPECTED, contents(3, "one", "other", "other"))


def test_repeats_that_are_counted_are_not_worse():
    assert list(worse(CHAIN, EXPECTED, contents(3, "one", "other", "other"))) == []


def test_a_lost_record_is_worse():
    [lost] = worse(CHAIN, EXPECTED, contents(2, "one", "one"))
    assert lost == "R0: 1 rows are lost or invented"


def test_an_invented_record_is_worse():
    [invented] = worse(CHAIN, EXPECTED, contents(3, "one", "other", "none"))
    assert invented == "R0: 1 rows are lost or invented"


def test_a_lower_count_is_worse():
    [less] = worse(CHAIN, EXPECTED, contents(1, "one", "other", "other"))
    assert less == """R1: b'k' is b'{"C": 1}', should be b'{"C": 2}'"""
