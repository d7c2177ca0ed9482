from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ksql.core.error_table import UNKNOWN_PAGE
from ksql.spark.task import pages
from ksql.spark.task.pages import PagedStore, pages_of
from tests.examples import examples


class DictBackend:
    """A map of bytes that counts what is asked of it."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.reads = 0
        self.writes = 0

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        assert len(set(keys)) == len(keys)
        self.reads += len(keys)
        return [self.data.get(key) for key in keys]

    def put_many(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        self.writes += len(entries)
        self.data.update(entries)

    def remove_many(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self.data.pop(key, None)


SPACES = st.sampled_from([b"a", b"b", b"window\x00\x07"])
KEYS = st.integers(0, 400).map(lambda n: b"key%d" % n)
VALUES = st.integers() | st.lists(st.text("xyz", max_size=40), max_size=6) | st.binary(max_size=900)


@settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
class PagesAreADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.backend = DictBackend()
        self.store = PagedStore(self.backend)
        self.model: dict[bytes, dict[bytes, Any]] = {}

    @rule(space=SPACES, key=KEYS, value=VALUES)
    def put(self, space: bytes, key: bytes, value: Any) -> None:
        self.store.put(space, key, value)
        self.model.setdefault(space, {})[key] = value

    @rule(space=SPACES, start=st.integers(0, 300), count=st.integers(1, 300), value=VALUES)
    def put_many(self, space: bytes, start: int, count: int, value: Any) -> None:
        for n in range(start, start + count):
            self.put(space, b"key%d" % n, value)

    @rule(space=SPACES, values=st.dictionaries(KEYS, VALUES, max_size=20))
    def put_all(self, space: bytes, values: dict[bytes, Any]) -> None:
        self.store.put_all(space, values)
        self.model.setdefault(space, {}).update(values)

    @rule(space=SPACES, keys=st.lists(KEYS, unique=True, max_size=20))
    def get_all(self, space: bytes, keys: list[bytes]) -> None:
        held = self.model.get(space, {})
        assert self.store.get_all(space, keys) == [held.get(key) for key in keys]

    @rule(space=SPACES, keys=st.lists(KEYS, unique=True, max_size=20))
    def load(self, space: bytes, keys: list[bytes]) -> None:
        self.store.load(space, keys)

    @rule(space=SPACES, key=KEYS)
    def delete(self, space: bytes, key: bytes) -> None:
        self.store.delete(space, key)
        self.model.get(space, {}).pop(key, None)

    @rule(space=SPACES)
    def drop(self, space: bytes) -> None:
        self.store.drop(space)
        self.model.pop(space, None)

    @rule(space=SPACES, keys=st.sets(KEYS, max_size=20))
    def load_and_get(self, space: bytes, keys: set[bytes]) -> None:
        self.store.load(space, keys)
        for key in keys:
            assert self.store.get(space, key) == self.model.get(space, {}).get(key)

    @rule(space=SPACES)
    def scan(self, space: bytes) -> None:
        assert dict(self.store.scan(space)) == self.model.get(space, {})

    @rule(reopen=st.booleans())
    def flush(self, reopen: bool) -> None:
        self.store.flush()
        if reopen:
            self.store = PagedStore(self.backend)

    @invariant()
    def empty_state_takes_no_room(self) -> None:
        if not any(self.model.values()):
            self.store.flush()
            assert not self.backend.data

    def teardown(self) -> None:
        self.store.flush()
        store = PagedStore(self.backend)
        for space in (b"a", b"b", b"window\x00\x07"):
            assert dict(store.scan(space)) == self.model.get(space, {})


TestPagesAreADict = PagesAreADict.TestCase


def filled(count: int, backend: DictBackend | None = None) -> DictBackend:
    backend = backend or DictBackend()
    store = PagedStore(backend)
    for n in range(count):
        store.put(b"s", b"key%d" % n, [n, n * 2])
    store.flush()
    return backend


def test_small_state_is_one_entry() -> None:
    assert len(filled(20).data) == 1


@pytest.mark.slow
def test_pages_stay_near_their_size() -> None:
    sizes = sorted(len(page) for page in filled(50_000).data.values())
    assert sizes[len(sizes) // 2] < 2 * pages.DENSE_PAGE_BYTES
    assert sizes[-1] < 6 * pages.DENSE_PAGE_BYTES


def test_growth_by_and_by_equals_growth_at_once() -> None:
    backend = DictBackend()
    store = PagedStore(backend)
    for n in range(5_000):
        store.put(b"s", b"key%d" % n, [n, n * 2])
        if n % 97 == 0:
            store.flush()
            store = PagedStore(backend)
    store.flush()
    assert dict(PagedStore(backend).scan(b"s")) == dict(PagedStore(filled(5_000)).scan(b"s"))


def test_a_batch_touches_only_its_pages() -> None:
    backend = filled(50_000)
    backend.reads = backend.writes = 0
    store = PagedStore(backend)
    store.load(b"s", [b"key1", b"key2"])
    assert store.get(b"s", b"key1") == [1, 2]
    assert backend.reads <= 3
    store.put(b"s", b"key1", [1, 3])
    store.flush()
    assert backend.writes == 1


def test_pages_of_which_little_changes_become_smaller_step_by_step() -> None:
    backend = filled(20_000)
    large, writes = len(backend.data), []
    for number in range(40):
        backend.reads = backend.writes = 0
        store = PagedStore(backend)
        for n in range(number, 20_000, 2_000):
            store.put(b"s", b"key%d" % n, [n, n * 2])
        store.flush()
        writes.append(backend.writes)
        assert backend.reads <= 1 + 2 * 10
    assert max(writes) <= 1 + 3 * 10
    assert 2 * large < len(backend.data)
    for number in range(200):
        store = PagedStore(backend)
        for n in range(number, 20_000, 1_000):
            store.put(b"s", b"key%d" % n, [n, n * 2])
        store.flush()
    store = PagedStore(backend)
    assert store.held()[1] / len(backend.data) < 1.1 * pages.PAGE_BYTES
    assert dict(store.scan(b"s")) == {b"key%d" % n: [n, n * 2] for n in range(20_000)}


def test_a_call_that_changes_most_of_a_page_takes_large_ones() -> None:
    backend = filled(20_000)
    assert PagedStore(backend).held()[1] / len(backend.data) > 0.9 * pages.DENSE_PAGE_BYTES


def test_keys_that_were_hinted_at_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, looked_up, lookups = [b"key%d" % n for n in range(100)], pages._looked_up, list[int]()

    def counted(space: Any, places: dict[bytes, int]) -> list[Any]:
        lookups.append(len(places))
        return looked_up(space, places)

    monkeypatch.setattr(pages, "_looked_up", counted)
    store = PagedStore(filled(100))
    store.load(b"s", keys)
    assert None not in store.get_all(b"s", keys)
    assert lookups == [100]


def test_values_changed_in_place_count_only_once_put() -> None:
    backend = filled(10)
    store = PagedStore(backend)
    store.get(b"s", b"key1").append("lost")
    store.put(b"s", b"key2", "kept")
    store.flush()
    again = PagedStore(backend)
    assert again.get(b"s", b"key1") == [1, 2]
    assert again.get(b"s", b"key2") == "kept"


def test_nothing_changed_writes_nothing() -> None:
    backend = filled(1_000)
    backend.writes = 0
    store = PagedStore(backend)
    store.load(b"s", [b"key1"])
    store.flush()
    assert backend.writes == 0


def test_a_dropped_space_leaves_nothing() -> None:
    backend = filled(10_000)
    store = PagedStore(backend)
    store.drop(b"s")
    store.flush()
    assert backend.data == {}


def test_a_newer_format_is_refused() -> None:
    backend = filled(3)
    backend.data = {key: b"\x09" + value[1:] for key, value in backend.data.items()}
    with pytest.raises(UNKNOWN_PAGE.base, match=UNKNOWN_PAGE.pattern):
        PagedStore(backend)


@given(st.binary(max_size=12), st.integers(1, 300))
def test_growing_moves_keys_only_to_new_pages(key: bytes, spread: int) -> None:
    before, after = (pages_of([key], count)[key] for count in (spread, spread + 1))
    assert after in (before, spread)


@pytest.mark.parametrize("spread", [1, 2, 3, 48, 64, 65, 1_700, 70_000])
def test_many_keys_at_once_have_the_pages_of_each(spread: int) -> None:
    keys = [b"%d" % n for n in range(1_000)]
    assert pages_of(keys, spread) == {key: pages_of([key], spread)[key] for key in keys}


def test_keys_of_one_bucket_spread_evenly() -> None:
    keys = [b"%d" % n for n in range(200_000)]
    counts = [0] * 48
    for key in (key for key in keys if crc32(key) % 16 == 3):
        counts[pages_of([key], 48)[key]] += 1
    # 48 pages of 64 slots: pages 0-15 have split, the others hold two slots
    assert max(counts) < 2.5 * min(counts)
