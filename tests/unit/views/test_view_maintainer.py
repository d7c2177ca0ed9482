"""What follows the tables: it says what it lacks, and goes on whatever happens."""

from __future__ import annotations

import threading
from random import Random
from types import SimpleNamespace

import pytest

from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.admin import Identity, StableEnd
from ksql.kafka.errors import OffsetsGone
from ksql.kafka.topic_watch import TopicWatch
from ksql.views import store_manager, view_maintainer
from ksql.views.store_config import retention_ms
from ksql.views.stores.base import StoreDamaged, StoreFailed
from ksql.views.stores.rocks import Rocks
from ksql.views.view_maintainer import ViewMaintainer
from tests.tables import await_table
from tests.unit.views.stores.support import files_of
from tests.unit.world import World
from tests.waits import await_true

PATIENCE_S = 30.0
SQL = (
    "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=2);"
    "CREATE TABLE T AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
    "CREATE TABLE W AS SELECT K, COUNT(*) N FROM S"
    " WINDOW TUMBLING (SIZE 1 MINUTE, RETENTION 2 HOURS, GRACE PERIOD 0 SECONDS) GROUP BY K;"
)


class Kafka:
    """Topics with records that a test releases one by one; reads may be made to fail."""

    def __init__(self) -> None:
        self.ends = {("T", 0): 0, ("T", 1): 0, ("W", 0): 0, ("W", 1): 0}
        self.begins: dict[tuple[str, int], int] = {}
        self.read: list[tuple[str, int, int]] = []
        self.bytes = 3
        self.readable = threading.Semaphore(0)
        self.failures: list[Exception] = []
        self.gathered: list[float] = []
        self.failed = threading.Event()
        self.ids: dict[str, str] = {}

    def close(self) -> None:
        pass

    # admin

    def topics(self):
        counts: dict[str, int] = {}
        for topic, partition in self.ends:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
        return {name: SimpleNamespace(partitions=count) for name, count in counts.items()}

    def begin_offsets(self, topics):
        return {p: self.begins.get(p, 0) for p in self.ends if p[0] in topics}

    def end_offsets(self, topics):
        return {place: end for place, end in self.ends.items() if place[0] in topics}

    def topic_ids(self, topics):
        return {name: each.id for name, each in self.identities(topics).items()}

    def identities(self, topics):
        listed = self.topics()
        return {
            name: Identity(self.ids.get(name, ""), listed[name].partitions)
            for name in topics
            if name in listed
        }

    # reader

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def assign(self, offsets):
        self.positions = dict(offsets)

    def stable_ends(self, places, _timeout_s):
        return {place: StableEnd(self.ends[place], quiet=True) for place in places}

    def poll_last(self, timeout_s, gather_s, stops):
        self.gathered.append(gather_s)
        if self.failures:
            raise self.failures.pop()
        if not self.readable.acquire(timeout=0.01):
            return {}
        behind = [place for place, at in self.positions.items() if at < self.ends[place]]
        if not behind:
            return {}
        topic, partition = place = min(behind)
        at = self.positions[place]
        if at < self.begins.get(place, 0):
            raise OffsetsGone(topic, partition, "gone")
        self.positions[place] = at + 1
        self.read.append((topic, partition, at))
        key = self.ids.get(topic, "").encode() + b"%d" % at + (b"\x00" * 8 if topic == "W" else b"")
        value = Random(at).randbytes(self.bytes)
        return {place: {key: (key, value, 0)}}


@pytest.fixture
def kafka(monkeypatch):
    kafka_ = Kafka()
    monkeypatch.setattr(view_maintainer, "Reader", lambda _settings, **_config: kafka_)
    monkeypatch.setattr(view_maintainer, "Admin", lambda _settings: kafka_)
    monkeypatch.setattr(view_maintainer, "_REST_S", 0.01)
    return kafka_


@pytest.fixture
def world():
    return World(SQL)


@pytest.fixture
def followers(kafka, world, tmp_path):
    """Makes followers of one directory, and ends those that a test has not ended."""
    maintainers = []

    def make(**settings):
        running = ViewMaintainer(
            None,
            tmp_path / "stores",
            Trash(tmp_path / "aside", lambda: 0),
            Settings({"commit.interval.ms": "1000000", **settings}),
            lambda: 77,
        )
        running.follow(world.engine.catalog)
        maintainers.append(running)
        return running

    yield make
    for running in maintainers:
        running.close()


