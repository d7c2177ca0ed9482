"""One RocksDB with the rows of a partition and some numbers of the store's own.

Rows and numbers are entries of one column family, and every write is one batch. So the log and each
flushed file hold what was written together, or nothing of it. Keys in RocksDB: 0 + name for
the store's own entries, 1 + key for rows.

A write goes to the write-ahead log or not. The log is not synced: it outlives a killed process,
because the operating system has it already. A power failure may cut off its tail. Since the
position is in that tail too, the topic refills it, so that syncing would buy nothing.

Memory is bounded by a budget shared by all stores of the process (StoreBudget).

Source: RocksDB wiki, pages on the write-ahead log and on memory usage.
"""

from __future__ import annotations

import shutil
import struct
import time
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
    WriteOptions,
)

from ksql.core import STORE_BUSY, Offset
from ksql.views.stores import formats
from ksql.views.stores.base import (
    Change,
    NewerStore,
    OlderStore,
    Store,
    StoreClosed,
    Stored,
    StoreDamaged,
    StoredRow,
    StoreFailed,
    StoreSize,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ksql.core import ServerError

_FORMAT = "format"
_ROWS = "rocksdb.estimate-num-keys"
_SIZES = ("rocksdb.total-sst-files-size", "rocksdb.cur-size-all-mem-tables")
_ROW = b"\x01"
_AFTER_ROWS = b"\x02"
_NUMBER = struct.Struct(">q")
_MIB = 1024 * 1024

_IN_USE = "Already borrowed"  # by another thread, which does without the interpreter
_CLOSING = "Already mutably borrowed"
_PAUSE_S = 0.001

# RocksDB's errors differ by their texts only
_DAMAGE = ("Corruption", "No such file or directory")
_FULL = ("No space left on device", "Disk quota exceeded")


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
        store_buffer_bytes: int = 8 * _MIB,
    ) -> None:
        self._cache = Cache(cache_bytes)
        self._buffers = WriteBufferManager(buffer_bytes, False)
        self._store_buffer_bytes = store_buffer_bytes

    def options(self) -> Options:
        """Return RocksDB's options for one store: small, quiet when idle, within the budget."""
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


