"""Kafka's hash of keys: the values of its own tests, and its plain text in Java, word for word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ksql.exec.dataflow.partitioning.murmur2 import (
    partitions_of,
    partitions_of_integers,
    partitions_of_texts,
)
from ksql.exec.operators.keys import pack

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
MASK = 0xFFFFFFFF


def plain(key: bytes) -> int:
    """One key's hash, as Kafka has it."""
    hash_ = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for place in range(0, whole, 4):
        word = int.from_bytes(key[place : place + 4], "little") * 0x5BD1E995 & MASK
        word = (word ^ word >> 24) * 0x5BD1E995 & MASK
        hash_ = (hash_ * 0x5BD1E995 & MASK) ^ word
    if whole < len(key):
        hash_ = (hash_ ^ int.from_bytes(key[whole:], "little")) * 0x5BD1E995 & MASK
    hash_ = (hash_ ^ hash_ >> 13) * 0x5BD1E995 & MASK
    return hash_ ^ hash_ >> 15


def test_the_hashes_that_kafka_states():
    assert [plain(key) for key in KNOWN] == [value & MASK for value in KNOWN.values()]
    expected = [(value & 0x7FFFFFFF) % 1000 for value in KNOWN.values()]
    assert partitions_of(list(KNOWN), 1000) == expected


@given(keys=st.lists(st.binary(max_size=40)), count=st.integers(1, 1000))
def test_many_keys_at_once_are_as_one(keys, count):
    assert partitions_of(keys, count) == [(plain(key) & 0x7FFFFFFF) % count for key in keys]


TEXTS = st.one_of(st.text(max_size=40), st.just("x" * 300), st.just("ü" * 40_000))


@given(texts=st.lists(TEXTS, max_size=6))
def test_packed_texts_are_hashed_without_their_heads(texts):
    packed = [pack((text,)) for text in texts]
    numbers = partitions_of_texts(packed, 7).tolist()
    assert numbers == partitions_of([text.encode() for text in texts], 7)


@given(
    numbers=st.lists(
        st.integers(-(2**31), 2**31 - 1) | st.integers(-300, 300) | st.integers(-40_000, 70_000)
    ),
    larger=st.lists(st.integers(-(2**63), 2**63 - 1)),
)
def test_packed_whole_numbers_are_hashed_as_they_are_written(numbers, larger):
    for size, values in ((4, numbers), (8, numbers + larger)):
        packed = [pack((value,)) for value in values]
        written = [value.to_bytes(size, "big", signed=True) for value in values]
        assert partitions_of_integers(packed, 7, size).tolist() == partitions_of(written, 7)
