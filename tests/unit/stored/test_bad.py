"""Stored data that is cut off, unknown or altered: the error names the place and what to do."""

from __future__ import annotations

import json
import shutil

import pytest

from ksql.app.state import StateDir
from ksql.control.engine.changes import PutQuery
from ksql.control.log.log import AppliedOffsetFile
from ksql.control.log.quarantine import UnreadableCommand
from ksql.control.log.record import decode
from ksql.core.config import Settings
from ksql.core.error_table import UNKNOWN_PAGE
from ksql.core.errors import KsqlError
from ksql.kafka.settings import KafkaSettings
from ksql.registry import records
from ksql.registry.kafkalog import KafkaSchemaLog
from ksql.spark.checkpoint import (
    checkpoint,
    checkpoint_topics,
    incarnations,
    plan_fingerprint,
    results_topic,
)
from ksql.spark.task import codes
from ksql.spark.task.pages import DamagedPage, PagedStore
from ksql.sql.plan.codec import UnreadablePlan, loads
from ksql.views import store_manager
from ksql.views.stores import formats
from ksql.views.stores.base import NewerStore, StoreDamaged
from ksql.views.stores.rocks import StoreBudget, destroy
from ksql.views.stores.txn import TxnStore
from tests.stored import make
from tests.stored.corpora import V1
from tests.stored.lines import dumped, read_lines
from tests.stored.memory import Pages
from tests.unit.views.stores.support import apply, database_of


def state_dir(place):
    settings = Settings({"ksql.state.dir": str(place), "ksql.service.id": "kept_"})
    StateDir.open(settings, lambda: "new").close()


READERS = {
    "service.json": state_dir,
    "life.json": incarnations.incarnation_of,
    "carried_out.json": lambda place: AppliedOffsetFile(place / "carried_out.json").read(),
    "topics.json": checkpoint_topics.read,
    "results.json": lambda place: results_topic.read(place, make.RESULTS),
    "shape.json": plan_fingerprint.read,
    "code.json": codes.read,
    "topic.json": store_manager.read,
    "starts-1.json": lambda place: checkpoint.read_starts(place / "starts-1.json"),
}
VERSIONS = {"service.json": "format", "life.json": "format"}
COMMAND = next(line for line in read_lines(V1 / "commands.jsonl") if "CTAS_Q4" in line["value"])[
    "value"
]
PLAN = next(
    change.query.plan
    for line in read_lines(V1 / "commands.jsonl")
    for change in decode(0, line["key"].encode(), line["value"].encode()).changes
    if isinstance(change, PutQuery)
)


def altered(text, key):
    """The texts of a stored object that nobody has written, each with what is said of it."""
    text = text.strip()
    body = json.loads(text)
    yield from ((text[:end], "") for end in (0, 1, len(text) // 2, len(text) - 1))
    yield from ((other, "") for other in ("null", "[]", "7", '"x"', "\x00"))
    if key not in body:
        return
    yield dumped({**body, "more": 1}), "more"
    yield dumped({**body, key: 99}), "99"
    yield from ((dumped({**body, key: version}), "") for version in (0, -1, "1", None, True, 1.0))
    for name in body:
        yield dumped({other: value for other, value in body.items() if other != name}), name


FILES = [
    (name, text, said)
    for name in READERS
    for text, said in altered(
        (V1 / "files" / name).read_text("utf-8"), VERSIONS.get(name, "version")
    )
]


@pytest.mark.parametrize(("name", "text", "said"), FILES)
def test_a_file(tmp_path, name, text, said):
    shutil.copy(V1 / "files" / name, tmp_path)
    READERS[name](tmp_path)  # as it is, it is read
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(KsqlError) as caught:
        READERS[name](tmp_path)
    error = caught.value
    where = str(tmp_path) if said == "99" else str(tmp_path / name)
    assert where in error.message
    assert said in error.text()
    assert error.hint
    assert (tmp_path / name).read_text("utf-8") == text


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "1\n{}\n{}",
        "v0\n{}\n{}",
        "v1\n{}",
        "v1\n{}\n",
        'v1\n{}\n{"s":{"0":',
        "v1\n{}\n[]",
        'v1\n{}\n{"s":{"0":{}}}',
    ],
)
def test_a_file_of_sparks_checkpoint(tmp_path, lines):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text(lines)
    with pytest.raises(checkpoint.CheckpointDamaged, match="offsets/4 is damaged") as caught:
        checkpoint.planned(tmp_path)
    assert "ksql.state.anew" in caught.value.hint