@pytest.fixture
def follower(followers):
    return followers()


def let(kafka, records):
    for _ in range(records):
        kafka.readable.release()


def keys(table_):
    return sorted(row.key for store in table_.stores.values() for row in store.scan())


def kinds(table_):
    return {type(store).__name__ for store in table_.stores.values()}


def table(world, name):
    return world.engine.catalog.sources[name].queryable()


def test_a_table_that_is_being_filled_says_how_much_it_lacks(kafka, follower, world):
    kafka.ends["T", 1] = 3
    assert follower.filling() == {"T": -1, "W": -1}  # nobody has looked yet
    follower.start()
    source = table(world, "T")
    await_true("the view is there", lambda: follower.table(source))
    assert follower.readable_view(source) is None
    assert follower.missing(source) == 3
    assert follower.filling() == {"T": 3}
    for _ in range(3):
        kafka.readable.release()
    view = await_table(follower, source, {}, PATIENCE_S)
    assert view is not None
    assert sum(1 for store in view.stores.values() for _ in store.scan()) == 3
    assert follower.missing(source) == 0
    assert follower.filling() == {}
    kafka.ends["T", 1] = 9  # what comes later is news, not a lack
    assert follower.readable_view(source) is not None


def test_only_what_follows_a_large_piece_is_waited_for(kafka, follower, world, monkeypatch):
    monkeypatch.setattr(view_maintainer, "_MANY", 1)
    kafka.ends["T", 0] = 2
    follower.start()
    let(kafka, 1)
    seconds = view_maintainer._GATHER_S
    await_true("two polls after it", lambda: seconds in kafka.gathered[:-2])
    at = kafka.gathered.index(seconds)
    assert set(kafka.gathered[:at]) == {0.0}
    assert kafka.gathered[at + 1 : at + 3] == [0.0, 0.0]  # the poll between was in vain


@pytest.mark.parametrize("error", [KeyError(("T", 1)), RuntimeError("x"), OSError(28, "full")])
def test_failures_are_shown_and_retried(kafka, follower, world, error, caplog):
    kafka.ends["T", 0] = 2
    kafka.failures = [error] * 3
    follower.start()
    kafka.readable.release()
    kafka.readable.release()
    view = await_table(follower, table(world, "T"), {}, PATIENCE_S)
    assert view is not None
    assert follower.problem == ""
    assert [r.message for r in caplog.records] == ["materializer_rests"]


def test_a_topic_with_fewer_partitions_than_before(kafka, follower, world):
    follower.start()
    source = table(world, "T")
    view = await_table(follower, source, {}, PATIENCE_S)
    assert len(view.stores) == 2
    del kafka.ends["T", 1]
    kafka.failures = [KeyError(("T", 1))]
    while len(view.stores) == 2:
        view = await_table(follower, source, {}, PATIENCE_S)
        assert view is not None


def test_a_topic_that_is_gone_keeps_no_other_table_from_being_read(kafka, follower, world):
    del kafka.ends["T", 0], kafka.ends["T", 1]
    follower.start()
    assert await_table(follower, table(world, "W"), {}, PATIENCE_S) is not None
    assert follower.readable_view(table(world, "T")) is None


def test_the_retention_is_that_of_the_windows(world, kafka, follower):
    catalog = world.engine.catalog
    assert retention_ms(catalog, table(world, "W")) == 2 * 3_600_000
    assert retention_ms(catalog, table(world, "T")) is None
    follower.start()
    view = await_table(follower, table(world, "W"), {}, PATIENCE_S)
    assert {type(store).__name__ for store in view.stores.values()} == {"RetentionStore"}


