"""Records column by column: the same as one by one, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.operators.base import Record
from ksql.exec.operators.keyed_batches import KeyedBatch, Queues, columns_in_order
from ksql.exec.operators.order import in_order

ROWS = st.lists(
    st.tuples(
        st.binary(max_size=2), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9),
        st.integers(0, 99), st.integers(), st.text("ab", max_size=2),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


@given(ROWS, st.none() | st.integers(0, 3), st.data())
def test_parts_of_a_batch_are_those_of_its_records(rows, lane, data):
    batch = KeyedBatch.of_rows((1, 2, 3), lane, rows)
    records = list(batch)
    assert len(batch) == len(records) == len(rows)
    assert records[0] == Record(
        1, rows[0][0], rows[0][5:], rows[0][2], 2, 3, rows[0][4], None, None, rows[0][3],
        rows[0][1] if lane is None else lane,
    )  # fmt: skip
    begin, end = sorted((data.draw(st.integers(0, 12)), data.draw(st.integers(0, 14))))
    assert list(batch.cut(begin, end)) == records[begin:end]
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    assert list(batch.taken(np.array(places))) == [records[place] for place in places]
    other = KeyedBatch.of_rows((1, 2, 3), data.draw(st.none() | st.just(lane or 0)), rows)
    assert list(KeyedBatch.joined([batch, other])) == [*records, *other]


def test_of_no_rows_there_is_a_batch():
    assert list(KeyedBatch.of_rows((1, 2, 3), None, [])) == []


def queue(topic, partition, port, steps):
    """Records of a partition; ``steps`` are by how much times rise or fall."""
    time = sequence_key = 0
    for offset, step in enumerate(steps):
        time = max(0, time + step)
        sequence_key = max(sequence_key, time)
        key = b"%d" % (offset % 3)
        row = (topic, partition, offset)
        yield Record(port, key, row, time, topic, partition, offset, sequence_key=sequence_key)


def batch_of(records):
    rows = [(r.key, 0, r.timestamp, r.sequence_key, r.offset, *r.row) for r in records]
    return KeyedBatch.of_rows((records[0].port, *records[0][4:6]), 0, rows)


STEPS = st.lists(st.integers(-3, 5), min_size=1, max_size=20)


@given(st.lists(STEPS, min_size=1, max_size=4), st.lists(STEPS, max_size=2), st.booleans())
def test_the_order_is_that_of_the_records(streams, tables, whole):
    stream = [list(queue(0, number, 0, steps)) for number, steps in enumerate(streams)]
    table = [list(queue(1, number, 1, steps)) for number, steps in enumerate(tables)]
    if table and not whole:  # with a deletion it is no batch
        table[0][0] = table[0][0]._replace(row=None)
    parts = [*map(batch_of, stream), *(batch_of(t) if whole else t for t in table)]
    records = Queues(parts)
    expected = in_order(list(records))
    given_ = columns_in_order(records, 1)
    if given_ is None:
        assert sum(map(len, table)) * 8 > sum(map(len, stream))
        return
    rows, others, ordered = list(zip(*given_.columns, strict=True)), list(given_.others), []
    for place, row in enumerate(rows):
        while others and others[0][0] == place:
            ordered.append(others.pop(0)[1])
        ordered.append((given_.keys[place], row, given_.times[place]))
    ordered += [record for _, record in others]
    assert ordered == [r if r.port else (r.key, r.row, r.timestamp) for r in expected]


def test_of_what_is_not_ordinary_there_are_no_columns():
    stream, table = list(queue(0, 0, 0, [1] * 9)), list(queue(1, 0, 1, [1]))
    mixed = Queues([batch_of(stream), [*table, stream[0]]])
    assert columns_in_order(mixed, 1) is None
    assert columns_in_order(Queues([stream])) is None
    assert columns_in_order(Queues([batch_of(stream), batch_of(table)])) is None
    narrow = batch_of([record._replace(row=(1,)) for record in stream])
    assert columns_in_order(Queues([batch_of(stream), narrow])) is None
    assert columns_in_order(Queues([batch_of(table)]), 1) is None


def test_queues_are_a_sequence_of_their_records():
    records = list(queue(0, 0, 0, [1, 2, 3]))
    queues = Queues([batch_of(records[:2]), records[2:]])
    assert queues == records
    assert queues != records[:2]
    assert (len(queues), queues[1], queues[1:]) == (3, records[1], records[1:])
    with pytest.raises(TypeError, match="unhashable"):
        hash(queues)