class Rocks:
    """An open RocksDB; an iterator that is still held keeps its files open after ``close``.

    ``logged``: whether writes go to the write-ahead log, unless they state it.
    ``damage`` is the reason of the first StoreDamaged.
    """

    def __init__(self, db: Rdict, path: Path, *, logged: bool) -> None:
        self._db: Any = db
        self._path = path
        self._closed = False
        self._logged = logged
        self.format = formats.KNOWN.rows[formats.KNOWN.newest]
        self.damage = ""

    @classmethod
    def open(cls, path: Path, budget: StoreBudget, *, logged: bool, older: bool = False) -> Rocks:
        """Open the database in that directory, or make an empty one.

        ``older``: one of an earlier format is read and written in that format.

        Raises:
            NewerStore: a later version wrote it.
            OlderStore: an earlier version wrote it, and ``older`` is not asked for.
            STORE_BUSY: another process or another Rocks has it open.
            StoreDamaged: the files are not a whole RocksDB.
            StoreFailed: the system does not let it be opened.
        """
        rocks = cls(_open(path, budget.options()), path, logged=logged)
        try:
            rocks.check_format(older=older)
        except BaseException:
            rocks.close()
            raise
        return rocks

    def check_format(self, *, older: bool = False) -> None:
        """Write the newest format into a new store; refuse a newer one, and an older if so asked.

        A store that has entries and no format was written before stores had one: format 0.
        """
        known = formats.KNOWN
        number, newest = self.number(_FORMAT), known.newest
        if number is None:
            if self._is_empty():
                self.write((), {_FORMAT: newest}, logged=True)
                return
            number = 0
        if number > newest:
            raise NewerStore(f"the store {self._path}", number, newest)
        if number not in known.rows:
            raise StoreDamaged(str(self._path), f"its format is {number}")
        if number < newest and not older:
            raise OlderStore(str(self._path), number, newest)
        self.format = known.rows[number]

    def _is_empty(self) -> bool:
        try:
            rows = self._db.iter(ReadOptions())
            rows.seek_to_first()
            there = rows.valid()
            rows.status()
        except Exception as error:
            raise self._failure(error) from error
        return not there

    def get(self, key: bytes) -> Stored | None:
        """Return the row of that key, or None; other threads run while the disk is read."""
        if self._closed:
            raise StoreClosed(str(self._path))
        try:
            (data,) = self._db.get([_ROW + key])  # without the list they would wait
            return None if data is None else self.format.unpack(data)
        except Exception as error:
            raise self._failure(error) from error

    def range(self, lo: bytes | None = None, hi: bytes | None = None) -> Iterator[StoredRow]:
        """Return rows with ``lo <= key < hi`` in order."""
        reading = ReadOptions()
        reading.set_iterate_upper_bound(_AFTER_ROWS if hi is None else _ROW + hi)
        try:
            rows = self._db.iter(reading)
            rows.seek(_ROW + (lo or b""))
        except Exception as error:
            raise self._failure(error) from error
        return self._rows(rows, reading)

    def number(self, name: str) -> int | None:
        """Return one of the store's own numbers."""
        try:
            stored = self._db.get(_name(name))
            return None if stored is None else int(_NUMBER.unpack(stored)[0])
        except Exception as error:
            raise self._failure(error) from error

    def write(
        self,
        changes: Iterable[Change],
        numbers: Mapping[str, int | None],
        *,
        logged: bool | None = None,
    ) -> None:
        """Write changes and numbers, in one batch; a number that is None is deleted."""
        batch = WriteBatch(raw_mode=True)
        put, delete, pack = batch.put, batch.delete, self.format.pack
        for key, value, timestamp in changes:
            if value is None:
                delete(_ROW + key)
            else:
                put(_ROW + key, pack(value, timestamp))
        _add(batch, numbers)
        self.apply(batch, self._logged if logged is None else logged)

    def raw(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys from ``start`` on, in order, with their values as they lie on disk."""
        reading: Any = ReadOptions()  # whose stub lacks the argument
        reading.set_iterate_upper_bound(_AFTER_ROWS)
        reading.fill_cache(False)
        try:
            rows = self._db.iter(reading)
            rows.seek(_ROW + start)
            while rows.valid():
                yield rows.key()[1:], rows.value()
                rows.next()
            rows.status()
        except Exception as error:
            raise self._failure(error) from error

    def write_raw(
        self,
        rows: Iterable[tuple[bytes, bytes]],
        numbers: Mapping[str, int | None],
        marks: Mapping[str, bytes],
    ) -> None:
        """Write values in their form on disk, numbers and marks, in one batch."""
        batch = WriteBatch(raw_mode=True)
        for key, data in rows:
            batch.put(_ROW + key, data)
        _add(batch, numbers)
        for name, mark in marks.items():
            batch.put(_name(name), mark)
        self.apply(batch, logged=True)

    def mark(self, name: str) -> bytes | None:
        """Return one of the store's own marks, which are bytes."""
        try:
            value = self._db.get(_name(name))
        except Exception as error:
            raise self._failure(error) from error
        return None if value is None else bytes(value)

    def about_rows(self) -> int:
        """Return about how many rows there are, by RocksDB's own guess."""
        return int(self._db.property_int_value(_ROWS) or 0)

    def size_bytes(self) -> int:
        """Return how many bytes the files of rows have, and what is not written to them yet."""
        try:
            return sum(int(self._db.property_int_value(name) or 0) for name in _SIZES)
        except Exception as error:
            raise self._failure(error) from error

    def clear(self, numbers: Mapping[str, int | None]) -> None:
        """Delete all rows, and write numbers, in one batch."""
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(_ROW, _AFTER_ROWS)
        _add(batch, numbers)
        self.apply(batch, logged=True)

    def apply(self, batch: WriteBatch, logged: bool) -> None:
        """Hand a batch over to RocksDB, whole or not at all."""
        writing: Any = WriteOptions()  # whose stub has methods for properties
        writing.disable_wal = not logged
        try:
            self._db.write(batch, writing)
        except Exception as error:
            raise self._failure(error) from error

    def flush(self) -> None:
        """Write to files what lies in memory only."""
        try:
            self._db.flush()
        except Exception as error:
            raise self._failure(error) from error

    def check_open(self) -> None:
        """Refuse the use of a closed store.

        Raises: StoreClosed.
        """
        if self._closed:
            raise StoreClosed(str(self._path))

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Close, once the reads that run have ended; a second call does nothing.

        Raises: StoreDamaged, StoreFailed if what lay in memory could not be written; it is closed
            all the same.
        """
        if self._closed:
            return
        self._closed = True
        while True:
            try:
                self._db.close()
            except Exception as error:
                if str(error) != _IN_USE:
                    raise self._failure(error) from error
                time.sleep(_PAUSE_S)
            else:
                return

    def _rows(self, rows: Any, _held: ReadOptions) -> Iterator[StoredRow]:
        """Read an iterator of RocksDB, which points into the options' bounds without owning them.

        It ends at damage as at the end of the rows; its status shows which.
        """
        unpack, key, value, move = self.format.unpack, rows.key, rows.value, rows.next
        try:
            while rows.valid():
                yield StoredRow(key()[1:], *unpack(value()))
                move()
            rows.status()
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ServerError:
        """Return our error for RocksDB's, which differ by text only."""
        if isinstance(error, NewerStore):  # of a row, which does not know where it is
            where = f"the store {self._path}: {error.where}"
            return NewerStore(where, error.number, error.known)
        if isinstance(error, DbClosedError) or str(error) == _CLOSING:
            return StoreClosed(str(self._path))
        error_ = failure(error, self._path)
        if isinstance(error_, StoreDamaged):
            self.damage = str(error)
        return error_


def failure(error: Exception, path: Path) -> ServerError:
    """Return our error for one of RocksDB or of what was read from it."""
    text = str(error)
    if isinstance(error, ValueError | struct.error) or any(sign in text for sign in _DAMAGE):
        return StoreDamaged(str(path), text)
    return StoreFailed(str(path), text, full=any(sign in text for sign in _FULL))


def destroy(path: Path) -> None:
    """Delete a closed store, damaged or not; one that is not there is fine."""
    if path.exists():
        shutil.rmtree(path)


def _name(name: str) -> bytes:
    return b"\x00" + name.encode()


def _add(batch: WriteBatch, numbers: Mapping[str, int | None]) -> None:
    for name, number in numbers.items():
        if number is None:
            batch.delete(_name(name))
        else:
            batch.put(_name(name), _NUMBER.pack(number))


def _open(path: Path, options: Options) -> Rdict:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return Rdict(str(path), options)
    except Exception as error:
        if f"{path}/LOCK" in str(error):
            raise STORE_BUSY(where=str(path)) from error
        raise failure(error, path) from error


POSITION = "position"
CLOCK = "clock"
HIDDEN = "hidden"
"""The time of the earliest window that a retention has hidden; earlier versions have no such."""
IN_USE = "in use"
"""A number of the store while its rows may be ahead of its position, or behind."""
PARTIAL = "partial"
"""A number of the store while its position lies inside a transaction of its topic."""
NUMBERS = (POSITION, CLOCK, HIDDEN, IN_USE, PARTIAL)


def numbers_of(offset: Offset, clock: int | None, hidden_from: int | None) -> dict[str, int | None]:
    """Return the numbers that a commit writes; what is None stays as it was."""
    stated: dict[str, int | None] = {POSITION: offset, CLOCK: clock, HIDDEN: hidden_from}
    return {name: number for name, number in stated.items() if number is not None}


class RocksStore(Store):
    """A store over one RocksDB, with what its numbers state."""

    def __init__(self, rocks: Rocks) -> None:
        self._rocks = rocks
        position = rocks.number(POSITION)
        self._position = None if position is None else Offset(position)
        self._clock = rocks.number(CLOCK)
        self._hidden_from = rocks.number(HIDDEN)

    def size(self) -> StoreSize:
        """Return what its files and its tables in memory have."""
        self._rocks.check_open()
        return StoreSize(self._rocks.about_rows(), self._rocks.size_bytes())

    @property
    def damage(self) -> str:
        return self._rocks.damage

    def position(self) -> Offset | None:
        self._rocks.check_open()
        return self._position

    def clock(self) -> int | None:
        self._rocks.check_open()
        return self._clock

    def hidden_from(self) -> int | None:
        self._rocks.check_open()
        return self._hidden_from

    def clear(self) -> None:
        self._rocks.check_open()
        self._rocks.clear(dict.fromkeys(NUMBERS))
        self._position = self._clock = self._hidden_from = None

    def _moved(self, offset: Offset, clock: int | None, hidden_from: int | None) -> None:
        """Note what a commit has written."""
        self._position = offset
        self._clock = self._clock if clock is None else clock
        self._hidden_from = self._hidden_from if hidden_from is None else hidden_from