# --- types of stores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [(b, a) for b in ("rocksdb", "txn_rocksdb") for a in ("rocksdb", "txn_rocksdb", "in_memory")],
)
def test_another_type_after_a_restart_keeps_the_rows(kafka, followers, world, before, after):
    kafka.ends["T", 1] = 3
    let(kafka, 3)
    first = followers(**{"ksql.streams.default.dsl.store": before})
    first.start()
    assert keys(await_table(first, table(world, "T"), {}, PATIENCE_S)) == [b"0", b"1", b"2"]
    first.close()
    second = followers(**{"ksql.streams.default.dsl.store": after})
    second.start()
    view = await_table(second, table(world, "T"), {}, PATIENCE_S)
    assert keys(view) == [b"0", b"1", b"2"]
    assert [at for topic, _, at in kafka.read if topic == "T"] == [0, 1, 2]  # nothing came again
    assert second.notes(table(world, "T").created_by) == ()


NAMES = {"rocksdb": "DiskStore", "txn_rocksdb": "TxnStore", "in_memory": "MemoryStore"}


def test_another_type_while_it_runs_keeps_the_rows(kafka, follower, world):
    kafka.ends["T", 1] = 3
    let(kafka, 3)
    follower.start()
    source = table(world, "T")
    assert len(keys(await_table(follower, source, {}, PATIENCE_S))) == 3
    for kind in ("in_memory", "rocksdb", "in_memory", "txn_rocksdb", "rocksdb", "txn_rocksdb"):
        world.run(
            f"CREATE OR REPLACE TABLE T WITH (STORE_TYPE='{kind}')"
            " AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
        )
        follower.follow(world.engine.catalog)

        def changed(expected=frozenset({NAMES[kind]})):
            view = await_table(follower, source, {}, PATIENCE_S)
            return view if kinds(view) == expected else None

        view = await_true(f"the store is {kind}", changed)
        assert keys(view) == [b"0", b"1", b"2"]
    assert len([at for topic, _, at in kafka.read if topic == "T"]) == 3


def test_a_store_in_memory_is_filled_at_each_start(kafka, followers, world, tmp_path):
    kafka.ends["T", 1] = 2
    for _ in range(2):
        let(kafka, 2)
        running = followers(**{"default.dsl.store": "in_memory"})
        running.start()
        view = await_table(running, table(world, "T"), {}, PATIENCE_S)
        assert keys(view) == [b"0", b"1"]
        running.close()
    assert [at for topic, _, at in kafka.read if topic == "T"] == [0, 1, 0, 1]
    assert not (tmp_path / "stores").exists()


# --- what may be read


def test_a_store_that_is_being_filled_answers_where_its_lag_is_allowed(kafka, follower, world):
    kafka.ends["T", 0], kafka.ends["T", 1] = 2, 3
    let(kafka, 2)
    follower.start()
    source = table(world, "T")
    view = await_table(follower, source, {}, PATIENCE_S, lag=3)
    assert view is not None
    assert follower.readable_view(source) is None
    assert follower.readable_view(source, 2) is None
    assert follower.missing(source) == 3
    let(kafka, 3)
    assert await_table(follower, source, {}, PATIENCE_S) is not None


def test_committed_rows_are_those_up_to_the_last_commit(kafka, follower, world):
    kafka.ends["T", 1] = 2
    let(kafka, 2)
    follower.start()
    source = table(world, "T")
    view = await_table(follower, source, {}, PATIENCE_S, committed=True)
    assert view is not None  # a store commits when it has caught up
    assert ", 0 bytes not committed" in follower.summary(source.created_by)
    kafka.ends["T", 1] = 3
    let(kafka, 1)
    place = {("T", 1): 3}
    view = await_table(follower, source, place, PATIENCE_S)
    assert view.uncommitted_bytes > 0
    assert f", {view.uncommitted_bytes} bytes not committed" in follower.summary(source.created_by)
    assert sum(len(list(rows.scan())) for rows in view.rows().values()) == 3
    assert sum(len(list(rows.scan())) for rows in view.rows(committed=True).values()) == 2
    assert view.missing(place, committed=True) == 1


# --- what can happen to a store


def spoiled(view, tmp_path, source):
    """Flush the rows of partition 1, and damage the file."""
    files_of(view.stores[1]).flush()
    for file in (tmp_path / "stores" / source.created_by / "1").glob("*.sst"):
        data = bytearray(file.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 32] = b"\xff" * 32
        file.write_bytes(data)


