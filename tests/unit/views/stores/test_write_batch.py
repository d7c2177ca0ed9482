from __future__ import annotations

import pytest

from ksql.views.stores.write_batch import WriteBatch, coalesced


class Key(bytes):
    """Counts how often keys are compared."""

    looks = 0

    def __lt__(self, other):
        Key.looks += 1
        return bytes(self) < other


@pytest.mark.parametrize("new", [1, 2, 64, 65, 300])
def test_new_keys_are_found_in_order(new):
    found = WriteBatch()
    found.update(coalesced((b"%04d" % n, b"v", 1) for n in range(0, 1000, 2)))
    assert len(found.between(None, None)) == 500
    found.update(coalesced((b"%04d" % n, b"w", 2) for n in range(2 * new - 1, 0, -2)))
    found.update(coalesced([(b"0000", None, 3)]))
    keys = [key for key, _, _ in found.in_order()]
    assert keys == sorted(keys)
    assert found.in_order() == found.between(None, None)
    assert len(keys) == len(found) == 500 + new
    assert found.between(b"0000", b"0002") == [(b"0000", None, 3), (b"0001", b"w", 2)]


def test_one_new_key_is_no_look_at_all_of_them():
    found = WriteBatch()
    found.update(coalesced((Key(b"%05d" % n), b"v", 1) for n in range(10_000)))
    found.between(None, None)
    found.update(coalesced([(Key(b"05000x"), b"v", 1)]))
    Key.looks = 0
    assert [key for key, _, _ in found.between(b"05000", b"05001")] == [b"05000", b"05000x"]
    assert 0 < Key.looks < 100
