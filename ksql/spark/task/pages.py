"""Paged state: the ``Store`` that processors see, over few and larger entries of a map of bytes.

A call into Spark's state store costs far more than the bytes it moves. So the entries of many keys
lie together in a page of 4 KiB, or of 16 KiB where calls change many of its entries. A space's
pages are found by linear hashing. The number of pages grows with the content, and growing by one
page moves the entries of only one other. Small
spaces lie inline in the root, so that a small state is one entry, read and written once per batch.

Within a call, pages are read once, all that was hinted at together, and ``flush`` writes what has
changed. Every entry starts with a version byte; values are packed one by one, so that a
page is rewritten without decoding what it holds.

Source: W. Litwin, Linear hashing: a new tool for file and table addressing (1980).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

import numpy as np

from ksql.core import UNKNOWN_PAGE, ServerError
from ksql.spark.task.packing import pack, packed_each, unpack, unpack_each

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

PAGE_BYTES = 4096
DENSE_PAGE_BYTES = 16_384
_DENSE = 4
"""So many changed entries of each changed page make a call one that takes large pages."""
_WRITES_PER_SPLIT = 8
INLINE_BYTES = 1024
ROOT_BYTES = 16_384
_VERSION = b"\x01"
_ROOT = b"\x00"
_ENTRY_OVERHEAD = 4
_SCAN_PAGES = 64
_MISSING: Any = object()
_MANY_KEYS = 64
_MIX = 0x9E3779B1
"""Keys of one bucket agree in the low bits of their CRC: multiplied, the high bits are spread."""

Page = dict[bytes, bytes]


class Backend(Protocol):
    """A map of bytes to bytes that is asked for many entries at once."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of the keys, in their order."""

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Set the values."""

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Forget the keys."""


