from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.aggregate import AggregateProcessor
from ksql.exec.operators.base import Record
from ksql.exec.operators.commit_intervals import CommitIntervals
from ksql.exec.operators.folds import compile_folds
from ksql.exec.operators.keys import pack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.partial_aggregation import Combiner, compile_combine
from ksql.exec.operators.windows import Windows
from tests.unit.exec.operators.support import COUNT, FUSSY, PICKY, SUM, Log, contents, record, slots

INTERVALS = CommitIntervals(3_600_000)


def operator(*functions, windows=None, every_change=True, combined=False, keep_old=False):
    folds = compile_folds(slots(*functions))
    intervals = None if every_change else INTERVALS
    return AggregateProcessor(folds, windows, intervals, combined, keep_old)


def run(processor, batches, store=None, log=None):
    store = MemoryStore() if store is None else store
    log = Log() if log is None else log
    return [list(processor.process(batch, store, log)) for batch in batches]


def shown(records):
    return [(each.row, each.timestamp) for each in records]


def test_every_change_is_reported():
    [out] = run(
        operator(COUNT, SUM),
        [[record("a", (1,), 5, 0), record("b", (2,), 3, 1), record("a", (3,), 4, 2)]],
    )
    assert shown(out) == [(("a", 1, 1, 5), 5), (("b", 1, 2, 3), 3), (("a", 2, 4, 5), 5)]
    assert out[0].key == pack(("a",))


def test_or_the_last_one_of_an_interval_and_batch():
    batch = [record("a", (1,), 5, 0), record("b", (2,), 3, 1), record("a", (3,), 4, 2)]
    first, second = run(operator(COUNT, SUM, every_change=False), [batch, [record("a", (9,), 6)]])
    assert shown(first) == [(("b", 1, 2, 3), 3), (("a", 2, 4, 5), 5)]
    assert shown(second) == [(("a", 3, 13, 6), 6)]


def test_a_batch_of_several_intervals_has_a_change_for_each():
    """A record that is behind belongs to the interval in which it comes, as when it is live."""
    keys_and_times = [("a", 5), ("b", 6), ("a", 7), ("a", 12), ("b", 8), ("a", 31)]
    times = [time for _, time in keys_and_times]
    batch = [
        record(key, (1,), time, at)._replace(sequence_key=max(times[: at + 1]))
        for at, (key, time) in enumerate(keys_and_times)
    ]
    folds = compile_folds(slots(COUNT))
    [out] = run(AggregateProcessor(folds, None, CommitIntervals(10), False, True), [batch])
    assert [(each.row[:2], each.timestamp, each.sequence_key, each.old) for each in out] == [
        (("b", 1), 6, 6, None),
        (("a", 2), 7, 7, None),
        (("b", 2), 8, 10, ("b", 1, 6)),
        (("a", 3), 12, 12, ("a", 2, 7)),
        (("a", 4), 31, 31, ("a", 3, 12)),
    ]


def test_row_before_is_given_on_request():
    keeping = operator(COUNT, keep_old=True)
    first, second = run(
        keeping, [[record("a", (), 1, 0), record("a", (), 2, 1)], [record("a", (), 3, 2)]]
    )
    assert [r.old for r in (*first, *second)] == [None, ("a", 1, 1), ("a", 2, 2)]
    last = operator(COUNT, keep_old=True, every_change=False)
    first, second = run(
        last, [[record("a", (), 1, 0), record("a", (), 2, 1)], [record("a", (), 3, 2)]]
    )
    assert [r.old for r in (*first, *second)] == [None, ("a", 2, 2)]


def test_a_group_without_results_has_no_row_but_counts():
    log = Log()
    batches = [[record("a", (n,)) for n in some] for some in ((2, 1), (2,), (3,))]
    out = run(operator(COUNT, PICKY), batches, log=log)
    assert [shown(each) for each in out] == [[(("a", 1, 2, 0), 0)], [], [(("a", 4, 8, 0), 0)]]
    assert log == [("aggregate", "odd", ("a",))] * 2


