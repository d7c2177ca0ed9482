"""A store on disk: one RocksDB per table partition.

Rows and position are entries of one column family and every commit is one write batch, so the log
and each flushed file hold them together: whatever ends the process, what is found afterwards is
exactly the state after some commit.

The write-ahead log is on and is not synced. The log outlives a killed process, because the
operating system has it already: a restart continues at the last commit, without reading the
topic again. A power failure may cut off the log's tail; since the position is in that tail too, the
topic refills it, so syncing each commit would buy nothing. Leaving the log out would save about a
tenth of the write time and cost a re-read of up to one write buffer per store.

Memory is bounded by a budget shared by all stores of the process (StoreBudget), however many
tables there are. Keys in RocksDB: 0 + name for the store's own entries, 1 + key for rows.

Source: KIP-844; RocksDB wiki, pages on the write-ahead log and on memory usage.
"""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING, Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
)

from ksql.base.ids import Offset
from ksql.stores import values
from ksql.stores.base import (
    Change,
    NewerStore,
    Store,
    StoreBusy,
    StoreClosed,
    Stored,
    StoreDamaged,
    StoredRow,
    check_forward,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ksql.base.errors import ServerError

STORE_FORMAT = 1

_FORMAT_KEY = b"\x00format"
_POSITION_KEY = b"\x00position"
_CLOCK_KEY = b"\x00clock"
_ROW = b"\x01"
_AFTER_ROWS = b"\x02"
_NUMBER = struct.Struct(">q")

_MIB = 1024 * 1024


class StoreBudget:
    """The memory that all stores of a process share.

    Args:
        cache_bytes: blocks, indexes and filters that were read.
        buffer_bytes: rows that are written and not yet flushed; above it the largest is flushed.
        store_buffer_bytes: the same bound for a single store.
    """

    def __init__(
        self,
        cache_bytes: int = 64 * _MIB,
        buffer_bytes: int = 64 * _MIB,
        store_buffer_bytes: int = 4 * _MIB,
    ) -> None:
        self._cache = Cache(cache_bytes)
        self._buffers = WriteBufferManager(buffer_bytes, False)
        self._store_buffer_bytes = store_buffer_bytes

    def options(self) -> Options:
        """RocksDB's options for one store: small, quiet when idle, within the budget."""
        blocks = BlockBasedOptions()
        blocks.set_block_cache(self._cache)
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
        blocks.set_bloom_filter(10, False)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self._buffers)
        options.set_write_buffer_size(self._store_buffer_bytes)
        options.set_arena_block_size(64 * 1024)
        options.set_max_write_buffer_number(2)
        options.set_max_total_wal_size(4 * self._store_buffer_bytes)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_max_open_files(64)
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(_MIB)
        options.set_stats_dump_period_sec(0)
        options.set_stats_persist_period_sec(0)
        return options


