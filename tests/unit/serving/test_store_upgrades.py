"""Tables whose stores have another format: what they answer, what is shown, what is left."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.record_versions import NewerRecord
from ksql.views import store_manager
from ksql.views.stores.format_upgrade import SETTING, Upgrades
from ksql.views.stores.formats import KNOWN, UNKNOWN_TIME
from ksql.views.stores.rocks import Rocks, StoreBudget
from ksql.views.stores.store_types import open_store
from ksql.views.stores.txn import TxnStore
from ksql.views.view_maintainer import ViewMaintainer
from tests.stored.plain_store import PlainStore
from tests.tables import await_table
from tests.unit.views.stores.support import files_of
from tests.unit.views.test_upgrade_gate import Peers
from tests.unit.views.test_view_maintainer import (  # noqa: F401 - its fixtures
    PATIENCE_S,
    followers,
    kafka,
    let,
    table,
    world,
)
from tests.waits import await_true

# ruff: noqa: F811


@pytest.fixture
def source(world):
    return table(world, "T")


@pytest.fixture
def place(tmp_path, source):
    """The stores of T, each with a row whose record its topic has not any more."""
    place = tmp_path / "stores" / source.created_by
    for partition in ("0", "1"):
        store = PlainStore(place / partition)
        store.write([(b"old", b"kept")], position=2)
        store.close()
    return place


@pytest.fixture
def topic(kafka):
    """Partition 0 has one record that was not read; early ones are gone."""
    kafka.begins = {("T", 0): 2, ("T", 1): 2}
    kafka.ends |= {("T", 0): 3, ("T", 1): 2}
    return kafka


@pytest.fixture
def slow(monkeypatch):
    """Copies make no progress until the test allows it."""
    allowed: list[bool] = []
    work = Upgrades.work
    monkeypatch.setattr(Upgrades, "work", lambda upgrades: bool(allowed) and work(upgrades))
    return allowed


def started(followers, **settings):
    followers_ = followers(**{name.replace("_", "."): text for name, text in settings.items()})
    followers_.start()
    return followers_


def answered(topic, follower, source):
    """Give records until the table answers; return its stores."""

    def complete():
        let(topic, 1)
        return follower.readable_view(source) is not None

    await_true("the copy is complete", complete)
    return follower.readable_view(source)


def rows(table):
    return sorted(row for store in table.stores.values() for row in store.scan())


def listed(place):
    return sorted(each.name for each in place.iterdir())


KEPT = (b"old", b"kept", UNKNOWN_TIME)


def test_offline_the_table_waits_and_loses_nothing(topic, followers, source, place, slow):
    follower = started(followers)
    await_true("a hindrance is shown", lambda: follower.hindrance(source))
    query = source.created_by
    shown = "upgrade (offline): partition 0 0%, partition 1 0%"
    assert follower.hindrance(source) == follower.hindrance() == f"{query}: {shown}"
    assert follower.summary(query) == shown
    assert follower.readable_view(source) is None
    assert follower.problem == ""
    assert listed(place) == ["0", "0.new", "1", "1.new"]
    slow.append(True)
    rows_ = answered(topic, follower, source)
    assert [row[:2] for row in rows(rows_)][1:] == [KEPT[:2], KEPT[:2]]
    assert rows(rows_)[0].key == b"2"
    assert topic.read == [("T", 0, 2)]
    assert follower.hindrance(source) == follower.hindrance() == ""
    assert "upgrade" not in follower.summary(query)
    assert listed(place) == ["0", "1"]


def test_offline_other_tables_answer_meanwhile(topic, followers, world, place, slow):
    follower = started(followers)
    assert await_table(follower, table(world, "W"), {}, PATIENCE_S) is not None
    assert follower.readable_view(table(world, "T")) is None


def test_a_stop_in_the_middle_of_an_upgrade(topic, followers, source, place, slow):
    first = started(followers)
    await_true("a hindrance is shown", lambda: first.hindrance(source))
    first.close()
    assert listed(place) == ["0", "0.new", "1", "1.new"]
    slow.append(True)
    second = started(followers)
    assert len(rows(answered(topic, second, source))) == 3
    assert listed(place) == ["0", "1"]


def test_in_place_the_table_answers_and_the_second_start_ends_it(
    topic, followers, source, place, slow
):
    mode = {SETTING: "in_place"}
    first = followers(**mode)
    first.start()
    rows_ = answered(topic, first, source)
    assert [row.timestamp for row in rows(rows_)] == [UNKNOWN_TIME] * 3
    query = source.created_by
    shown = "upgrade (in place): partition 0 0%, partition 1 0%"
    assert first.summary(query).endswith(f"; {shown}")
    assert (first.hindrance(), first.upgrading()) == ("", f"{query}: {shown}")
    slow.append(True)
    await_true("the next start is named", lambda: "the next start" in first.summary(query))
    assert "partition 0 100%, partition 1 100%; it ends with the next start" in first.summary(query)
    first.close()
    assert listed(place) == ["0", "0.new", "1", "1.new"]
    second = followers(**mode)
    second.start()
    rows_ = await_table(second, source, {}, PATIENCE_S)
    assert rows(rows_)[0][::2] == (b"2", 0)  # read meanwhile: its time is known
    assert rows(rows_)[1:] == [KEPT, KEPT]
    assert topic.read == [("T", 0, 2)]
    assert listed(place) == ["0", "1"]
    assert "upgrade" not in second.summary(query)


def test_in_place_with_damage_while_it_serves(topic, followers, source, place):
    first = followers(**{SETTING: "in_place"})
    first.start()
    rows_ = answered(topic, first, source)
    await_true(
        "the next start is named", lambda: "the next start" in first.summary(source.created_by)
    )
    files_of(rows_.stores[1]).damage = "Corruption"
    await_true(
        "the upgraded store serves", lambda: isinstance(first.table(source).stores[1], TxnStore)
    )
    assert listed(place) == ["0", "0.new", "1"]
    assert len(rows(first.readable_view(source))) == 3
    assert first.notes(source.created_by) == ()


def test_roll_over_hands_over_when_the_last_old_server_leaves(
    topic, world, tmp_path, source, place
):
    peers = Peers(a=0, me=KNOWN.newest)
    settings = Settings({SETTING: "roll_over"})
    stores, trash = tmp_path / "stores", Trash(tmp_path / "aside", lambda: 0)
    follower = ViewMaintainer(None, stores, trash, settings, peers=peers)
    follower.follow(world.engine.catalog)
    follower.start()
    try:
        await_true("the view is there", lambda: follower.table(source))
        let(topic, 1)
        await_true("nothing is missing", lambda: follower.missing(source) == 0)
        assert listed(place) == ["0", "1"]  # it is ready
        assert follower.readable_view(source) is None
        assert follower.hindrance(source).startswith("the servers a answer")
        assert follower.hindrance(source) in follower.summary(source.created_by)
        del peers.formats["a"]
        assert len(rows(await_table(follower, source, {}, PATIENCE_S))) == 3
        assert follower.hindrance() == ""
    finally:
        follower.close()


@pytest.fixture
def newer(tmp_path, source):
    """A store of T that a later version wrote."""
    path = tmp_path / "stores" / source.created_by / "1"
    store = open_store("txn_rocksdb", path, StoreBudget())
    store.close()
    rocks = Rocks.open(path, StoreBudget(), logged=True)
    rocks.write((), {"format": 9})
    rocks.close()
    return path


def test_a_newer_store_stops_its_table_only(topic, followers, world, source, newer):
    follower = started(followers)
    assert await_table(follower, table(world, "W"), {}, PATIENCE_S) is not None
    assert follower.readable_view(source) is None
    hindrance = follower.hindrance(source)
    assert f"{newer} has format 9, this version reads up to 1" in hindrance
    assert f"-o ksql.store.rebuild={source.created_by}/1" in hindrance
    assert follower.summary(source.created_by) == hindrance
    assert follower.problem == ""
    follower.close()
    assert newer.exists()


def test_a_newer_store_is_refilled_if_that_is_requested(topic, followers, source, newer, tmp_path):
    follower = followers(**{store_manager.REBUILD: f"{source.created_by}/1"})
    follower.start()
    rows_ = answered(topic, follower, source)
    assert [row.key for row in rows(rows_)] == [b"2"]
    [(_, note)] = follower.notes(source.created_by)
    assert "partition 1 is filled again" in note
    assert "has format 9" in note
    [moved] = Trash(tmp_path / "aside", lambda: 0).entries()
    assert moved.origin == str(newer)


def test_a_newer_record_stops_its_table_only(topic, followers, world, source):
    follower = started(followers)
    await_true("the view is there", lambda: follower.table(source))
    topic.failures.append(NewerRecord("T", 0, 2, 9))
    await_true(
        "the record is named", lambda: "has a record of version 9" in follower.hindrance(source)
    )
    assert "partition 0, offset 2" in follower.summary(source.created_by)
    assert follower.readable_view(source) is None
    assert await_table(follower, table(world, "W"), {}, PATIENCE_S) is not None
    assert follower.problem == ""
