"""Frozen states, values, records and files of every kind are read, and written as they are."""

from __future__ import annotations

import json
import shutil

import pytest

from ksql.app.state import StateDir
from ksql.control.log.log import AppliedOffsetFile
from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.core.process import lease
from ksql.core.records import Offset
from ksql.core.types.windowed import WindowedKeys
from ksql.kafka import leadership_log
from ksql.registry import records
from ksql.spark.checkpoint import (
    checkpoint,
    checkpoint_topics,
    cut_over_mark,
    incarnations,
    plan_fingerprint,
    results_topic,
)
from ksql.spark.task import codes
from ksql.spark.task.chunk import pack_records, unpack_chunks
from ksql.spark.task.packing import pack, unpack
from ksql.spark.task.pages import PagedStore
from ksql.views import store_manager
from ksql.views.stores import formats
from ksql.views.stores.base import HiddenWindows
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import TYPES, open_store
from ksql.views.stores.txn import TxnStore
from tests.stored import make
from tests.stored.corpora import V1, V2
from tests.stored.lines import read_lines
from tests.stored.memory import BASE_MS

FILES = V1 / "files"
SERVICE = V1 / "service" / "state" / "kept_"


# --- pages and values ---------------------------------------------------------------------------


def test_pages_hold_what_they_held():
    [frozen] = read_lines(V1 / "pages.jsonl")
    assert len(frozen) > 4
    store = PagedStore(make.unhexed(frozen))
    for space, entries in make.paged_content().items():
        assert dict(store.scan(space)) == entries
        for key, value in entries.items():
            stored = store.get(space, key)
            assert (stored, type(stored)) == (value, type(value))


def test_pages_are_packed_as_they_were():
    [frozen] = read_lines(V1 / "pages.jsonl")
    for value in map(bytes.fromhex, frozen.values()):
        assert value[:1] + pack(unpack(value[1:])) == value


def test_changes_in_frozen_pages_are_read_back():
    [frozen] = read_lines(V1 / "pages.jsonl")
    backend = make.unhexed(frozen)
    store = PagedStore(backend)
    store.put(b"g", b"key 7", [1])
    store.delete(b"g", b"key 8")
    store.flush()
    pages = dict(PagedStore(backend).scan(b"g"))
    expected = make.paged_content()[b"g"] | {b"key 7": [1]}
    del expected[b"key 8"]
    assert pages == expected


@pytest.mark.parametrize("line", read_lines(V1 / "values.jsonl"), ids=str)
def test_rows_of_tables(line):
    stored = bytes.fromhex(line["stored"])
    if "value" in line:
        value = bytes.fromhex(line["value"])
        assert formats.unpack(stored) == (value, line["timestamp"])
        assert formats.pack(value, line["timestamp"]) == stored
        return
    key, start = bytes.fromhex(line["key"]), line["start"]
    size_ms = None if "end" in line else 1000
    bounds = (start, line.get("end", start + 1000))
    assert WindowedKeys(size_ms).split(stored) == (key, bounds)
    assert WindowedKeys(size_ms).join(key, bounds) == stored


def test_a_table_on_disk(tmp_path):
    [place] = (SERVICE / "stores").glob("CTAS_KEPT_COUNTS_*")
    shutil.copytree(place / "0", tmp_path / "0")
    store = TxnStore.open(tmp_path / "0", StoreBudget())
    try:
        assert store.position() == Offset(6)
        assert {row.key: json.loads(row.value) for row in store.scan()} == {
            b"ann": {"C": 3, "TOTAL": 9, "CITIES": ["c3", "c5"]},
            b"bob": {"C": 2, "TOTAL": 8, "CITIES": ["c2", "c6"]},
            b"cyd": {"C": 1, "TOTAL": 4, "CITIES": ["c4"]},
        }
        assert store.get(b"ann").timestamp == 1_700_000_240_000
    finally:
        store.close()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["rocksdb", "txn_rocksdb", "killed"])
