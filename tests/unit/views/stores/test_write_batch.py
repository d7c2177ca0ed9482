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
    batch = WriteBatch()
    batch.update(coalesced((b"%04d" % n, b"v", 1) for n in range(0, 1000, 2)))
    assert len(batch.between(None, None)) == 500
    batch.update(coalesced((b"%04d" % n, b"w", 2) for n in range(2 * new - 1, 0, -2)))
    batch.update(coalesced([(b"0000", None, 3)]))
    keys = [key for key, _, _ in batch.in_order()]
    assert keys == sorted(keys)
    assert batch.in_order() == batch.between(None, None)
    assert len(keys) == len(batch) == 500 + new
    assert batch.between(b"0000", b"0002") == [(b"0000", None, 3), (b"0001", b"w", 2)]


def test_single_new_key_does_not_scan_all():
    batch = WriteBatch()
    batch.update(coalesced((Key(b"%05d" % n), b"v", 1) for n in range(10_000)))
    batch.between(None, None)
    batch.update(coalesced([(Key(b"05000x"), b"v", 1)]))
    Key.looks = 0
    assert [key for key, _, _ in batch.between(b"05000", b"05001")] == [b"05000", b"05000x"]
    assert 0 < Key.looks < 100