@pytest.mark.parametrize("line", ["v2", "\0v2"])
def test_a_file_of_a_later_sparks_checkpoint(tmp_path, line):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text(f'{line}\n{{}}\n{{"s":{{"0":7}}}}')
    with pytest.raises(checkpoint.NewerCheckpoint, match="offsets/4 has format 2") as caught:
        checkpoint.planned(tmp_path)
    assert caught.value.hint == "Start the version that wrote it."


# --- commands and plans -------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "said"), list(altered(COMMAND, "version")))
def test_a_command(text, said):
    refused_command(text, said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"$":"changes.PutQuery"', '"$":"changes.Put"', "the tag 'changes.Put' is not known"),
        ('"$":"changes.PutQuery"', '"$":7', "the tag 7 is not known"),
        ('"kind":"CTAS"', '"kind":"C"', "'C' is no kind of a model.PersistentQuery"),
        ('"paused":', '"rests":', "a model.PersistentQuery has no field 'rests'"),
        ('"sink":"Q4",', "", "a model.PersistentQuery lacks the field 'sink'"),
        ('"plan":"{', '"plan":"', "the stored plan is damaged"),
        (
            '\\"version\\":2',
            '\\"version\\":8',
            "the plan has format 8, this version reads up to 7. ",
        ),
        ("nodes.Filter", "nodes.Sieve", "the tag 'nodes.Sieve' is not known"),
        ('\\"literals\\"', '\\"constants\\"', "a nodes.Fold has no field 'constants'"),
    ],
)
def test_a_part_of_a_command(old, new, said):
    assert old in COMMAND
    refused_command(COMMAND.replace(old, new), said)


def refused_command(text, said):
    with pytest.raises(UnreadableCommand) as caught:
        decode(12, b'"table/`Q4`/create"', text.encode())
    error = caught.value
    assert "the command at offset 12" in error.message
    assert said in error.detail
    assert "ksql.command.topic.skip=12" in error.hint


@pytest.mark.parametrize(("text", "said"), list(altered(PLAN, "version")))
def test_a_plan(text, said):
    with pytest.raises(UnreadablePlan) as caught:
        loads(text)
    assert said in caught.value.text()


# --- states and tables --------------------------------------------------------------------------


def read_pages(entries):
    store = PagedStore(make.unhexed(entries))
    return {space: dict(store.scan(space)) for space in make.paged_content()}


