"""A store in memory that refuses to grow without end: the state of a query in the server."""

from __future__ import annotations

import sys
from typing import Any

from ksql.base.errors import KsqlError
from ksql.processors.memory import MemoryStore

SETTING = "ksql.query.push.state.max.bytes"
_ENTRY_BYTES = 200
_SAMPLED = 8


class TooMuchState(KsqlError):
    """A query in the server whose state has grown beyond its bound."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the query's state has grown beyond {limit} bytes",
            detail="A query that answers a client keeps its state in the server's memory.",
            hint="Make a persistent query of it (CREATE TABLE .. AS SELECT) and query its result, "
            f"or raise {SETTING}.",
        )


class BoundedStore(MemoryStore):
    """The same store; what it holds is estimated as it is put."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._sizes: dict[bytes, dict[bytes, int]] = {}
        self._bytes = 0

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value.

        Raises: TooMuchState.
        """
        size = _ENTRY_BYTES + len(key) + estimate(value)
        sizes = self._sizes.setdefault(space, {})
        self._bytes += size - sizes.get(key, 0)
        sizes[key] = size
        if self._bytes > self._limit:
            raise TooMuchState(self._limit)
        super().put(space, key, value)

    def delete(self, space: bytes, key: bytes) -> None:
        """Forget the key."""
        self._bytes -= self._sizes.get(space, {}).pop(key, 0)
        super().delete(space, key)

    def drop(self, space: bytes) -> None:
        """Forget the space."""
        self._bytes -= sum(self._sizes.pop(space, {}).values())
        super().drop(space)


def estimate(value: Any, depth: int = 8) -> int:
    """Estimate how many bytes a value takes; of a long collection some items stand for all."""
    size = sys.getsizeof(value)
    if depth == 0 or not isinstance(value, list | tuple | dict):
        return size
    items = list(value.items() if isinstance(value, dict) else value)
    if not items:
        return size
    chosen = items[:: max(1, len(items) // _SAMPLED)]
    return size + sum(estimate(one, depth - 1) for one in chosen) * len(items) // len(chosen)