class DiskStore(Store):
    """One RocksDB; ``open`` it, and ``close`` it before its directory is touched.

    An iterator that is still held keeps the files open after ``close``.
    """

    def __init__(self, db: Rdict, path: Path) -> None:
        self._db: Any = db
        self._path = path
        self._closed = False
        position, clock = _number(db, _POSITION_KEY), _number(db, _CLOCK_KEY)
        self._position = None if position is None else Offset(position)
        self._clock = clock

    @classmethod
    def open(cls, path: Path, budget: StoreBudget) -> DiskStore:
        """Open the store in that directory, or make an empty one.

        Raises:
            NewerStore: a later version wrote it.
            StoreBusy: another process or another DiskStore has it open.
            StoreDamaged: the files are not a whole RocksDB.
        """
        db = _open(path, budget.options())
        try:
            _check_format(db, path)
            return cls(db, path)
        except struct.error as error:
            db.close()
            raise StoreDamaged(str(path), str(error)) from error
        except BaseException:
            db.close()
            raise

    @staticmethod
    def destroy(path: Path) -> None:
        """Delete a closed store, damaged or not; one that is not there is fine."""
        if path.exists():
            shutil.rmtree(path)

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None."""
        try:
            data = self._db.get(_ROW + key)
        except Exception as error:
            raise self._failure(error) from error
        return None if data is None else self._unpacked(data)

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Rows with ``lo <= key < hi`` in order."""
        reading = ReadOptions()
        reading.set_iterate_upper_bound(_AFTER_ROWS if hi is None else _ROW + hi)
        try:
            items = self._db.items(from_key=_ROW + (lo or b""), read_opt=reading)
        except Exception as error:
            raise self._failure(error) from error
        return _rows(items, reading, self._path)

    def position(self) -> Offset | None:
        """Return the offset of the next record to read; never ahead of what a later read shows."""
        if self._closed:
            raise StoreClosed(str(self._path))
        return self._position

    def clock(self) -> int | None:
        """Return the time that the last commit stated."""
        if self._closed:
            raise StoreClosed(str(self._path))
        return self._clock

    def commit(self, changes: Iterable[Change], position: Offset, clock: int | None = None) -> None:
        """Apply the changes and move to that position, in one write batch."""
        check_forward(self.position(), position)
        batch = WriteBatch(raw_mode=True)
        put, delete, pack = batch.put, batch.delete, values.pack
        for key, value, timestamp in changes:
            if value is None:
                delete(_ROW + key)
            else:
                put(_ROW + key, pack(value, timestamp))
        put(_POSITION_KEY, _NUMBER.pack(position))
        if clock is not None:
            put(_CLOCK_KEY, _NUMBER.pack(clock))
        self._write(batch)
        self._position = position
        self._clock = self._clock if clock is None else clock

    def clear(self) -> None:
        """Forget all rows, the position and the clock."""
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(_ROW, _AFTER_ROWS)
        batch.delete(_POSITION_KEY)
        batch.delete(_CLOCK_KEY)
        self._position = self._clock = None
        self._write(batch)

    def close(self) -> None:
        """Flush and close; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._db.close()

    def _unpacked(self, data: bytes) -> Stored:
        try:
            return values.unpack(data)
        except ValueError as error:
            raise StoreDamaged(str(self._path), str(error)) from error

    def _write(self, batch: WriteBatch) -> None:
        try:
            self._db.write(batch)
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ServerError:
        """Return our error for RocksDB's, which differ by text only."""
        if isinstance(error, DbClosedError):
            return StoreClosed(str(self._path))
        return StoreDamaged(str(self._path), str(error))


def _number(db: Rdict, key: bytes) -> int | None:
    stored = db.get(key)
    return None if stored is None else int(_NUMBER.unpack(stored)[0])


def _rows(items: Iterable[tuple[Any, Any]], _held: ReadOptions, path: Path) -> Iterator[StoredRow]:
    """Read an iterator of RocksDB, which points into the options' bounds without owning them."""
    try:
        for key, data in items:
            yield StoredRow(key[1:], *values.unpack(data))
    except ValueError as error:
        raise StoreDamaged(str(path), str(error)) from error


def _open(path: Path, options: Options) -> Rdict:
    path.mkdir(parents=True, exist_ok=True)
    try:
        return Rdict(str(path), options)
    except Exception as error:
        if "lock" in str(error).lower():
            raise StoreBusy(str(path)) from error
        raise StoreDamaged(str(path), str(error)) from error


def _check_format(db: Rdict, path: Path) -> None:
    """Write the store's format into a new store, or refuse one that is too new."""
    stored = db.get(_FORMAT_KEY)
    if stored is None:
        db.put(_FORMAT_KEY, _NUMBER.pack(STORE_FORMAT))
        return
    found = _NUMBER.unpack(stored)[0]
    if found > STORE_FORMAT:
        raise NewerStore(f"the store {path}", found, STORE_FORMAT)