def test_a_table_on_disk_as_each_type(name, kind, tmp_path):
    shutil.copytree(V1 / "disk" / name, tmp_path / "0")
    store = open_store(kind, tmp_path / "0", StoreBudget())
    whole = store.recover(Offset(0))
    assert whole == (name != "killed")
    assert list(store.scan()) == (make.STORED_ROWS if whole else [])
    assert (store.position(), store.clock()) == ((5, 1_004) if whole else (None, None))
    store.close()


@pytest.mark.parametrize("kind", TYPES)
def test_windows_that_a_table_on_disk_does_not_show(kind, tmp_path):
    shutil.copytree(V2 / "disk" / "hiding", tmp_path / "0")
    store = RetentionStore(open_store(kind, tmp_path / "0", StoreBudget()), make.HIDING_MS)
    _, kept = make.hiding_rows()
    assert list(store.scan()) == kept
    assert store.hidden() == HiddenWindows(5_000, 9_000_000 - make.HIDING_MS, make.HIDING_MS)
    store.close()


def test_tables_on_disk_of_before_hide_nothing(tmp_path):
    shutil.copytree(V1 / "disk" / "txn_rocksdb", tmp_path / "0")
    store = open_store("txn_rocksdb", tmp_path / "0", StoreBudget())
    assert (store.hidden_from(), store.clock()) == (None, 1_004)
    store.close()


EXCHANGED = [
    *((line, make.exchanged_records()) for line in read_lines(V1 / "exchange.jsonl")),
    *((line, make.exchanged_lanes()) for line in read_lines(V2 / "exchange.jsonl")),
    *((line, make.exchanged_states()) for line in read_lines(V2 / "combined.jsonl")),
]


@pytest.mark.parametrize(("line", "records"), EXCHANGED, ids=lambda given: given.get("name", ""))
def test_records_in_an_exchange(line, records):
    stored, expected = bytes.fromhex(line["stored"]), records[line["name"]]
    assert unpack_chunks([stored]) == expected
    assert pack_records(expected, 5, 6, **make.chunk_kind(line["name"])) == stored


# --- records ------------------------------------------------------------------------------------


def test_schemas():
    lines = read_lines(V1 / "schemas.jsonl")
    changes = make.schema_changes()
    for (key, value), change in zip(lines, changes, strict=True):
        stored = key.encode(), None if value is None else value.encode()
        record = records.decode(*stored)
        assert record == change
        assert getattr(record, "more", None) == getattr(change, "more", None)
        assert records.encode(record) == stored
    kinds = {type(change) for change in changes}
    assert kinds == set(records.Change.__args__)


def test_a_claim():
    text = (FILES / "claim.json").read_bytes()
    assert leadership_log.decode(text) == make.CLAIM
    assert make.CLAIM.encode() == text


# --- files --------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    """A directory with a copy of all files."""
    shutil.copytree(FILES, tmp_path / "files")
    return tmp_path / "files"


def opened(place, name):
    (place / name).rename(place / "service.json") if name != "service.json" else None
    settings = Settings({"ksql.state.dir": str(place), "ksql.service.id": "kept_"})
    state = StateDir.open(settings, lambda: "new")
    state.close()
    return state.identity


def test_the_identity_of_a_state_directory(place):
    assert opened(place, "service.json") == make.IDENTITY
    assert make.IDENTITY.text() == (FILES / "service.json").read_text("utf-8")


def test_the_life_of_a_query(place, tmp_path):
    assert incarnations.incarnation_of(place) == incarnations.Incarnation("5f6e7d")
    incarnations.begin(tmp_path, "5f6e7d")
    assert (tmp_path / "life.json").read_bytes() == (FILES / "life.json").read_bytes()


def test_how_far_commands_were_carried_out(place, tmp_path):
    assert AppliedOffsetFile(place / "carried_out.json").read() == 17
    AppliedOffsetFile(tmp_path / "carried_out.json").write(17)
    written = (tmp_path / "carried_out.json").read_bytes()
    assert written == (FILES / "carried_out.json").read_bytes()