def test_a_corrupt_file_costs_that_store_alone(kafka, followers, world, tmp_path, caplog):
    kafka.ends |= {("T", 0): 2, ("T", 1): 3, ("W", 0): 1}
    kafka.bytes = 9_000  # blocks of their own
    let(kafka, 6)
    first = followers()
    first.start()
    source = table(world, "T")
    spoiled(await_table(first, source, {}, PATIENCE_S), tmp_path, source)
    await_table(first, table(world, "W"), {}, PATIENCE_S)
    first.close()
    kafka.read.clear()
    second = followers()
    second.start()
    view = await_table(second, source, {}, PATIENCE_S)
    with pytest.raises(StoreDamaged):
        list(view.stores[1].scan())
    await_true("the view is withdrawn", lambda: second.readable_view(source) is None)
    let(kafka, 3)
    view = await_table(second, source, {}, PATIENCE_S)
    assert keys(view) == [b"0", b"0", b"1", b"1", b"2"]
    assert kafka.read == [("T", 1, 0), ("T", 1, 1), ("T", 1, 2)]
    [(when, text)] = second.notes(source.created_by)
    assert when == 77
    assert text.startswith("the store of partition 1 is filled again: Corruption")
    assert [r.message for r in caplog.records] == ["store_rebuilt"]


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_a_store_that_cannot_be_opened_is_refilled(kafka, followers, world, tmp_path, name):
    kafka.ends |= {("T", 0): 2, ("T", 1): 3}
    let(kafka, 5)
    first = followers()
    first.start()
    source = table(world, "T")
    await_table(first, source, {}, PATIENCE_S)
    first.close()
    kafka.read.clear()
    for file in (tmp_path / "stores" / source.created_by / "0").glob(name):
        file.write_bytes(b"nonsense")
    let(kafka, 2)
    second = followers()
    second.start()
    view = await_table(second, source, {}, PATIENCE_S)
    assert keys(view) == [b"0", b"0", b"1", b"1", b"2"]
    assert kafka.read == [("T", 0, 0), ("T", 0, 1)]
    [(_, text)] = second.notes(source.created_by)
    assert text.startswith("the store of partition 0 is filled again: the store")


def test_a_full_disk_is_a_problem_until_there_is_room(kafka, follower, world, monkeypatch, caplog):
    kafka.ends["T", 0] = 2
    room, real = threading.Event(), Rocks.apply

    def apply(rocks, batch, logged):
        if not room.is_set():
            raise StoreFailed("s", "No space left on device", full=True)
        real(rocks, batch, logged)

    monkeypatch.setattr(Rocks, "apply", apply)
    follower.start()
    await_true("a problem is shown", lambda: follower.problem)
    assert follower.problem.startswith("the disk of the store s is full")
    assert follower.readable_view(table(world, "T")) is None
    room.set()
    let(kafka, 2)
    assert keys(await_table(follower, table(world, "T"), {}, PATIENCE_S)) == [b"0", b"1"]
    assert follower.problem == ""
    assert follower.notes(table(world, "T").created_by) == ()


def test_a_topic_whose_early_records_were_deleted(kafka, followers, world):
    """Rows of records that are gone would never be corrected: the store has what the topic has."""
    kafka.ends["T", 1] = 3
    let(kafka, 3)
    first = followers()
    first.start()
    source = table(world, "T")
    await_table(first, source, {}, PATIENCE_S)
    first.close()
    kafka.begins["T", 1], kafka.ends["T", 1] = 5, 7
    let(kafka, 2)
    second = followers()
    second.start()
    assert keys(await_table(second, source, {}, PATIENCE_S)) == [b"5", b"6"]
    [(_, text)] = second.notes(source.created_by)
    assert "it was read up to the offset 3, and the topic has 5 to 7" in text


def test_records_that_are_deleted_before_they_are_read(kafka, follower, world, caplog):
    kafka.ends["T", 1] = 2
    let(kafka, 2)
    follower.start()
    source = table(world, "T")
    await_table(follower, source, {}, PATIENCE_S)
    kafka.begins["T", 1] = 5
    kafka.ends["T", 1] = 7
    let(kafka, 3)
    view = await_table(follower, source, {("T", 1): 7}, PATIENCE_S)
    assert keys(view) == [b"5", b"6"]
    assert [r.message for r in caplog.records] == ["materializer_rests", "store_rebuilt"]


# --- topics that are not what they were

ON_DISK = ("rocksdb", "txn_rocksdb")
RECREATED = "its topic T was deleted and recreated"


