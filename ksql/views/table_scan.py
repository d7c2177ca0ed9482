"""A table's rows out of its stores, chunk by chunk: by key, by a range of keys, or all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.core.types import BIGINT, ROWTIME, WINDOW_COLUMNS, WindowedKeys, window_key
from ksql.exec.dataflow.partitioning import partitions_of
from ksql.formats import EncodeError, Serde, Skip, topic_serde
from ksql.sql.catalog import DataSource
from ksql.views.access_path import Access, ByKey, ByRange, Windows
from ksql.views.store_config import hidden_note
from ksql.views.stores.base import Rows, StoredRow, after, united

if TYPE_CHECKING:
    from ksql.core import Row
    from ksql.core.types import Bounds, SqlType
    from ksql.formats import Registry

Chunks = Iterator[list[Any]]
"""Rows on their way through a query; a chunk may be empty."""

CHUNK_ROWS = 1000


def row_columns(source: DataSource) -> dict[str, SqlType]:
    """Return the columns of a table's rows: ROWTIME, bounds of the window, key, value."""
    bounds = {} if source.window is None else WINDOW_COLUMNS
    columns = (*source.schema.key, *source.schema.value)
    return {ROWTIME: BIGINT, **bounds, **{column.name: column.type for column in columns}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableScan:
    """One table as queries read it; ``source`` is its stored form (``DataSource.queryable``).

    ``scattered``: the windows of a key may lie in several partitions (``Catalog.scattered``).
    """

    source: DataSource
    stores: Mapping[int, Rows]
    keys: Serde
    values: Serde
    scattered: bool = False

    @classmethod
    def of(
        cls,
        source: DataSource,
        stores: Mapping[int, Rows],
        registry: Registry | None,
        scattered: Collection[str] = (),
    ) -> TableScan:
        """Return the table with the serdes of its formats; ``scattered`` are such topics.

        Raises: RegistryMissing and what else a serde raises that cannot be made.
        """
        schema = source.schema
        return cls(
            source=source,
            stores=stores,
            keys=topic_serde(source.key_format, schema.key, "key", source.topic, registry),
            values=topic_serde(source.value_format, schema.value, "value", source.topic, registry),
            scattered=source.topic in scattered,
        )

    def rows(self, access: Access, closed: Callable[[], bool] = lambda: False) -> Chunks:
        """Yield the rows, in no order; what does not decode is left out.

        ``closed`` is asked before each chunk. A chunk is of one store, if that is far.
        """
        parts = self._stored(access)
        if not self._is_far():
            parts = iter((itertools.chain.from_iterable(parts),))
        for part in parts:
            while not closed() and (chunk := list(itertools.islice(part, CHUNK_ROWS))):
                yield self._decoded(chunk)
            if closed():
                return

    def note(self, access: Access, windows: Windows) -> str:
        """Return what RETENTION has hidden of these windows from a read, in words; or nothing.

        Of copies elsewhere it is known once they have been read.
        """
        if self.source.window is None:
            return ""
        size_ms = self.source.window.size_ms
        first, last = windows.ends(size_ms)
        spans = (store.hidden() for store in self._read_by(access))
        hidden = united(
            span for span in spans if span and span.first <= last and first <= span.last
        )
        return "" if hidden is None else hidden_note(self.source, hidden)

    def _read_by(self, access: Access) -> Iterable[Rows]:
        """Return the partitions that a read of a windowed table looks into."""
        if not isinstance(access, ByKey):
            return self.stores.values()
        keys = [data for key in access.keys if (data := self._encoded(key)) is not None]
        return itertools.chain.from_iterable(self._holding(keys))

    def find_many(
        self, keys: Sequence[tuple[Any, ...] | None], bounds: Sequence[Bounds | None]
    ) -> list[Row | None]:
        """Return the row of each key, of a windowed table that of one window; None for none."""
        places: dict[bytes, list[int]] = {}
        hashed: dict[bytes, bytes] = {}
        for index, (key, window) in enumerate(zip(keys, bounds, strict=True)):
            data = None if key is None else self._encoded(key)
            if data is not None:
                named = data if window is None else self._windowed().join(data, window)
                places.setdefault(named, []).append(index)
                hashed[named] = named if self.scattered else data
        out: list[Row | None] = [None] * len(keys)
        parts = self._of_keys(list(places), list(hashed.values()))
        for stored in itertools.chain.from_iterable(parts):
            for row in self._decoded([stored]):
                for index in places[stored.key]:
                    out[index] = row
        return out

    def find(self, key: tuple[Any, ...], bounds: Bounds | None = None) -> Row | None:
        """Return the row of one key, of a windowed table that of one window."""
        return self.find_many([key], [bounds])[0]

    def _is_far(self) -> bool:
        """Return whether other servers may be asked for some of the rows."""
        return any(store.far for store in self.stores.values())

    def _stored(self, access: Access) -> Iterator[Iterator[StoredRow]]:
        """Yield the rows of one store after another."""
        match access:
            case ByKey(keys, windows):
                encoded = [data for key in keys if (data := self._encoded(key)) is not None]
                if self.source.window is None:
                    return self._of_keys(encoded, encoded)
                return itertools.chain.from_iterable(
                    self._of_windows(key, stores, windows)
                    for key, stores in zip(encoded, self._holding(encoded), strict=True)
                )
            case ByRange(ranges):
                return (store.range(lo, hi) for lo, hi in ranges for store in self.stores.values())
            case None:
                return (store.scan() for store in self.stores.values())

    def _of_keys(
        self, keys: Sequence[bytes], hashed: Sequence[bytes]
    ) -> Iterator[Iterator[StoredRow]]:
        """Yield the rows of whole keys, those of far stores one store after another.

        Each lies where its writer has put it, by what it has hashed. In a topic that has other
        partitions than it was made with, it may lie where it was put before.

        It is cheaper to look into all stores that are near than to find out which.
        """
        if not self._is_far():
            yield self._near(keys)
            return
        by_store: dict[int, list[bytes]] = {}
        if len(self.stores) != self.source.partitions:  # they may lie where they were put before
            by_store = {number: list(keys) for number in self.stores}
        else:
            for key, number in zip(keys, partitions_of(hashed, len(self.stores)), strict=True):
                by_store.setdefault(number, []).append(key)
        for number, some in by_store.items():
            rows = self.stores[number].get_many(some)
            yield iter(
                [
                    StoredRow(key, row.value, row.timestamp)
                    for key, row in zip(some, rows, strict=True)
                    if row is not None
                ]
            )

    def _near(self, keys: Sequence[bytes]) -> Iterator[StoredRow]:
        for key in keys:
            for store in self.stores.values():
                row = store.get(key)
                if row is not None:
                    yield StoredRow(key, row.value, row.timestamp)

    def _holding(self, keys: Sequence[bytes]) -> Iterator[Iterable[Rows]]:
        """Return the partitions with the windows of each key.

        Where the topic has other partitions than it was made with, a key's may be in several.
        """
        stores = self.stores
        count = len(stores)
        if self.scattered or count != self.source.partitions or count == 1:
            return itertools.repeat(stores.values(), len(keys))
        return ([stores[number]] for number in partitions_of(keys, count))

    def _of_windows(
        self, key: bytes, stores: Iterable[Rows], windows: Windows
    ) -> Iterator[Iterator[StoredRow]]:
        """Yield a key's windows, in order, by store; those of a longer key may lie among them."""
        keys = self._windowed()
        first, last = windows.ends(keys.size_ms)
        length = len(key) + keys.suffix_bytes
        if first > last:
            return
        lo, hi = window_key(key, first), after(window_key(key, last))
        for store in stores:
            yield (row for row in store.range(lo, hi) if len(row.key) == length)

    def _windowed(self) -> WindowedKeys:
        window = self.source.window
        return WindowedKeys(None if window is None else window.size_ms)

    def _encoded(self, values: tuple[Any, ...]) -> bytes | None:
        """Return the bytes of a key; None for one that no record can have."""
        try:
            return self.keys.encode(values)
        except EncodeError:
            return None

    def _decoded(self, chunk: Sequence[StoredRow]) -> list[Row]:
        names, contents, times = zip(*chunk, strict=True)
        if self.source.window is not None:
            split = self._windowed().split
            parts = [split(name) for name in names]
            names = tuple(key for key, _ in parts)
            heads: list[Row] = [
                (time, *bounds) for time, (_, bounds) in zip(times, parts, strict=True)
            ]
        else:
            heads = [(time,) for time in times]
        keys = self.keys.decode_many(names, _passed_over)
        values = self.values.decode_many(contents, _passed_over)
        empty = (None,) * len(self.source.schema.key)
        return [
            (*head, *(key or empty), *value)
            for head, key, value in zip(heads, keys, values, strict=True)
            if value is not None and not isinstance(value, Skip) and not isinstance(key, Skip)
        ]


def _passed_over(_index: int, _error: Exception) -> None:
    """Pass over a row that does not decode; its record was reported when read."""
