"""The registry over a log: what a restart, a second server and compaction leave of it."""

from __future__ import annotations

import pytest

from ksql.formats.schema_registry import RegistryUnreachable, Schema
from ksql.registry import errors as err
from ksql.registry import records as r
from ksql.registry.kinds import Level
from ksql.registry.local import LocalRegistry
from ksql.registry.steps import Config
from ksql.registry.store import SchemaStore
from ksql.registry.subjects import Subjects
from tests.unit.registry.contract import SubjectsContract, avro
from tests.unit.registry.memorylog import MemoryLog, Topic


class TestSubjects(SubjectsContract):
    @pytest.fixture
    def store(self):
        return SchemaStore(MemoryLog())


@pytest.fixture
def topic():
    return Topic()


def opened(topic):
    return Subjects(SchemaStore(MemoryLog(topic)))


def entries_of(subjects):
    """All that a client can ask for."""
    levels = {name: subjects.config(name, effective=True) for name in ("", "a", "b")}
    modes = {name: subjects.mode(name, effective=True) for name in ("", "a", "b")}
    return subjects.entries(deleted=True), subjects.last_id(), levels, modes


@pytest.mark.parametrize("compacted", [False, True])
def test_a_restart_finds_everything_again(topic, compacted):
    subjects = opened(topic)
    subjects.set_config(Config(Level.NONE))
    subjects.set_config(Config(Level.FULL, normalize=True), "b")
    for name in ("x", "y", "z"):
        subjects.register("a", avro(name))
    subjects.register("b", avro("x"))
    subjects.register("c", avro("w"))
    subjects.set_mode("READONLY", "b")
    subjects.delete_version("a", 2)
    subjects.delete_subject("c")
    before = entries_of(subjects)
    if compacted:
        topic.compact()
    assert entries_of(opened(topic)) == before


@pytest.mark.parametrize("compacted", [False, True])
def test_no_number_is_given_twice_though_its_schema_is_gone_for_good(topic, compacted):
    subjects = opened(topic)
    subjects.set_config(Config(Level.NONE))
    subjects.register("a", avro("x"))
    subjects.register("a", avro("y"))
    subjects.delete_subject("a")
    subjects.delete_subject("a", permanent=True)
    if compacted:
        topic.compact()
    again = opened(topic)
    entry = again.register("a", avro("z"))
    assert (entry.version, entry.id) == (3, 3)


def test_two_servers_share_a_topic(topic):
    one, other = opened(topic), opened(topic)
    for number in range(6):
        (one, other)[number % 2].register("s", avro(*(f"f{n}" for n in range(number))))
    assert one.versions("s") == other.versions("s") == [1, 2, 3, 4, 5, 6]
    assert [entry.id for entry in one.entries()] == [1, 2, 3, 4, 5, 6]
    assert one.register("t", avro()).id == other.register("t", avro()).id == 1


def test_fenced_writer_reads_before_it_writes_again(topic):
    rests: list[int] = []
    one, other = SchemaStore(MemoryLog(topic), rests.append), opened(topic)
    batches: list[list[int]] = []

    def late(draft):
        if len(batches) < 2:
            other.register("s", avro(*"abc"[: len(batches) + 1]))
        batches.append([version.version for version in draft.versions("s")])
        return draft.add_version("s", draft.add_schema(avro("z"), "guid-z"))

    one.write(late)
    assert batches == [[], [1], [1, 2]]
    assert rests == [1, 2]
    assert [entry.version for entry in other.entries()] == [1, 2, 3]
    assert other.version("s", 3).schema == avro("z")


def test_repeatedly_fenced_writer_has_written_nothing(topic):
    rests: list[int] = []
    one, other = SchemaStore(MemoryLog(topic), rests.append), opened(topic)

    def late(draft):
        draft.add_version("s", draft.add_schema(avro("a"), "guid-a"))
        other.register("s", avro("b", *(f"c{n}" for n in range(len(rests)))))

    with pytest.raises(err.StoreFailed, match="another server") as caught:
        one.write(late)
    assert caught.value.hint == "Nothing was written. Try again."
    assert rests == list(range(1, len(rests) + 1))
    assert avro("a") not in [entry.schema for entry in Subjects(one).entries()]
    assert Subjects(one).register("t", avro("a")).version == 1


def test_a_registry_that_writes_over_ours_is_noticed(topic):
    """Confluent's registry knows nothing of our transactions."""
    log = MemoryLog(topic)
    theirs = r.VersionSet(subject="s", version=1, id=1, schema=avro("b"))

    def write(changes):
        topic.records += [r.encode(one) for one in (*changes, theirs)]

    log.write = write  # type: ignore[method-assign]  # a stand-in
    with pytest.raises(err.StoreFailed, match="another registry"):
        Subjects(SchemaStore(log)).register("s", avro("a"))


def test_a_log_that_is_away_is_reported_and_works_again(topic):
    registry = LocalRegistry(opened(topic))
    registry.register("s", avro())
    topic.away = True
    with pytest.raises(RegistryUnreachable, match="memory"):
        registry.register("s", avro("a"))
    assert registry.latest("s").id == 1  # reading goes on
    topic.away = False
    assert registry.register("s", avro("a")) == 2


def test_records_of_confluents_registry_are_adopted(topic):
    topic.records = [
        (b'{"keytype":"NOOP","magic":0}', None),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"subject":"s","version":1,"id":41,"schema":"\\"string\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    ]
    subjects = opened(topic)
    assert subjects.register("s", Schema("AVRO", '"string"')).id == 41
    assert subjects.config().compatibility is Level.FULL
    assert subjects.register("t", avro()).id == 42


def test_a_reader_does_not_wait_for_a_writer(topic):
    store = SchemaStore(MemoryLog(topic))

    def slow(draft):
        draft.add_version("s", draft.add_schema(avro(), "guid"))
        return Subjects(store).subjects()

    assert store.write(slow) == []
    assert Subjects(store).subjects() == ["s"]
