"""A part of a store: of one join of a chain, or of one lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    from ksql.exec.operators.base import Store


class PrefixedStore:
    """The spaces of a store whose names begin alike."""

    __slots__ = ("_get", "_prefix", "_put", "_store")

    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        # bound once: they are called for every group
        self._get, self._put = store.get, store.put

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        """Fetch those keys together."""
        self._store.load(self._prefix + space, keys)

    def load_space(self, space: bytes) -> None:
        """Fetch the whole space with them."""
        self._store.load_space(self._prefix + space)

    def get(self, space: bytes, key: bytes) -> Any:
        """Return the value, or None."""
        return self._get(self._prefix + space, key)

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        """Return the values of all keys."""
        return self._store.get_all(self._prefix + space, keys)

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        """Set the values."""
        self._store.put_all(self._prefix + space, values)

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        """Set the value."""
        self._put(self._prefix + space, key, value)

    def delete(self, space: bytes, key: bytes) -> None:
        """Forget the key."""
        self._store.delete(self._prefix + space, key)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        """Return all entries of the space."""
        return self._store.scan(self._prefix + space)

    def drop(self, space: bytes) -> None:
        """Forget the space."""
        self._store.drop(self._prefix + space)
