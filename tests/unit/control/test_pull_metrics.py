"""How many pull queries a server has answered, of which table, and at how many servers."""

from __future__ import annotations

import itertools

from ksql.control import pull_metrics
from ksql.control.pull_metrics import BySite, PullCounter, PullMetrics


def test_each_table_of_a_query_is_counted():
    times = itertools.count(5)
    counter = PullCounter(lambda: next(times))
    counter.add(["T", "U"], {"T": BySite(local=1, remote=2), "X": BySite(local=9)}, failed=False)
    counter.add(["T"], {}, failed=True)
    assert counter.of("T") == PullMetrics(total=2, failed=1, local=1, remote=2, last_ms=6)
    assert counter.of("U") == PullMetrics(total=1, last_ms=5)
    assert counter.of("X") == PullMetrics()


def test_least_recently_queried_is_forgotten(monkeypatch):
    monkeypatch.setattr(pull_metrics, "_MOST", 2)
    counter = PullCounter(lambda: 1)
    for name in ("A", "B", "A", "C"):
        counter.add([name], {}, failed=False)
    assert [counter.of(name).total for name in "ABC"] == [2, 0, 1]
