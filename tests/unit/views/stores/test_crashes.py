"""A process that is killed at each point of KIP-844: what is read again, and what is there then."""

from __future__ import annotations

import itertools
import signal

import pytest

from ksql.core.types.windowed import kept_by
from ksql.views.stores.base import StoredRow
from ksql.views.stores.store_types import TYPES
from tests.unit.views.stores import fed
from tests.unit.views.stores.dying import ended
from tests.unit.views.stores.fed import FIRST, LAYOUTS, POINTS, SECOND, THIRD

BEHIND_FIRST, BEHIND_SECOND = len(FIRST), len(FIRST) + len(SECOND)
REPLAYED = {
    ("txn_rocksdb", "open transaction"): 0,
    ("txn_rocksdb", "before the commit"): len(SECOND),
    ("txn_rocksdb", "in the commit"): 0,
    ("txn_rocksdb", "after the commit"): 0,
    ("txn_rocksdb", "full batch"): 5,  # two pieces of ten are more than is allowed
}
"""How many of the records that the process had read are read again."""
REPLAYED |= {
    (kind, point): BEHIND_FIRST if point == "open transaction" else BEHIND_SECOND
    for kind in ("rocksdb", "in_memory")
    for point in POINTS
}
CASES = [
    (kind, layout, point)
    for kind, layout, point in itertools.product(TYPES, LAYOUTS, POINTS)
    if point != "in the commit" or kind != "in_memory"  # which writes nothing
]


def killed(kind, layout, point, path):
    code, raised = ended(path.parent, fed.main, kind, layout, point, path)
    assert code == -signal.SIGKILL, raised


def model(layout, *transactions):
    """What a table of these transactions holds, by a dictionary."""
    rows, latest = {}, 0
    for offset in itertools.chain(*transactions):
        row = StoredRow(*fed.record(layout, offset))
        rows[row.key] = row
        if layout != "key":
            latest = max(latest, kept_by(row.key, session=layout == "session"))
    shown = [row for row in rows.values() if row.value is not None]
    if layout != "key":
        oldest = latest - fed.RETENTION
        shown = [row for row in shown if kept_by(row.key, session=layout == "session") > oldest]
    return sorted(shown)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "layout", "point"), CASES)
def test_a_killed_process_loses_nothing(kind, layout, point, tmp_path):
    killed(kind, layout, point, tmp_path / "s")
    store = fed.opened(kind, layout, tmp_path / "s")
    aborted = point == "open transaction"
    writer, part = fed.filling(store, SECOND[-1] + 2)
    again = fed.feed(writer, part, layout, FIRST)
    if not aborted:  # else none of its records is ever seen
        again += fed.feed(writer, part, layout, SECOND)
    assert again == REPLAYED[kind, point]
    there = (FIRST,) if aborted else (FIRST, SECOND)
    assert list(store.scan()) == model(layout, *there)
    fed.feed(writer, part, layout, THIRD)
    writer.commit()
    assert list(store.scan()) == list(store.committed().scan()) == model(layout, *there, THIRD)
    assert store.position() == THIRD[-1] + 2
    store.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_uncommitted_rows_are_gone_after_a_kill(layout, tmp_path):
    killed("txn_rocksdb", layout, "before the commit", tmp_path / "s")
    store = fed.opened("txn_rocksdb", layout, tmp_path / "s")
    assert list(store.scan()) == model(layout, FIRST)
    assert store.position() == FIRST[-1] + 2
    store.close()
