"""The writer of stores of format 0, frozen: it uses nothing of the code that reads them today.

A store is one RocksDB: row ``1 + key`` is the payload alone, without a time; the store's own
numbers are ``0 + name``. It states no format.

``python -m tests.stored.plain_store DIRECTORY`` makes the samples of ``v0/disk``; a directory that
is there already is never written over.
"""

from __future__ import annotations

import shutil
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

_NUMBER: Final = struct.Struct(">q")

ROWS: Final = [(b"key%d" % n, b"value%d" % n) for n in range(5)]
HOUR_MS: Final = 3_600_000
WINDOWS: Final = [
    (b"key%d" % n + struct.pack(">q", hour * HOUR_MS), b"value%d" % hour)
    for n in range(2)
    for hour in range(3)
]


class PlainStore:
    """One store of format 0, open for writing; ``logged`` is that of its type."""

    def __init__(self, path: Path, *, logged: bool = True) -> None:
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = Rdict(str(path), options)
        self._logged = logged

    def write(self, rows: Iterable[tuple[bytes, bytes | None]], **numbers: int | None) -> None:
        """Write rows and numbers in one batch; None deletes. ``in_use`` is the mark "in use"."""
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(b"\x01" + key)
            else:
                batch.put(b"\x01" + key, value)
        for name, number in numbers.items():
            stored = b"\x00" + name.replace("_", " ").encode()
            if number is None:
                batch.delete(stored)
            else:
                batch.put(stored, _NUMBER.pack(number))
        writing = WriteOptions()
        writing.disable_wal = not self._logged  # type: ignore[method-assign, assignment] # a stub
        self._db.write(batch, writing)

    def flush(self) -> None:
        """Write to files what lies in memory."""
        self._db.flush()

    def close(self) -> None:
        """End all use."""
        self._db.close()


def make(place: Path) -> None:
    """Make the samples: of both types, of windows, and of a process that was killed.

    Raises: FileExistsError.
    """
    place.mkdir(parents=True)
    for name, rows, numbers in (
        ("txn_rocksdb", ROWS, {"position": 5}),
        ("rocksdb", ROWS, {"position": 5}),
        ("windows", WINDOWS, {"position": 6, "clock": 2 * HOUR_MS}),
        ("killed", ROWS, {"position": 3, "in_use": 1}),
    ):
        store = PlainStore(place / name, logged=name != "rocksdb")
        store.write(rows, **numbers)
        store.flush()
        store.close()
    for file in (*place.glob("*/LOG*"), *place.glob("*/OPTIONS*"), *place.glob("*/LOCK")):
        file.unlink()
    for logs in place.glob("*/*.log"):
        logs.unlink()


def sample(name: str, path: Path) -> Path:
    """Copy a frozen store; return where."""
    shutil.copytree(Path(__file__).parent / "v0" / "disk" / name, path)
    return path


if __name__ == "__main__":
    make(Path(sys.argv[1]))