def test_pages_that_are_cut_off():
    [frozen] = read_lines(V1 / "pages.jsonl")
    for key, value in frozen.items():
        for end in (0, 2, len(value) // 4 * 2, len(value) - 2):
            with pytest.raises(DamagedPage, match="the query's state is damaged") as caught:
                read_pages({**frozen, key: value[:end]})
            assert "ksql.state.anew" in caught.value.hint


@pytest.mark.parametrize("version", ["00", "02", "ff"])
def test_pages_of_an_unknown_version(version):
    [frozen] = read_lines(V1 / "pages.jsonl")
    for key, value in frozen.items():
        with pytest.raises(UNKNOWN_PAGE.base, match=f"has format {int(version, 16)}"):
            read_pages({**frozen, key: version + value[2:]})


def test_a_value_in_a_page_that_is_cut_off():
    backend = Pages()
    store = PagedStore(backend)
    store.put(b"g", b"k", ["a text", 7])
    store.flush()
    [(key, value)] = backend.entries.items()
    whole = b"\xa6a text"
    assert whole in value
    broken = Pages({key: value.replace(whole, b"\xc7a text")})
    with pytest.raises(DamagedPage, match="the query's state is damaged"):
        PagedStore(broken).get(b"g", b"k")
    with pytest.raises(DamagedPage, match="the query's state is damaged"):
        list(PagedStore(broken).scan(b"g"))


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"", StoreDamaged, "0 bytes only"),
        (formats.pack(b"x", 1)[:8], StoreDamaged, "8 bytes only"),
        (b"\x00" + formats.pack(b"x", 1)[1:], StoreDamaged, "format 0"),
        (b"\x02" + formats.pack(b"x", 1)[1:], NewerStore, "a stored value has format 2"),
    ],
)
def test_a_row_of_a_table(tmp_path, data, error, said):
    store = TxnStore.open(tmp_path / "0", StoreBudget())
    try:
        apply(store, [(b"a", b"1", 1), (b"b", b"2", 2)], 2)
        database_of(store).put(b"\x01a", data)
        for read in (
            lambda: store.get(b"a"),
            lambda: list(store.scan()),
        ):
            with pytest.raises(error) as caught:
                read()
            assert said in caught.value.text()
            assert f"the store {tmp_path / '0'}" in caught.value.message
            assert "delete the store: the topic refills it" in caught.value.hint
        assert store.get(b"b") == (b"2", 2)
    finally:
        store.close()


@pytest.mark.parametrize("key", [b"\x00format", b"\x00position"])
def test_the_description_of_a_table(tmp_path, key):
    store = TxnStore.open(tmp_path / "0", StoreBudget())
    database_of(store).put(key, b"\x00")
    store.close()
    with pytest.raises(StoreDamaged, match=str(tmp_path / "0")):
        TxnStore.open(tmp_path / "0", StoreBudget())
    destroy(tmp_path / "0")  # nothing holds it any more


# --- the schema registry ------------------------------------------------------------------------


class Record:
    def __init__(self, offset, key, value):
        self.offset, self.key, self.value = offset, key.encode(), value and value.encode()


class Reader:
    """A reader of Kafka's over records in memory, two at a time."""

    def __init__(self, lines):
        self.records = [Record(n, *line) for n, line in enumerate(lines)]
        self.position = 0

    @property
    def positions(self):
        return {("schemas", 0): self.position}

    def assign(self, positions):
        self.position = positions["schemas", 0]

    def poll(self, timeout_s):
        del timeout_s
        records = self.records[self.position : self.position + 2]
        self.position += len(records)
        return records


def schema_log(lines):
    log = KafkaSchemaLog(KafkaSettings("nowhere:1"), "schemas", 1)
    reader = log._journal._reader = Reader(lines)  # type: ignore[assignment]  # a stand-in
    return log, reader


@pytest.mark.parametrize(
    ("at", "key", "value"),
    [
        (4, None, '{"compatibilityLevel":'),
        (0, None, '{"subject":"s-value"}'),
        (11, None, '{"format":"ksql-spark/2","lastId":9}'),
        (11, None, '{"format":"ksql-spark/1"}'),
        (6, '{"keytype":', "{}"),
    ],
)
def test_a_record_of_the_registry(at, key, value):
    lines = read_lines(V1 / "schemas.jsonl")
    good = lines[at]
    log, reader = schema_log([*lines[:at], [key or good[0], value], *lines[at + 1 :]])
    for _ in range(2):  # it is not stepped over by asking again
        with pytest.raises(records.UnreadableRecord, match=f"at offset {at} of schemas") as caught:
            log.read(to_end=False)
        assert "Start the version that wrote it" in caught.value.hint
    reader.records[at] = Record(at, *good)
    assert log.read(to_end=False) == make.schema_changes()
