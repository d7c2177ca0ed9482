"""The lanes of a bucket: state of their own, fetched together."""

from __future__ import annotations

import pytest

from ksql.exec.operators.aggregate import AggregateProcessor
from ksql.exec.operators.base import Record
from ksql.exec.operators.folds import compile_folds
from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import JoinProcessor
from ksql.exec.operators.joining.streams import StreamJoinProcessor, Within
from ksql.exec.operators.keys import pack, unpack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.sessions import SessionProcessor
from ksql.exec.operators.sessionstate import SessionWindows
from ksql.exec.operators.stream_partitions import PrefixedStore, each_lane
from ksql.exec.operators.suppress import FinalProcessor
from ksql.exec.operators.table import TableProcessor
from ksql.exec.operators.windows import Windows
from ksql.spark.task.pages import PagedStore
from tests.unit.exec.operators.support import COUNT, Log, slots
from tests.unit.spark.task.test_pages import DictBackend

FOLDS = compile_folds(slots(COUNT))
WINDOWS, SESSIONS = Windows(10, 10, 0, 10_000), SessionWindows(10, 0, 10_000)
PROCESSORS = {
    "windows": AggregateProcessor(FOLDS, WINDOWS, None, False, False),
    "sessions": SessionProcessor(FOLDS, SESSIONS, None, False, 1),
    "final": FinalProcessor(FOLDS, WINDOWS, bytes),
    "final sessions": SessionProcessor(FOLDS, SESSIONS, None, False, 1, bytes),
    "stream-stream": StreamJoinProcessor(
        Side(0, (0,)), Side(1, (0,)), True, True, Within(5, 5, 10_000, eager=False), Ending()
    ),
    "stream-table": JoinProcessor(True, Side(1, (0,)), Ending()),
    "table": TableProcessor(0),
}


class Calls(DictBackend):
    """Pages that count how often they are asked."""

    calls = 0

    def get_many(self, keys):
        self.calls += 1
        return super().get_many(keys)


def at(lane, key, time, port=0):
    return Record(port, pack((key,)), (), time, lane=lane)


def run(processor, records, backend, log=None):
    store = PagedStore(backend)
    out = list(each_lane(processor, records, store, Log() if log is None else log))
    store.flush()
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROCESSORS if name != "table"])
@pytest.mark.parametrize("time", [6, 30_000], ids=["open", "closing"])
def test_all_stream_partitions_are_read_in_one_request(name, time):
    """A batch of 40 lanes asks as often as one of a single lane."""
    requests = []
    for lanes in (1, 40):
        backend, keys = Calls(), [f"{n} {'x' * 60}" for n in range(200)]
        filling = [at(n, key, 5, port) for n in range(lanes) for key in keys for port in (1, 0)]
        run(PROCESSORS[name], filling, backend)
        assert len(backend.data) > lanes  # too much for the root
        backend.calls = 0
        run(PROCESSORS[name], [at(n, keys[0], time) for n in range(lanes)], backend)
        requests.append(backend.calls)
    assert requests[0] == requests[1]


def test_stream_partitions_have_clocks_and_groups_of_their_own():
    log, processor, backend = Log(), PROCESSORS["windows"], DictBackend()
    records = [at(0, "a", 100), at(1, "a", 5), at(1, "a", 6), at(0, "a", 5)]
    out = run(processor, records, backend, log)
    assert [(r.lane, *unpack(r.key), r.row[1]) for r in out] == [
        (0, "a", 1),
        (1, "a", 1),
        (1, "a", 2),
    ]
    assert [message for _, message, _ in log] == ["late record for the window starting at 0"]
    again = run(processor, [at(1, "a", 7), at(0, "a", 7)], backend, log)
    assert [(r.lane, r.row[1]) for r in again] == [(1, 3)]


def test_untimed_state_is_kept_per_stream_partition_too():
    store = MemoryStore()
    list(each_lane(PROCESSORS["table"], [at(3, "k", 0)], store, Log()))
    [same, other] = each_lane(PROCESSORS["table"], [at(4, "k", 1), at(3, "k", 1)], store, Log())
    assert (same.old, other.old) == ((), None)


def test_spaces_apart_are_read_and_written_together():
    store = MemoryStore()
    first, second = PrefixedStore(store, b"1"), PrefixedStore(store, b"2")
    first.put_all(b"s", {b"a": 1, b"b": 2})
    second.put_all(b"s", {b"a": 3})
    keys = [b"b", b"a", b"c"]
    assert first.get_all(b"s", keys) == [2, 1, None]
    assert second.get_all(b"s", keys) == [None, 3, None]
    assert store.get_all(b"1s", [b"a"]) == [1]
