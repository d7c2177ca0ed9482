"""A process that is killed at each point of an upgrade: no row is lost, and no directory is left.

The topic's first records are never given again: what a store has read of them is only in it.
"""

from __future__ import annotations

import itertools
import signal

import pytest

from ksql.views.stores.format_upgrade import Upgrades
from ksql.views.stores.formats import UNKNOWN_TIME
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.txn import TxnStore
from tests.unit.views.stores import fed, upgraded
from tests.unit.views.stores.dying import ended
from tests.unit.views.stores.fed import FIRST, SECOND, THIRD
from tests.unit.views.stores.test_crashes import model
from tests.unit.views.stores.upgraded import ONLINE_POINTS, POINTS, retained, written

CASES = [
    *itertools.product(["offline", "in_place"], ["key"], POINTS),
    *itertools.product(["in_place"], ["key"], ONLINE_POINTS),
    ("roll_over", "key", "second slice"),  # the same steps as offline
    *itertools.product(["in_place"], ["window", "session"], ["second slice", "whole"]),
]


def run(mode, layout, point, path):
    return ended(path.parents[1], upgraded.main, mode, layout, point, path)


def finished(mode, path, budget):
    """Start as often as an upgrade takes; return the store in the newest format."""
    for _ in range(2):
        upgrades = Upgrades(mode, budget)
        store = upgrades.open("txn_rocksdb", path)
        if isinstance(store, TxnStore):
            return store
        while upgrades.busy:
            upgrades.work()
        if mode != "in_place":
            return upgrades.open("txn_rocksdb", path)
        upgrades.leave(path)
    return Upgrades(mode, budget).open("txn_rocksdb", path)


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "layout", "point"), CASES)
def test_a_killed_process_loses_nothing(mode, layout, point, tmp_path):
    path = tmp_path / "stores" / "0"
    written(layout, path)
    code, errors = run(mode, layout, point, path)
    assert code == -signal.SIGKILL, errors
    again, errors = run(mode, layout, point, path)  # killed again, or past that point by now
    assert again in (-signal.SIGKILL, 0), errors
    assert {each.name for each in path.parent.iterdir()} <= {"0", "0.new", "0.old", "0.gone"}
    store = finished(mode, path, StoreBudget())
    assert isinstance(store, TxnStore)
    assert [each.name for each in path.parent.iterdir()] == ["0"]
    kept = retained(layout, store)
    writer, part = fed.filling(kept, SECOND[-1] + 2)
    assert fed.feed(writer, part, layout, FIRST) == 0
    fed.feed(writer, part, layout, SECOND)
    fed.feed(writer, part, layout, THIRD)
    writer.commit()
    expected = model(layout, FIRST, SECOND, THIRD)
    rows = list(kept.committed().scan())
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    times = {row.key: row.timestamp for row in expected}
    assert {row.timestamp for row in rows} > {UNKNOWN_TIME}
    assert all(row.timestamp in (UNKNOWN_TIME, times[row.key]) for row in rows)
    assert all(row.timestamp == times[row.key] for row in rows if times[row.key] >= THIRD[0])
    assert kept.position() == THIRD[-1] + 2
    kept.close()