def test_only_the_last_results_of_a_batch_are_requested():
    log = Log()
    batches = [[record("a", (n,)) for n in some] for some in ((2, 1, 3), (1,), (2, 3))]
    out = run(operator(COUNT, PICKY, every_change=False), batches, log=log)
    assert [shown(each) for each in out] == [[(("a", 3, 6, 0), 0)], [], [(("a", 6, 12, 0), 0)]]
    assert log == [("aggregate", "odd", ("a",))]


@pytest.mark.parametrize("every", [True, False])
def test_a_group_without_results_is_deleted_once_where_the_row_before_matters(every):
    log = Log()
    batches = [[record("a", (n,))] for n in (1, 1, 1, 2, 1)]
    out = run(operator(PICKY, every_change=every, keep_old=True), batches, log=log)
    changes = [(each.row, each.old) for some in out for each in some]
    before, after = ("a", 2, 0), ("a", 6, 0)
    assert changes == [(before, None), (None, before), (after, None)]
    assert log == [("aggregate", "odd", ("a",))] * 3


def test_a_tables_change_takes_the_old_row_back():
    [out] = run(
        operator(COUNT, SUM),
        [
            [
                record("a", (5,), 1, 0),
                record("a", (7,), 2, 1, old=(5,)),
                record("a", None, 3, 2, old=(7,)),
            ]
        ],
    )
    assert shown(out) == [(("a", 1, 5, 1), 1), (("a", 1, 7, 2), 2), (("a", 0, 0, 3), 3)]


def test_a_record_that_fails_is_skipped_and_reported():
    log, store = Log(), MemoryStore()
    processor = operator(COUNT, FUSSY)
    out = run(
        processor,
        [[record("a", (13,), 1, 0), record("b", (1,), 2, 1), record("b", (13,), 3, 2)]],
        store,
        log,
    )
    assert shown(out[0]) == [(("b", 1, 1, 2), 2)]
    assert log == [("aggregate", "thirteen", (13,)), ("aggregate", "thirteen", (13,))]
    assert [key for key, _ in store.scan(b"g")] == [pack(("b",))]
    assert shown(run(processor, [[record("b", (1,), 4)]], store)[0]) == [(("b", 2, 2, 4), 4)]


def test_a_change_whose_new_row_fails_takes_the_old_one_back():
    store, log = MemoryStore(), Log()
    processor = operator(COUNT, FUSSY)
    run(processor, [[record("a", (5,), 1, 0)], [record("a", (13,), 2, 1, old=(5,))]], store, log)
    assert log == [("aggregate", "thirteen", (13,))]
    assert shown(run(processor, [[record("a", (1,), 3)]], store)[0]) == [(("a", 1, 1, 3), 3)]


def test_a_shorter_state_is_completed():
    store = MemoryStore()
    run(operator(COUNT), [[record("a", (), 1)]], store)
    assert shown(run(operator(COUNT, SUM), [[record("a", (4,), 2)]], store)[0]) == [
        (("a", 2, 4, 2), 2)
    ]


def test_headers_and_coordinates_continue():
    source = record("a", (), 1, 8, headers=[("h", b"x")], topic=1, partition=2)
    [[out]] = run(operator(COUNT), [[source]])
    assert (out.topic, out.partition, out.offset, out.headers) == (1, 2, 8, [("h", b"x")])


# --- windows


TUMBLING = Windows(10, 10, 5, 15)
HOPPING = Windows(10, 5, 0, 10)


def test_windows_add_their_bounds():
    [out] = run(
        operator(COUNT, windows=TUMBLING), [[record("a", (), 3, 0), record("a", (), 12, 1)]]
    )
    assert shown(out) == [(("a", 1, 3, 0, 10), 3), (("a", 1, 12, 10, 20), 12)]


def test_a_record_falls_into_all_windows_over_its_time():
    [out] = run(operator(COUNT, windows=HOPPING), [[record("a", (), 12, 0)]])
    assert [r.row[-2:] for r in out] == [(5, 15), (10, 20)]


