"""Joins under one key in one stage."""

from __future__ import annotations

from ksql.exec.operators.chain import ChainProcessor, Link
from ksql.exec.operators.joining.join_layout import Ending, Side
from ksql.exec.operators.joining.joins import JoinProcessor
from ksql.exec.operators.keys import pack
from ksql.exec.operators.memory import MemoryStore
from ksql.exec.operators.stream_partitions import PrefixedStore
from tests.unit.exec.operators.support import Log, record

STREAM, FIRST, SECOND = 0, 1, 2


def chain(*, outer):
    """A stream of one column with two tables of one column each."""
    first = JoinProcessor(True, Side(FIRST, (1,)), Ending())
    second = JoinProcessor(outer, Side(SECOND, (1,)), Ending())
    return ChainProcessor(
        (
            Link(first, frozenset((STREAM, FIRST)), 1, True),
            Link(second, frozenset((SECOND,)), 2, outer),
        )
    )


def at(port, key, row, offset):
    return record(key, row, offset, offset, topic=port, port=port)


def test_each_record_passes_all_joins_before_the_next():
    records = [
        at(STREAM, "k", ("s0",), 0),
        at(SECOND, "k", ("u1",), 1),
        at(STREAM, "k", ("s2",), 2),
        at(FIRST, "k", ("t3",), 3),
        at(STREAM, "k", ("s4",), 4),
        at(SECOND, "k", None, 5),
        at(STREAM, "k", ("s6",), 6),
    ]
    expected = [
        ("s0", None, None, 0),
        ("s2", None, "u1", 2),
        ("s4", "t3", "u1", 4),
        ("s6", "t3", None, 6),
    ]
    out = chain(outer=True).process(records, MemoryStore(), Log())
    assert [each.row for each in out] == expected
    inner = chain(outer=False).process(records, MemoryStore(), Log())
    assert [each.row for each in inner] == [expected[1], expected[2]]
    store = MemoryStore()
    parts = [list(chain(outer=True).process([each], store, Log())) for each in records]
    assert [each.row for part in parts for each in part] == expected


def test_a_null_key_ends_at_an_inner_join():
    keyless = record("k", ("s",), 1, 1)._replace(port=STREAM, key=pack((None,)))
    [out] = chain(outer=True).process([keyless], MemoryStore(), Log())
    assert out.row == ("s", None, None, 1)
    store = MemoryStore()
    table = record("k", ("u",), 0, 0)._replace(port=SECOND, key=pack((None,)))
    assert list(chain(outer=False).process([table, keyless], store, Log())) == []


def test_the_joins_of_a_chain_keep_their_rows_apart():
    store = MemoryStore()
    for number in (1, 2):
        part = PrefixedStore(store, bytes([number]))
        part.load(b"t", [b"k"])
        assert part.get(b"t", b"k") is None
        part.put(b"t", b"k", [number])
    assert list(PrefixedStore(store, bytes([1])).scan(b"t")) == [(b"k", [1])]
    PrefixedStore(store, bytes([1])).delete(b"t", b"k")
    assert PrefixedStore(store, bytes([1])).get(b"t", b"k") is None
    PrefixedStore(store, bytes([1])).drop(b"t")
    assert PrefixedStore(store, bytes([2])).get(b"t", b"k") == [2]


def test_rows_of_several_sources_grow_at_the_end_of_each_stretch():
    stored = Side(0, (2, 1)).stored(("a", "b", "c"))
    assert Side(0, (3, 2)).row(stored) == ("a", "b", None, "c", None)
    assert Side(0, (1, 1)).row(stored) == ("a", "c")
    assert Side(0, (3,)).row(Side(0, (2,)).stored(("a", "b"))) == ("a", "b", None)


def test_endings_of_a_joined_row():
    key = pack(("k", 10, 20))
    assert Ending().of(key, 7) == (7,)
    assert Ending(windowed=True).of(key, 7) == (10, 20, 7)
    assert Ending(key=True).of(key, 7) == ("k", 7)
    assert Ending(key=True, windowed=True).of(key, 7) == ("k", 10, 20, 7)
