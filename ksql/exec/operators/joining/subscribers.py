"""Sets of primary keys that refer to a key, in the order of their bytes, stored in small chunks.

A set of 100,000 is some hundred chunks and a directory of their first members. A member that joins
or leaves changes one chunk, and the directory only if a chunk comes or goes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ksql.exec.operators.base import Store

CHUNK = 256
"""A chunk of more members is cut in two."""

_DIRECTORY = b"d"
_CHUNKS = b"c"
_NUMBER_BYTES = 4

Member = list[bytes]
"""The bytes that members are ordered by, and the packed primary key."""
Directory = list[list[bytes]]
"""Per chunk, in order: what its first member is (of the first chunk: nothing), its number."""


class Subscribers:
    """The sets of the keys that one call is about.

    ``bytes_of`` gives the bytes by which a packed primary key is ordered.
    """

    def __init__(self, store: Store, bytes_of: Callable[[bytes], bytes]) -> None:
        self._store = store
        self._bytes_of = bytes_of

    def load(self, every: Iterable[bytes], single: Iterable[tuple[bytes, bytes]]) -> None:
        """Fetch what will be needed together.

        All members of the keys ``every``, and the chunks of ``single`` pairs of key and member.
        """
        every, single = set(every), list(single)
        self._store.load(_DIRECTORY, every | {key for key, _ in single})
        chunks = {_chunk(key, entry) for key in every for entry in self._directory(key)}
        for key, member in single:
            directory = self._directory(key)
            if directory:
                chunks.add(_chunk(key, directory[_place(directory, self._member(member))]))
        self._store.load(_CHUNKS, chunks)

    def of(self, key: bytes) -> Iterator[bytes]:
        """Return the members of a key's set in their order."""
        for entry in self._directory(key):
            for _, member in self._store.get(_CHUNKS, _chunk(key, entry)):
                yield member

    def add(self, key: bytes, member: bytes) -> None:
        """Put one that is not there yet into the set."""
        directory, new = self._directory(key), self._member(member)
        if not directory:
            directory = [[b"", b"", _number(0)]]
            self._store.put(_DIRECTORY, key, directory)
        index = _place(directory, new)
        name = _chunk(key, directory[index])
        chunk: list[Member] = self._store.get(_CHUNKS, name) or []
        chunk.insert(bisect_left(chunk, new), new)
        if len(chunk) > CHUNK:
            half = len(chunk) // 2
            entry = [*chunk[half], _free(directory)]
            self._store.put(_CHUNKS, _chunk(key, entry), chunk[half:])
            del chunk[half:]
            directory.insert(index + 1, entry)
            self._store.put(_DIRECTORY, key, directory)
        self._store.put(_CHUNKS, name, chunk)

    def remove(self, key: bytes, member: bytes) -> None:
        """Take one that is there out of the set; a set or chunk without members goes."""
        directory, gone = self._directory(key), self._member(member)
        index = _place(directory, gone)
        name = _chunk(key, directory[index])
        chunk: list[Member] = self._store.get(_CHUNKS, name)
        del chunk[bisect_left(chunk, gone)]
        if chunk:
            self._store.put(_CHUNKS, name, chunk)
            return
        self._store.delete(_CHUNKS, name)
        del directory[index]
        if directory:
            directory[0][:2] = b"", b""
            self._store.put(_DIRECTORY, key, directory)
        else:
            self._store.delete(_DIRECTORY, key)

    def _member(self, packed: bytes) -> Member:
        return [self._bytes_of(packed), packed]

    def _directory(self, key: bytes) -> Directory:
        return self._store.get(_DIRECTORY, key) or []


def _chunk(key: bytes, entry: list[bytes]) -> bytes:
    return key + entry[-1]


def _place(directory: Directory, member: Member) -> int:
    """Return the chunk where a member belongs."""
    return bisect_right(directory, member, key=lambda entry: entry[:2]) - 1


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _free(directory: Directory) -> bytes:
    return _number(1 + max(int.from_bytes(entry[-1], "big") for entry in directory))
