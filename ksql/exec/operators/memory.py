"""State in memory (memory driver, push queries, tests), with or without a bound on its size.

The state of a query in the server lies in a store that refuses to grow without end.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ksql.core import KsqlError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


class MemoryStore:
    """The ``Store`` protocol over dictionaries."""

    def __init__(self) -> None:
        self._spaces: dict[bytes, dict[bytes, Any]] = {}

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        """Load nothing: everything is at hand already."""

    def load_space(self, space: bytes) -> None:
        """Load nothing: everything is at hand already."""

    def get(self, space: bytes, key: bytes) -> Any:
        return self._spaces.get(space, {}).get(key)

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        values = map(self._spaces.get(space, {}).get, keys)
        return [[*value] if value.__class__ is list else value for value in values]

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        self._spaces.setdefault(space, {}).update(values)

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        self._spaces.setdefault(space, {})[key] = value

    def delete(self, space: bytes, key: bytes) -> None:
        self._spaces.get(space, {}).pop(key, None)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        yield from list(self._spaces.get(space, {}).items())

    def drop(self, space: bytes) -> None:
        self._spaces.pop(space, None)


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


class Bound:
    """How many bytes the stores of one query hold together, and how many they may hold."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0

    def add(self, size_bytes: int) -> None:
        """Count more bytes, or fewer.

        Raises: TooMuchState.
        """
        self._bytes += size_bytes
        if self._bytes > self._limit:
            raise TooMuchState(self._limit)


class BoundedStore(MemoryStore):
    """The same store; what it holds is estimated as it is put, and counted in a bound."""

    def __init__(self, bound: Bound) -> None:
        super().__init__()
        self._bound = bound
        self._sizes: dict[bytes, dict[bytes, int]] = {}

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value.

        Raises: TooMuchState.
        """
        size = _ENTRY_BYTES + len(key) + estimate(value)
        sizes = self._sizes.setdefault(space, {})
        self._bound.add(size - sizes.get(key, 0))
        sizes[key] = size
        super().put(space, key, value)

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        """Set the values.

        Raises: TooMuchState.
        """
        for key, value in values.items():
            self.put(space, key, value)

    def delete(self, space: bytes, key: bytes) -> None:
        self._bound.add(-self._sizes.get(space, {}).pop(key, 0))
        super().delete(space, key)

    def drop(self, space: bytes) -> None:
        self._bound.add(-sum(self._sizes.pop(space, {}).values()))
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
