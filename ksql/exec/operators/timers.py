"""Keys that wait for a time, found by it: EMIT FINAL's windows, rows with a RETENTION_MS.

Each slot of time is a space of keys: so only the slots whose time has come are looked through.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.exec.operators.base import Store

_META = b"m"
_SLOTS = b"due"
_SPACE = struct.Struct(">cq")
_MOST_SLOTS = 128


class Timers:
    """The keys of one bucket that wait, for one call.

    ``length_ms`` is how much time a slot covers; the state keeps the one that it began with.
    """

    def __init__(self, store: Store, length_ms: int, slots: Iterable[int]) -> None:
        self._store = store
        self._length = length_ms
        self._slots = set(slots)

    @staticmethod
    def load(store: Store) -> None:
        """Fetch what ``read`` needs."""
        store.load(_META, (_SLOTS,))

    @classmethod
    def read(cls, store: Store, least_ms: int, open_ms: int) -> Timers:
        """Continue where the last call ended.

        Keys wait up to ``open_ms``; a slot that is new covers at least ``least_ms``.
        """
        length_ms = max(least_ms, open_ms // _MOST_SLOTS)
        stored = store.get(_META, _SLOTS)
        return cls(store, *([length_ms, []] if stored is None else stored))

    @classmethod
    def cleared(cls, store: Store, least_ms: int, open_ms: int) -> Timers:
        """Forget all keys, and begin with slots of another length."""
        stored = store.get(_META, _SLOTS)
        for slot in [] if stored is None else stored[1]:
            store.drop(_space(slot))
        return cls(store, max(least_ms, open_ms // _MOST_SLOTS), ())

    def load_upto(self, time: int) -> None:
        """Fetch what ``upto`` looks through."""
        for slot in self._upto(time):
            self._store.load_space(_space(slot))

    def upto(self, time: int) -> Iterator[bytes]:
        """Return the keys whose time is about to come: those up to the end of that time's slot."""
        for key, _ in self.entries(time):
            yield key

    def entries(self, time: int) -> Iterator[tuple[bytes, Any]]:
        """Return the same keys with their values."""
        for slot in self._upto(time):
            yield from self._store.scan(_space(slot))

    def _upto(self, time: int) -> list[int]:
        last = time // self._length
        return sorted(slot for slot in self._slots if slot <= last)

    def add(self, time: int, key: bytes, value: Any = 1) -> None:
        """Let the key wait for that time."""
        slot = time // self._length
        self._slots.add(slot)
        self._store.put(_space(slot), key, value)

    def remove(self, time: int, key: bytes) -> None:
        """Let the key wait no longer; unknown keys are fine."""
        self._store.delete(_space(time // self._length), key)

    def write(self, passed: int) -> None:
        """Remember the slots, without those that ``forget`` forgets."""
        self.forget(passed)
        self._store.put(_META, _SLOTS, [self._length, sorted(self._slots)])

    def forget(self, passed: int) -> None:
        """Forget the slots before that time: all of their keys were removed or are of no use."""
        first = passed // self._length
        for slot in [slot for slot in self._slots if slot < first]:
            self._store.drop(_space(slot))
            self._slots.discard(slot)


def _space(slot: int) -> bytes:
    return _SPACE.pack(b"d", slot)