def new_topic(kafka):
    """Make T again, with more records than before."""
    kafka.ids["T"] = "b"
    kafka.ends["T", 1] = 5
    let(kafka, 5)


def look_at(kafka, follower):
    TopicWatch(kafka.identities, [follower.watched]).poll()


def store_of_first(kafka, follower, world):
    kafka.ids, kafka.ends["T", 1] = {"T": "a", "W": "w"}, 3
    let(kafka, 3)
    follower.start()
    source = table(world, "T")
    assert keys(await_table(follower, source, {}, PATIENCE_S)) == [b"a0", b"a1", b"a2"]
    return source


@pytest.mark.parametrize("kind", [*ON_DISK, "in_memory"])
def test_a_topic_that_is_recreated_while_it_is_followed(kafka, followers, world, kind):
    follower = followers(**{"default.dsl.store": kind})
    source = store_of_first(kafka, follower, world)
    other = follower.table(table(world, "W"))
    look_at(kafka, follower)
    new_topic(kafka)
    # in the middle, as its reader knows of nothing
    await_true("five are read", lambda: len(kafka.read) == 5)
    look_at(kafka, follower)
    await_true("it is noted", lambda: [text for _, text in follower.notes(source.created_by)])
    let(kafka, 5)
    place = {("T", 1): 5}
    view = await_table(follower, source, place, PATIENCE_S)
    assert keys(view) == [b"b0", b"b1", b"b2", b"b3", b"b4"]
    assert {RECREATED in text for _, text in follower.notes(source.created_by)} == {True}
    assert follower.table(table(world, "W")).stores == other.stores  # goes on as it was


@pytest.mark.parametrize("kind", ON_DISK)
def test_a_topic_that_is_recreated_while_nobody_follows_it(kafka, followers, world, kind):
    first = followers(**{"default.dsl.store": kind})
    source = store_of_first(kafka, first, world)
    first.close()
    new_topic(kafka)
    second = followers(**{"default.dsl.store": kind})
    second.start()
    view = await_table(second, source, {}, PATIENCE_S)
    assert keys(view) == [b"b0", b"b1", b"b2", b"b3", b"b4"]
    assert RECREATED in second.notes(source.created_by)[0][1]


def test_a_store_of_a_version_that_noted_no_topic_is_continued(kafka, followers, world, tmp_path):
    first = followers()
    source = store_of_first(kafka, first, world)
    first.close()
    note = tmp_path / "stores" / source.created_by / store_manager.FILE
    note.unlink()
    second = followers()
    second.start()
    assert keys(await_table(second, source, {}, PATIENCE_S)) == [b"a0", b"a1", b"a2"]
    assert len(kafka.read) == 3
    assert store_manager.read(note.parent) == "a"
    assert second.notes(source.created_by) == ()


def test_unknown_topic_id_is_no_other_topic(kafka, follower, world, monkeypatch):
    source = store_of_first(kafka, follower, world)
    changes = []
    monkeypatch.setattr(follower._changed, "set", lambda: changes.append(1))
    kafka.ids = {}  # a broker that gives none
    look_at(kafka, follower)
    look_at(SimpleNamespace(identities=lambda _topics: {}), follower)  # one that has just come up
    kafka.ids = {"T": "a", "W": "w"}
    look_at(kafka, follower)
    assert not changes
    assert follower.notes(source.created_by) == ()
    kafka.ids["T"] = "b"
    look_at(kafka, follower)
    assert changes
    monkeypatch.undo()


def test_a_note_that_is_damaged_costs_that_table_only(kafka, followers, world, tmp_path):
    first = followers()
    source = store_of_first(kafka, first, world)
    first.close()
    (tmp_path / "stores" / source.created_by / store_manager.FILE).write_text("{")
    let(kafka, 3)
    second = followers()
    second.start()
    assert keys(await_table(second, source, {}, PATIENCE_S)) == [b"a0", b"a1", b"a2"]
    assert len(kafka.read) == 6
    assert "it is not known of which topic it is" in second.notes(source.created_by)[0][1]
    assert second.notes(table(world, "W").created_by) == ()


