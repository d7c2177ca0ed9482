"""The state of a version that ran so far, as the tasks of its candidate read it.

It lies in a directory with one folder of Parquet files per bucket: the entries of the state's map.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow.parquet as pq

from ksql.spark.task.pages import PagedStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL: Final = "B"
"""The column by which the files are divided: a bucket's label."""
KEY: Final = "K"
VALUE: Final = "V"


class KeptState(NamedTuple):
    """Where the state lies, and from which number on slots are not taken from it.

    ``batch`` is the number of the batch in which it is taken over.
    """

    directory: str
    first_added: int
    batch: int

    def store(self, label: int) -> PagedStore:
        """Return a bucket's state; empty if the version has none there.

        Raises: OSError, DamagedPage.
        """
        return PagedStore(_Entries(_entries(Path(self.directory) / f"{LABEL}={label}")))


class _Entries:
    """A map that is only read."""

    def __init__(self, entries: Mapping[bytes, bytes]) -> None:
        self._entries = entries

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._entries.get(key) for key in keys]

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse it."""
        raise TypeError("kept state is not written")

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Refuse it."""
        raise TypeError("kept state is not written")


def _entries(folder: Path) -> dict[bytes, bytes]:
    entries: dict[bytes, bytes] = {}
    for file in sorted(folder.glob("*.parquet")):
        table = pq.ParquetFile(file).read()
        entries.update(zip(table[KEY].to_pylist(), table[VALUE].to_pylist(), strict=True))
    return entries
