"""A store in memory, for the local driver, push queries and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        """Return the value, or None."""
        return self._spaces.get(space, {}).get(key)

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        """Return the values of all keys."""
        return list(map(self._spaces.get(space, {}).get, keys))

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        """Set the values."""
        self._spaces.setdefault(space, {}).update(values)

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value."""
        self._spaces.setdefault(space, {})[key] = value

    def delete(self, space: bytes, key: bytes) -> None:
        """Forget the key."""
        self._spaces.get(space, {}).pop(key, None)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        """Return all entries of the space."""
        yield from list(self._spaces.get(space, {}).items())

    def drop(self, space: bytes) -> None:
        """Forget the space."""
        self._spaces.pop(space, None)
