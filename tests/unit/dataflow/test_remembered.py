"""Numbers of keys are computed once while they are remembered, and the memory has a bound."""

from __future__ import annotations

from ksql.dataflow.remembered import Remembered


def remembering(most):
    computed = []

    def compute(keys):
        computed.append(list(keys))
        return [len(key) for key in keys]

    return Remembered(compute, most), computed


def test_each_key_is_computed_once():
    memory, computed = remembering(10)
    assert memory.of([b"a", b"bb", b"a"])[b"bb"] == 2
    assert memory.of(iter([b"bb", b"ccc"]))[b"ccc"] == 3
    assert memory.of([b"a", b"ccc"]) is memory.known
    assert computed == [[b"a", b"bb"], [b"ccc"]]


def test_with_one_key_too_many_all_others_are_forgotten_and_readers_keep_theirs():
    memory, computed = remembering(2)
    before = memory.of([b"a", b"bb"])
    assert memory.of([b"bb", b"ccc"]) == {b"bb": 2, b"ccc": 3}
    assert (before, memory.known) == ({b"a": 1, b"bb": 2}, {b"bb": 2, b"ccc": 3})
    assert computed == [[b"a", b"bb"], [b"bb", b"ccc"]]


def test_a_batch_of_more_keys_than_fit_is_answered_whole():
    memory, _ = remembering(2)
    assert memory.of([b"a", b"bb", b"ccc"]) == {b"a": 1, b"bb": 2, b"ccc": 3}