def test_a_note_of_a_later_version_stops_its_table_only(kafka, followers, world, tmp_path):
    first = followers()
    source = store_of_first(kafka, first, world)
    first.close()
    place = tmp_path / "stores" / source.created_by
    (place / store_manager.FILE).write_text('{"version": 9}')
    second = followers()
    second.start()
    assert await_table(second, table(world, "W"), {}, PATIENCE_S) is not None
    assert f"{place / store_manager.FILE} has format 9" in second.hindrance(source)
    assert second.readable_view(source) is None
    assert sorted(each.name for each in place.iterdir()) == ["0", "1", store_manager.FILE]


def test_partitions_that_a_topic_gets_are_followed(kafka, follower, world):
    source = store_of_first(kafka, follower, world)
    kafka.ends["T", 2] = 1
    look_at(kafka, follower)
    await_true(
        "it has three partitions",
        lambda: (view := follower.table(source)) and view.count == 3,
    )
    let(kafka, 1)
    latest = await_table(follower, source, {("T", 2): 1}, PATIENCE_S)
    assert keys(latest) == [b"a0", b"a0", b"a1", b"a2"]
    assert follower.notes(source.created_by) == ()


# --- several servers


class Some(view_maintainer.AllPartitions):
    """Keeps some partitions; those that are open until they are given up."""

    def __init__(self, *places):
        self.placed = set(places)
        self.given_up = set()

    def view(self):
        return frozenset(self.placed), frozenset(self.given_up)

    def keeps(self, topic, partition, home, *, is_open):
        place = topic, partition
        return place in self.placed or (is_open and place not in self.given_up)


def test_a_partition_that_moves_away_is_kept_until_it_is_given_up(kafka, world, tmp_path):
    kafka.ends |= {("T", 0): 2, ("T", 1): 1}
    some = Some(("T", 0))
    running = ViewMaintainer(
        None,
        tmp_path / "stores",
        Trash(tmp_path / "aside", lambda: 0),
        Settings({"commit.interval.ms": "1"}),
        assignment=some,
    )
    source = table(world, "T")
    running.follow(world.engine.catalog)
    running.start()
    try:
        let(kafka, 3)
        view = await_table(running, source, {}, PATIENCE_S)
        assert (list(view.parts), view.count) == ([0], 2)
        assert running.of_query(str(source.created_by)).parts.keys() == {0}
        some.placed = {("T", 1)}
        let(kafka, 3)
        await_true(
            "both partitions are here",
            lambda: running.readable_view(source) and set(running.table(source).parts) == {0, 1},
        )
        assert keys(await_table(running, source, {}, PATIENCE_S)) == [b"0", b"0", b"1"]
        some.given_up.add(("T", 0))
        await_true("one is given up", lambda: set(running.table(source).parts) == {1})
        home = tmp_path / "stores" / str(source.created_by)
        await_true("its directory is gone", lambda: [each.name for each in home.iterdir()] == ["1"])
    finally:
        running.close()


def test_leftovers_of_a_former_assignment_are_deleted_once_given_up(kafka, world, tmp_path):
    kafka.ends |= {("T", 0): 2, ("T", 1): 1}
    source, some = table(world, "T"), Some(("T", 1))
    home = tmp_path / "stores" / str(source.created_by)
    for name in ("0", "0.gone", "5.new"):
        (home / name).mkdir(parents=True)
    running = ViewMaintainer(
        None,
        tmp_path / "stores",
        Trash(tmp_path / "aside", lambda: 0),
        Settings({"commit.interval.ms": "1"}),
        assignment=some,
    )
    running.follow(world.engine.catalog)
    running.start()
    try:
        let(kafka, 3)
        view = await_table(running, source, {}, PATIENCE_S)
        assert list(view.parts) == [1]
        assert running.held(view) == {0, 1, 5}
        some.given_up.add(("T", 0))
        await_true("both are held", lambda: running.held(view) == {1, 5})
        assert {each.name for each in home.iterdir()} == {"1", "5.new"}
        some.placed.add(("T", 0))  # it comes back, and is filled from its topic
        let(kafka, 3)
        await_true(
            "both partitions are here",
            lambda: running.readable_view(source) and set(running.table(source).parts) == {0, 1},
        )
        assert keys(await_table(running, source, {}, PATIENCE_S)) == [b"0", b"0", b"1"]
    finally:
        running.close()
