from __future__ import annotations

import pytest

from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import JoinProcessor
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.order import in_order
from ksql.exec.operators.table import TableProcessor
from tests.unit.exec.operators.support import Log, in_sequence, record

TABLE = 5


def join_of(outer, right_width):
    return JoinProcessor(outer, Side(TABLE, (right_width,)), Ending())


def stream(key, row, time, offset=0, **more):
    return record(key, row, time, offset, topic=0, **more, port=4)


def table(key, row, time, offset=0):
    return record(key, row, time, offset, topic=1, port=TABLE)


def run(processor, batch, store):
    results = [
        (r.row, r.timestamp) for r in processor.process(in_order(in_sequence(batch)), store, Log())
    ]
    assert all(row[-1] == time for row, time in results)
    return [(row[:-1], time) for row, time in results]


@pytest.mark.parametrize("outer", [False, True])
def test_a_stream_record_meets_the_row_of_its_moment(outer):
    store = MemoryStore()
    join = join_of(outer, 2)
    missing = [(("s0", None, None), 1)] if outer else []
    out = run(
        join,
        [
            table("k", ("t1", 1), 2, 0),
            stream("k", ("s0",), 1, 0),
            stream("k", ("s1",), 3, 1),
            table("k", ("t2", 2), 4, 1),
            stream("k", ("s2",), 5, 2),
        ],
        store,
    )
    assert out == [*missing, (("s1", "t1", 1), 3), (("s2", "t2", 2), 5)]
    gone = [(("s3", None, None), 7)] if outer else []
    assert run(join, [table("k", None, 6, 2), stream("k", ("s3",), 7, 3)], store) == gone


def test_only_stream_records_have_results():
    store = MemoryStore()
    join = join_of(True, 1)
    assert run(join, [table("k", ("t",), 1)], store) == []
    assert run(join, [stream("k", None, 2)], store) == []


def test_the_streams_headers_and_coordinates_stay():
    [out] = join_of(True, 1).process(
        [stream("k", ("s",), 2, 7, headers=[("h", b"x")])], MemoryStore(), Log()
    )
    assert (out.timestamp, out.offset, out.headers) == (2, 7, [("h", b"x")])


def test_rows_stored_before_the_table_grew_are_padded():
    store = MemoryStore()
    run(join_of(False, 1), [table("k", ("t",), 1)], store)
    assert run(join_of(False, 3), [stream("k", ("s",), 2)], store) == [(("s", "t", None, None), 2)]


# --- tables that remember


def test_changes_come_with_the_row_before():
    store = MemoryStore()
    source = TableProcessor(2)
    out = list(
        source.process(
            [
                record("a", ("x", 1), 1, 0),
                record("a", ("y", 2), 2, 1),
                record("a", None, 3, 2),
                record("a", ("z", 3), 4, 3),
                record("b", None, 5, 4),
            ],
            store,
            Log(),
        )
    )
    assert [(r.row, r.old) for r in out] == [
        (("x", 1), None),
        (("y", 2), ("x", 1)),
        (None, ("y", 2)),
        (("z", 3), None),
        (None, None),
    ]


def test_rows_of_a_narrower_table_are_padded():
    store = MemoryStore()
    list(TableProcessor(1).process([record("a", ("x",), 1)], store, Log()))
    [out] = TableProcessor(3).process([record("a", ("y", 2, 3), 2)], store, Log())
    assert out.old == ("x", None, None)