class DamagedPage(ServerError):
    """State that is not what this software writes."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the query's state is damaged",
            detail=reason,
            hint="Bring the query's checkpoint back from a copy, or start over with "
            "ksql.state.anew.",
        )


def pages_of(keys: Collection[bytes], pages: int) -> dict[bytes, int]:
    """Return the page of each key in a space of that many pages."""
    if pages == 1:
        return dict.fromkeys(keys, 0)
    mask = (1 << (pages - 1).bit_length()) - 1
    half = mask >> 1
    if len(keys) < _MANY_KEYS:
        return {
            key: page if (page := (crc32(key) * _MIX >> 15) & mask) < pages else page & half
            for key in keys
        }
    sums = np.fromiter(map(crc32, keys), np.uint64, len(keys))
    slots = (sums * np.uint64(_MIX) >> np.uint64(15)) & np.uint64(mask)
    numbers = np.where(slots < np.uint64(pages), slots, slots & np.uint64(half))
    return dict(zip(keys, numbers.tolist(), strict=True))


class _Space:
    """One space: how it is spread, and what of it this call has seen and changed."""

    __slots__ = ("dirty", "entries", "page_count", "pages", "places", "size", "values")

    def __init__(self, page_count: int = 0, entries: int = 0, size: int = 0) -> None:
        self.page_count = page_count  # 0: inline in the root, as page 0
        self.entries = entries
        self.size = size
        self.pages: dict[int, Page] = {}
        self.places: dict[bytes, int] = {}
        self.values: dict[bytes, Any] = {}
        self.dirty: dict[bytes, None] = {}  # in the order of the first changes

    @property
    def spread(self) -> int:
        """How many pages keys are spread over."""
        return self.page_count or 1

    def placed(self, keys: dict[bytes, None]) -> dict[bytes, int]:
        """Return the pages of keys; those of loaded ones are known until there are more pages."""
        places = self.places
        if list(places) == list(keys):  # usually the same objects: a glance at each
            return places
        if not places.keys() >= keys.keys():
            places.update(pages_of([key for key in keys if key not in places], self.spread))
        if len(places) == len(keys):
            return places
        return {key: places[key] for key in keys}

    def wanted_pages(self, changed_keys: int, changed_pages: int) -> int:
        """Return how many pages the content deserves; a space never shrinks but to nothing.

        A page of which a call changes many entries may be larger: it costs a round trip, however
        much it holds. Calls that change few entries of many pages make the pages smaller step by
        step, one for each eight that they write anyway.
        """
        if self.entries == 0:
            return 0
        dense = changed_keys >= _DENSE * changed_pages
        fitting = -(-self.size // (DENSE_PAGE_BYTES if dense else PAGE_BYTES))
        if self.page_count and not dense:
            fitting = min(fitting, self.page_count + changed_pages // _WRITES_PER_SPLIT)
        return max(self.page_count, min(fitting, self.entries))


class PagedStore:
    """The state of one stage in one bucket, for one call. Nothing counts before ``flush``."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        (root,) = backend.get_many([_ROOT])
        self._spaces: dict[bytes, _Space] = {}
        self._hints: list[tuple[bytes, list[bytes] | None]] = []
        self._inline = 0
        self._removed: list[bytes] = []
        self._root_changed = False
        if root is not None:
            try:
                self._read_root(_content(root))
            except (TypeError, ValueError) as error:
                raise DamagedPage(f"its root cannot be read: {error}") from error

    def load(self, space: bytes, keys: Collection[bytes]) -> None:
        at = self._spaces.get(space)
        if at is not None:
            values = at.values
            some = [key for key in keys if key not in values] if values else list(keys)
            self._hints.append((space, some))

    def load_space(self, space: bytes) -> None:
        """Fetch the whole space then, unless that is many pages."""
        at = self._spaces.get(space)
        if at is not None and at.spread <= _SCAN_PAGES:
            self._hints.append((space, None))

    def get(self, space: bytes, key: bytes) -> Any:
        at = self._spaces.get(space)
        if at is None:
            return None
        value = at.values.get(key, _MISSING)
        if value is _MISSING:
            self.load(space, (key,))
            self._follow()
            value = at.values[key]
        return value

    def get_all(self, space: bytes, keys: Collection[bytes]) -> list[Any]:
        at = self._spaces.get(space)
        if at is not None and not at.values and not self._hints:
            places = pages_of(keys, at.spread)
            if len(places) == len(keys):
                at.places.update(places)
                self._fetch([(space, at, set(places.values()))])
                return _looked_up(at, places)
        if all(hinted != space for hinted, _ in self._hints):
            self.load(space, keys)
        self._follow()
        if at is None:
            return [None] * len(keys)
        if not all(map(at.values.__contains__, keys)):  # the hints had other keys
            self.load(space, keys)
            self._follow()
        return [[*v] if v.__class__ is list else v for v in map(at.values.__getitem__, keys)]

    def put_all(self, space: bytes, values: Mapping[bytes, Any]) -> None:
        if values:
            at = self._space(space)
            at.values.update(values)
            dirty = dict.fromkeys(values)
            if at.dirty:
                at.dirty.update(dirty)
            else:
                at.dirty = dirty

    def put(self, space: bytes, key: bytes, value: Any) -> None:
        at = self._space(space)
        at.values[key] = value
        at.dirty[key] = None

    def _space(self, space: bytes) -> _Space:
        at = self._spaces.get(space)
        if at is None:
            at = self._spaces[space] = _Space()
        return at

    def delete(self, space: bytes, key: bytes) -> None:
        if space in self._spaces:
            self.put(space, key, None)

    def scan(self, space: bytes) -> Iterator[tuple[bytes, Any]]:
        """Yield all entries as they are now; what changes meanwhile may be seen or not."""
        at = self._spaces.get(space)
        if at is None:
            return
        if len(at.pages) < at.spread:
            self._follow()
        changed = {key: at.values[key] for key in at.dirty}
        for page in self._all_pages(space, at):
            keys = [key for key in page if key not in changed]
            yield from zip(keys, _unpacked([page[key] for key in keys]), strict=True)
        yield from ((key, value) for key, value in changed.items() if value is not None)

    def drop(self, space: bytes) -> None:
        at = self._spaces.pop(space, None)
        if at is not None:
            self._removed += (_page_key(space, page) for page in range(at.page_count))
            self._root_changed = True

    def held(self) -> tuple[int, int]:
        """Return how many entries the state has as of the last flush, and their bytes."""
        spaces = self._spaces.values()
        return sum(at.entries for at in spaces), sum(at.size for at in spaces)

    def flush(self) -> None:
        """Write what has changed."""
        puts: list[tuple[bytes, bytes]] = []
        changed = [(space, at, at.placed(at.dirty)) for space, at in self._spaces.items()]
        self._fetch((space, at, set(places.values())) for space, at, places in changed)
        self._inline = sum(at.size for _, at, _ in changed if at.page_count == 0)
        for space, at, places in changed:
            if places:
                self._settle(space, at, places, puts)
        if self._root_changed:
            root = self._pack_root()
            if root is None:
                self._removed.append(_ROOT)
            else:
                puts.append((_ROOT, root))
        # pages of a space that was dropped and recreated are written again: remove first
        if self._removed:
            self._backend.remove_many(self._removed)
        if puts:
            self._backend.put_many(puts)
        self._removed = []
        self._root_changed = False

    # --- reading -----------------------------------------------------------------------------

    def _follow(self) -> None:
        """Fetch what was hinted at, and decode it."""
        hints, self._hints = self._hints, []
        lookups: list[tuple[_Space, dict[bytes, int]]] = []
        pages: list[tuple[bytes, _Space, Iterable[int]]] = []
        for space, keys in hints:
            at = self._spaces.get(space)
            if at is None:  # dropped since
                continue
            if keys is None:
                pages.append((space, at, range(at.spread)))
                continue
            values = at.values
            unknown = [key for key in keys if key not in values] if values else keys
            places = pages_of(unknown, at.spread)
            at.places.update(places)
            pages.append((space, at, set(places.values())))
            lookups.append((at, places))
        self._fetch(pages)
        for at, places in lookups:
            at.values.update(zip(places, _looked_up(at, places), strict=True))

    def _fetch(self, requests: Iterable[tuple[bytes, _Space, Iterable[int]]]) -> None:
        """Fetch pages of spaces, all at once."""
        missing: dict[bytes, tuple[_Space, int]] = {}
        for space, at, pages in requests:
            for page in pages:
                if page in at.pages:
                    continue
                if at.page_count == 0:  # a new space, or an inline one that has page 0 already
                    at.pages[page] = {}
                else:
                    missing[_page_key(space, page)] = at, page
        if not missing:
            return
        blobs = self._backend.get_many(list(missing))
        for (at, page), data in zip(missing.values(), blobs, strict=True):
            at.pages[page] = {} if data is None else _content(data)

    def _all_pages(self, space: bytes, at: _Space) -> Iterator[Page]:
        pages = iter(range(at.spread))
        while some := list(islice(pages, _SCAN_PAGES)):
            held = {page: at.pages[page] for page in some if page in at.pages}
            missing = [page for page in some if page not in held]
            if at.page_count and missing:
                blobs = self._backend.get_many([_page_key(space, page) for page in missing])
                held.update(
                    (page, _content(data))
                    for page, data in zip(missing, blobs, strict=True)
                    if data is not None
                )
            yield from held.values()

    # --- writing -----------------------------------------------------------------------------

    def _settle(
        self, space: bytes, at: _Space, places: dict[bytes, int], puts: list[tuple[bytes, bytes]]
    ) -> None:
        """Bring a space's changed values into its pages, and its pages to their number."""
        before = at.page_count
        if before == 0:
            self._inline -= at.size
        changed = self._apply(at, places)
        page_count = at.wanted_pages(len(places), len(changed))
        room = ROOT_BYTES - self._inline
        if before == 0 and at.size <= min(INLINE_BYTES, room):
            self._inline += at.size
            self._root_changed = True
            if at.entries == 0:
                del self._spaces[space]
            return
        if page_count == 0:
            self.drop(space)
            return
        if page_count != before:
            changed |= self._grow(space, at, max(page_count, 1))
            self._root_changed = True
        for page in changed:
            if content := at.pages[page]:
                puts.append((_page_key(space, page), _VERSION + pack(content)))
            elif page < before:
                self._removed.append(_page_key(space, page))

    def _apply(self, at: _Space, places: dict[bytes, int]) -> set[int]:
        """Put the changed values into their pages; returns the pages."""
        entries, size = at.entries, at.size
        pages, values = at.pages, list(at.values.values())
        if list(at.values) != list(places):
            values = list(map(at.values.__getitem__, places))
        for (key, index), value, data in zip(
            places.items(), values, packed_each(values), strict=True
        ):
            page = pages[index]
            old = page.get(key)
            if value is not None:
                page[key] = data
                if old is not None:
                    size += len(data) - len(old)
                    continue
                entries += 1
                size += len(key) + len(data) + _ENTRY_OVERHEAD
            elif old is not None:
                del page[key]
                entries -= 1
                size -= len(key) + len(old) + _ENTRY_OVERHEAD
        if (entries, size) != (at.entries, at.size):
            at.entries, at.size = entries, size
            self._root_changed = True
        at.dirty = {}
        return set(places.values())

    def _grow(self, space: bytes, at: _Space, page_count: int) -> set[int]:
        """Spread the entries over more pages; returns the pages that have changed."""
        before = at.spread
        sources = {_parent(page, before) for page in range(before, page_count)}
        self._fetch([(space, at, sources)])
        moving = [item for page in sources for item in at.pages[page].items()]
        grown: dict[int, Page] = {page: {} for page in (*sources, *range(before, page_count))}
        places = pages_of([key for key, _ in moving], page_count)
        for key, data in moving:
            grown[places[key]][key] = data
        at.pages.update(grown)
        changed = sources | set(range(before, page_count))
        if at.page_count == 0:  # leaves the root
            changed.add(0)
        at.page_count = page_count
        at.places = {}
        return changed

    # --- the root ----------------------------------------------------------------------------

    def _read_root(self, content: list[list[Any]]) -> None:
        for space, page_count, entries, size, inline in content:
            at = self._spaces[space] = _Space(page_count, entries, size)
            if page_count == 0:
                at.pages[0] = inline

    def _pack_root(self) -> bytes | None:
        content = [
            [
                space,
                at.page_count,
                at.entries,
                at.size,
                at.pages.get(0) if at.page_count == 0 else None,
            ]
            for space, at in self._spaces.items()
            if at.entries
        ]
        return _VERSION + pack(content) if content else None


def _page_key(space: bytes, page: int) -> bytes:
    return len(space).to_bytes(1, "big") + space + page.to_bytes(4, "big")


def _content(data: bytes) -> Any:
    if data[:1] != _VERSION:
        raise UNKNOWN_PAGE(version=data[0]) if data else DamagedPage("an entry is empty")
    try:
        return unpack(memoryview(data)[1:])
    except ValueError as error:
        raise DamagedPage(f"a page cannot be read: {error}") from error


def _looked_up(at: _Space, places: Mapping[bytes, int]) -> list[Any]:
    """Return the values of keys in loaded pages."""
    held = at.pages
    packed = [held[page].get(key) for key, page in places.items()]
    there = [data for data in packed if data is not None]
    values = _unpacked(there)
    if len(there) == len(packed):
        return values
    left = iter(values)
    return [None if data is None else next(left) for data in packed]


def _unpacked(values: Sequence[bytes]) -> list[Any]:
    try:
        return unpack_each(values)
    except ValueError as error:
        raise DamagedPage(f"a value cannot be read: {error}") from error


def _parent(page: int, before: int) -> int:
    """Return where the entries of a page lay when there were fewer pages."""
    while page >= before:
        page &= (1 << (page.bit_length() - 1)) - 1
    return page