def test_the_right_to_write(tmp_path):
    frozen = V2 / "files" / "lease.json"
    assert lease.read(frozen) == lease.LeaseContent(
        claim="c1", boot="b-1", until_s=12.5, until_ms=BASE_MS, lost=True, written_s=4.5
    )
    lease.write(tmp_path / "lease.json", "c1", 12.5, lost=True)
    written, then = (
        json.loads(file.read_text("utf-8")) for file in (tmp_path / "lease.json", frozen)
    )
    assert {name: type(value) for name, value in written.items()} == {
        name: type(value) for name, value in then.items()
    }


def test_where_a_query_begins(place, tmp_path):
    offsets = checkpoint.read_starts(place / "starts-1.json")
    assert offsets == {"s": {0: 3, 1: 0}}
    checkpoint.write_starts(tmp_path / "starts.json", offsets)
    assert (tmp_path / "starts.json").read_bytes() == (FILES / "starts-1.json").read_bytes()


def test_the_topics_that_a_query_has_read(place, tmp_path):
    assert checkpoint_topics.read(place) == make.TOPICS
    checkpoint_topics.write(tmp_path, make.TOPICS)
    assert (tmp_path / "topics.json").read_bytes() == (FILES / "topics.json").read_bytes()


def test_the_topic_that_holds_the_rows_of_a_version(place, tmp_path):
    assert results_topic.read(place, make.RESULTS) == make.TOPICS["t"]
    results_topic.write(tmp_path, make.RESULTS, make.TOPICS["t"])
    assert (tmp_path / "results.json").read_bytes() == (FILES / "results.json").read_bytes()


def test_the_topic_of_which_stores_are(place, tmp_path):
    assert store_manager.read(place) == make.TOPICS["s"]
    store_manager.write(tmp_path, make.TOPICS["s"])
    assert (tmp_path / "topic.json").read_bytes() == (FILES / "topic.json").read_bytes()


def test_the_shape_of_the_plan_that_a_checkpoint_belongs_to(place, tmp_path):
    assert plan_fingerprint.read(place) == make.SHAPE
    plan_fingerprint.write(tmp_path, make.SHAPE)
    assert (tmp_path / "shape.json").read_bytes() == (FILES / "shape.json").read_bytes()


def test_the_mark_of_a_cut_over(place, tmp_path):
    assert cut_over_mark.read(place) == make.CUT_OVER
    cut_over_mark.write(tmp_path, make.CUT_OVER)
    assert (tmp_path / "cutover.json").read_bytes() == (FILES / "cutover.json").read_bytes()


def test_the_codes_of_functions_that_a_checkpoint_has_seen(place, tmp_path):
    assert codes.read(place) == make.CODES
    codes.write(tmp_path, make.CODES)
    assert (tmp_path / "code.json").read_bytes() == (FILES / "code.json").read_bytes()


def test_trash_entries_are_read(place, tmp_path):
    entry = tmp_path / "aside" / "20200913T122640Z-0-CTAS_T_4"
    entry.mkdir(parents=True)
    shutil.copy(place / "about.json", entry)
    [moved] = Trash(tmp_path / "aside", lambda: 0).entries()
    assert (moved.what, moved.origin) == ("checkpoint", "/var/lib/CTAS_T_4")
    assert (moved.reason, moved.when_ms) == ("no query of that name is known", BASE_MS)


def test_where_the_frozen_queries_were():
    places = sorted((SERVICE / "queries").iterdir())
    assert [place.name.rsplit("_", 1)[0] for place in places] == [
        "CSAS_KEPT_NAMED",
        "CTAS_KEPT_COUNTS",
        "CTAS_KEPT_HOURS",
    ]
    for place in places:
        batch = checkpoint.committed(place)
        assert batch is not None
        assert batch.offsets["kept_clicks"] == {0: 6}
        incarnation = incarnations.incarnation_of(place)
        assert incarnation is not None
        assert incarnation.name