def test_late_records_are_dropped_and_reported():
    log, store = Log(), MemoryStore()
    processor = operator(COUNT, windows=TUMBLING)
    run(processor, [[record("a", (), 14, 0)]], store, log)
    [out] = run(processor, [[record("b", (), 9, 1)]], store, log)
    assert shown(out) == [(("b", 1, 9, 0, 10), 9)]
    run(processor, [[record("a", (), 15, 2)]], store, log)
    [out] = run(processor, [[record("b", (), 9, 3)]], store, log)
    assert out == []
    assert log == [("aggregate", "late record for the window starting at 0", ("b",))]
    assert log[0][1].behind_ms == 15 - 9


def test_lateness_is_judged_record_by_record():
    log = Log()
    [out] = run(
        operator(COUNT, windows=TUMBLING),
        [[record("a", (), 3, 0), record("a", (), 40, 1), record("a", (), 3, 2)]],
        log=log,
    )
    assert [r.row[-2:] for r in out] == [(0, 10), (40, 50)]
    assert len(log) == 1


def test_a_late_record_may_still_be_in_time_for_a_later_window():
    processor = operator(COUNT, windows=HOPPING)
    [out] = run(processor, [[record("a", (), 16, 0), record("a", (), 12, 1)]])
    assert [r.row[-2:] for r in out] == [(10, 20), (15, 25), (10, 20)]


def test_old_windows_are_forgotten():
    store = MemoryStore()
    windows = Windows(60_000, 60_000, 0, 60_000)
    processor = operator(COUNT, windows=windows)
    for offset, minute in enumerate((0, 1, 2, 3, 60)):
        run(processor, [[record("a", (), minute * 60_000, offset)]], store)
    held = [space for space in contents(store) if space.startswith(b"w")]
    assert len(held) == 1
    assert run(processor, [[record("a", (), 60 * 60_000, 9)]], store)[0][0].row[1] == 2


# --- combining


keys = st.sampled_from(["a", "b", "c"])
rows = st.tuples(keys, st.sampled_from([None, 1, 2, 13]), st.integers(0, 9))
batches = st.lists(st.lists(rows, max_size=8), max_size=4)


@given(batches, st.integers(1, 3), st.booleans())
def test_combined_is_as_uncombined(data, tasks, plain):
    """Whatever tasks fold before the exchange, the last change per group and batch is the same."""
    functions = (COUNT, SUM, FUSSY)
    whole = operator(*functions, every_change=False)
    merging = operator(*functions, every_change=False, combined=True)
    combine = compile_combine(slots(*functions), 1, plain=plain)
    stores, logs = (MemoryStore(), MemoryStore()), (Log(), Log())
    for batch in data:
        records = [record(key, (x, x), time, i) for i, (key, x, time) in enumerate(batch)]
        combined: list[Record] = []
        for task in range(tasks):
            part = batch[task::tasks]
            combiner = Combiner(combine, INTERVALS)
            times = [time for _, _, time in part]
            combiner.add([(key, x, x) for key, x, _ in part], times, times, logs[1])
            combined += combiner.finish()
        expected = {r.key: r[:4] for r in whole.process(records, stores[0], logs[0])}
        groups = {r.key: r[:4] for r in merging.process(combined, stores[1], logs[1])}
        assert groups == expected
    assert sorted(map(str, logs[0])) == sorted(map(str, logs[1]))
    assert dict(stores[0].scan(b"g")) == dict(stores[1].scan(b"g"))


def test_keys_of_several_columns_and_missing_rows():
    combiner = Combiner(compile_combine(slots(COUNT), 2, plain=True), INTERVALS)
    combiner.add([("a", 1), None, ("a", 1), ("a", 2)], [5, 9, 3, 1], [5, 9, 9, 9], Log())
    assert [(r.key, r.row, r.timestamp) for r in combiner.finish()] == [
        (pack(("a", 1)), (5, 2), 5),
        (pack(("a", 2)), (1, 1), 1),
    ]
