"""Freeze samples of what the code of today stores: ``python -m tests.stored.make``.

Whatever is there already stays as it is, byte for byte; only what is missing is added. A sample
that was released is never made anew: see the README.
"""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ksql.app.backup import directory
from ksql.app.backup import form as saving
from ksql.app.backup.directory import finish
from ksql.app.backup.form import Manifest, SavedState, SavedTopic
from ksql.app.backup.restore import dense
from ksql.app.backup.save import COMMANDS, SCHEMAS
from ksql.app.state import Identity
from ksql.control.engine.changes import (
    DeleteSubject,
    DeleteTopic,
    EndRebuild,
    ForgetFormer,
    PutType,
    RemoveType,
)
from ksql.control.engine.ports import Command
from ksql.control.log.log import AppliedOffsetFile
from ksql.control.log.quarantine import stepping_over
from ksql.control.log.record import decode, encode
from ksql.control.planning.rebuild import FORGET
from ksql.core.files import Trash
from ksql.core.process import sha256
from ksql.core.query_version import QueryVersion
from ksql.core.records import Offset, RawRecord
from ksql.core.types.model import STRING
from ksql.core.types.windowed import session_key, window_key
from ksql.exec.operators.base import Record
from ksql.exec.operators.keys import pack as pack_key
from ksql.formats.schema_registry import Reference, Schema
from ksql.kafka.leadership_log import LeadershipRecord
from ksql.registry import records
from ksql.spark.checkpoint import (
    checkpoint,
    checkpoint_topics,
    cut_over_mark,
    incarnations,
    plan_fingerprint,
    results_topic,
)
from ksql.spark.task import chunk, codes
from ksql.spark.task.pages import PagedStore
from ksql.views import store_manager
from ksql.views.stores import formats
from ksql.views.stores.base import StoredRow
from ksql.views.stores.disk import DiskStore
from ksql.views.stores.retention_store import RetentionStore
from ksql.views.stores.rocks import StoreBudget
from ksql.views.stores.store_types import open_store
from tests.stored.corpora import CORPORA, FIRST, V1, V2, Corpus
from tests.stored.lines import add_lines, dumped, read_lines, write_lines
from tests.stored.memory import BASE_MS, LATER, PagedRunner, Pages, catalog_text, feed
from tests.stored.samples import forms, samples, stored_keys
from tests.unit.views.stores.support import files_of
from tests.unit.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.core.structs import Form, Structs
    from ksql.registry.records import Change as SchemaChange


def main() -> None:
    """Add what is missing."""
    for form, structs in forms().values():
        file = V1 / "forms" / f"{form.tag}.jsonl"
        _missing(file, lambda cls=form.cls, structs=structs: map(structs.plain, samples(cls)))
        add_lines(file, _not_shown(form, structs, read_lines(file)))
    _missing(V1 / "schemas.jsonl", lambda: map(_schema_line, schema_changes()))
    _missing(V1 / "pages.jsonl", _paged)
    _missing(V1 / "values.jsonl", _values)
    _missing(V1 / "exchange.jsonl", lambda: _exchanged(exchanged_records()))
    _missing(V2 / "exchange.jsonl", lambda: _exchanged(exchanged_lanes()))
    _missing(V2 / "combined.jsonl", lambda: _exchanged(exchanged_states()))
    _small_files(V1 / "files")
    if not (V1 / "files" / store_manager.FILE).exists():
        store_manager.write(V1 / "files", TOPICS["s"])
    if not (V1 / "files" / "code.json").exists():
        codes.write(V1 / "files", CODES)
    for corpus in CORPORA.values():
        if not (corpus.place / "commands.jsonl").exists():
            _world(corpus)
    _missing(V2 / "restored.jsonl", lambda: map(_command_line, restored_commands()))
    _missing(V2 / "rebuilt.jsonl", lambda: map(_command_line, rebuilt_commands()))
    _missing(V2 / "backfilled.jsonl", lambda: map(_command_line, backfilled_commands()))
    _missing(V2 / "users.jsonl", lambda: map(_command_line, commands_of_users()))
    if not (V2 / "backup").exists():
        _backup(V2 / "backup")
    if not (V1 / "disk").exists():
        _disk(V1 / "disk")
    if not (V2 / "disk").exists():
        _hiding(V2 / "disk")


def _missing(file: Path, lines: Callable[[], Any]) -> None:
    if not file.exists():
        write_lines(file, lines())


# --- a backup ---------------------------------------------------------------------------------

REBUILT: Final = """
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='rebuild') AS
  SELECT K, COUNT(*) AS C FROM S WHERE N > 0 GROUP BY K;
"""
BACKFILLED: Final = """
CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);
CREATE TABLE T AS SELECT K, COUNT(*) AS C FROM S GROUP BY K;
CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='backfill') AS
  SELECT K, COUNT(*) AS C, SUM(N) AS N FROM S GROUP BY K;
"""
RESTORED_MS: Final = 1_790_000_000_000


def saved_records(role: str = "commands") -> list[RawRecord]:
    """The records of a small service's command topic, or of its schemas."""
    if role == "schemas":
        return [RawRecord("_schemas", 0, 0, BASE_MS, b'{"keytype":"NOOP"}', None, None)]
    command = Command("type/T/create", "CREATE TYPE T AS STRUCT<A INT>;", (PutType("T", STRING),))
    ended = Command("type/T/drop", "DROP TYPE T;", (RemoveType("T"),))
    topic = "_confluent-ksql-s__command_topic"
    return [
        RawRecord(topic, 0, 0, BASE_MS, *encode(command)),
        RawRecord(topic, 0, 2, BASE_MS + 1, *encode(ended), [("h", b"\xff"), ("g", None)]),
        RawRecord(topic, 0, 4, BASE_MS + 2, b"\xff", None),
    ]


def restored_commands() -> list[Command]:
    """The commands that a restore adds: one that fills a place, one that moves the ids."""
    commands = dense("t", saved_records(), 6, RESTORED_MS)
    return [decode(commands[n].offset, commands[n].key, commands[n].value) for n in (1, -1)]


def rebuilt_commands() -> list[Command]:
    """The commands of a table that is rebuilt, given up once, cut over, and kept for a time."""
    world = World(REBUILT)
    [query] = world.catalog.writers("T")
    former = (EndRebuild(query.id),)
    kept = (ForgetFormer(query.id),)
    world.engine.cut_over(query.id, world.settings)
    ended = Command("upgrade/`T`/abort", "ABORT UPGRADE OF T;", former)
    return [*world.log.commands, ended, Command("upgrade/`T`/forget", FORGET, kept)]


def backfilled_commands() -> list[Command]:
    """The commands of a table that is backfilled and cut over."""
    world = World(BACKFILLED)
    [query] = world.catalog.writers("T")
    world.engine.cut_over(query.id, world.settings)
    return [*world.log.commands]


def commands_of_users() -> list[Command]:
    """The commands of a table that a user has upgraded: in place, then by a rebuild."""
    world = World(REBUILT.partition("CREATE OR")[0])
    for mode, condition in (("in_place", "K <> 'x'"), ("rebuild", "N > 0")):
        text = (
            f"CREATE OR REPLACE TABLE T WITH (REPLACE_MODE='{mode}') AS "
            f"SELECT K, COUNT(*) AS C FROM S WHERE {condition} GROUP BY K;"
        )
        world.engine.execute(world.parse(text), text, world.settings, "ada")
    return world.log.commands


def manifest(topics: tuple[SavedTopic, ...] = (), state: SavedState | None = None) -> Manifest:
    """The manifest of the sample, but for the digests of its files."""
    return Manifest(
        made_ms=RESTORED_MS,
        made_by="0.1.0",
        service_id="s_",
        cluster_id="cluster",
        topics=topics,
        state=state,
    )


def _backup(place: Path) -> None:
    """Of a service with two topics, and of a state directory of two files."""
    root = place / "root"
    (root / "s_").mkdir(parents=True)
    (root / "service.json").write_text(Identity(service_id="s_", state_id="d").text())
    AppliedOffsetFile(root / "s_" / "carried_out.json").write(4)
    files, size = directory.save(root, place / saving.STATE, place / saving.LISTING)
    shutil.rmtree(root)
    saved = SavedState(files=files, bytes=size, sha256=sha256(place / saving.LISTING))
    topics = tuple(_saved(place, *each) for each in (("commands", 6), ("schemas", 2)))
    finish(place, manifest(topics, saved))


def _saved(place: Path, role: str, end: int) -> SavedTopic:
    records = saved_records(role)
    file = place / {"commands": COMMANDS, "schemas": SCHEMAS}[role]
    return SavedTopic(
        file=file.name,
        name=records[0].topic,
        id="anId",
        replicas=1,
        configs={"cleanup.policy": "delete"},
        first=0,
        end=end,
        records=saving.write_records(file, records),
        sha256=sha256(file),
    )


# --- stores on disk -----------------------------------------------------------------------------

STORED_ROWS = [StoredRow(b"key%d" % n, b"value%d" % n, 1_000 + n) for n in range(5)]


def _disk(place: Path) -> None:
    """A store of each type that was closed, and one whose process was killed between two commits.

    Left out is what RocksDB writes for people.
    """
    for kind in ("rocksdb", "txn_rocksdb"):
        store = open_store(kind, place / kind, StoreBudget())
        store.put(STORED_ROWS)
        store.commit(Offset(5), 1_004)
        store.close()
    killed = DiskStore.open(place / "open", StoreBudget())
    killed.put(STORED_ROWS)
    killed.commit(Offset(5), 1_004)
    killed.put([(b"key9", b"value9", 1_009)])
    files_of(killed).flush()
    shutil.copytree(place / "open", place / "killed")
    killed.close()
    shutil.rmtree(place / "open")
    _spare(place)


def _spare(place: Path) -> None:
    for file in (*place.glob("*/LOG*"), *place.glob("*/OPTIONS*"), *place.glob("*/LOCK")):
        file.unlink()


HIDING_MS = 3_600_000


def hiding_rows() -> tuple[list[StoredRow], list[StoredRow]]:
    """The rows of a table of windows, and a later one that hides some of them."""
    rows = [
        StoredRow(window_key(b"key", start), b"value", start) for start in (5_000, 7_000, 9_000_000)
    ]
    return rows[:2], rows[2:]


def _hiding(place: Path) -> None:
    """A store of windows that a retention has hidden and removed."""
    store = RetentionStore(open_store("txn_rocksdb", place / "hiding", StoreBudget()), HIDING_MS)
    for position, rows in enumerate(hiding_rows(), 1):
        store.put(rows)
        store.commit(Offset(position))
    store.tidy()
    store.commit(Offset(2))
    store.close()
    _spare(place)


# --- a service in memory ------------------------------------------------------------------------


def _world(corpus: Corpus) -> None:
    world = World(runner=PagedRunner)
    if corpus.after is not None:
        _go_on(world, corpus.after)
    world.run(corpus.script)
    if corpus is FIRST:
        _more_commands(world)
        (V1 / "catalog.txt").write_text(catalog_text(world.catalog), "utf-8")
    write_lines(corpus.place / "commands.jsonl", map(_command_line, world.log.commands))
    feed(world, corpus.inputs[: corpus.half])
    write_lines(corpus.place / "states.jsonl", _states(world))
    feed(world, corpus.inputs[corpus.half :])
    write_lines(corpus.place / "records.jsonl", records_of(world))


def _go_on(world: World, place: Path) -> None:
    """Begin with the commands of another service, whose topics are there."""
    for offset, line in enumerate(read_lines(place / "commands.jsonl")):
        command = decode(offset, line["key"].encode(), line["value"].encode())
        world.engine.replay(offset, command)
        world.log.commands.append(command)
    for source in world.catalog.sources.values():
        world.topic(source.topic, source.partitions)
    world.engine.start_queries()


def _more_commands(world: World) -> None:
    names = {name: world.query(sink).id for name, sink in (("rests", "KEPT"), ("gone", "GONE"))}
    world.run(LATER.format(**names))
    promised = (DeleteTopic("none", "1"), DeleteSubject("none-value", 3, 2))
    extra = Command("stream/`NONE`/drop", "DROP STREAM NONE;", promised)
    world.log.commands += [extra, stepping_over(3)]


def _not_shown(form: Form, structs: Structs, lines: list[Any]) -> Iterator[Any]:
    """Samples of the alternatives that came after the others were frozen."""
    for key in stored_keys(form):
        shown = {dumped(line.get(key)) for line in lines}
        for value in samples(form.cls, only=form.keys.get(key)):
            plain = structs.plain(value)
            if dumped(plain.get(key)) not in shown:
                yield plain


def _command_line(command: Command) -> dict[str, str]:
    key, value = encode(command)
    return {"key": key.decode(), "value": value.decode()}


def _states(world: World) -> Iterator[dict[str, Any]]:
    yield {"records": sum(map(len, world.topics.records.values()))}
    for query_id, stages in world.runner.pages.items():
        version = QueryVersion(query_id)
        if version in world.runner.running:
            positions = world.runner.running[version].positions
            yield {"query": query_id, "positions": positions, "stages": list(map(hexed, stages))}


def hexed(pages: Pages) -> dict[str, str]:
    """Entries of a state store as text."""
    return {key.hex(): value.hex() for key, value in sorted(pages.entries.items())}


def records_of(world: World) -> Iterator[list[Any]]:
    """The records of all topics in the order in which they came."""
    records = [(each, topic) for topic, log in world.topics.records.items() for each in log]
    for each, topic in sorted(records, key=lambda pair: pair[0].sequence):
        yield [topic, text(each.key), text(each.value), each.timestamp]


def text(data: bytes | None) -> str | None:
    """Bytes as text that can be read."""
    return None if data is None else data.decode("latin-1")


# --- pages and values ---------------------------------------------------------------------------

RUN_TIME: Final[list[Any]] = [
    True, 7, -1, 2**63 - 1, 2**70, 1.5, float("inf"), "ü", b"\x00\xff", Decimal("1.50"), [1, None],
    {"a": 1, 2: [{}]}, [BASE_MS, 3, [4.5], {"k": Decimal("0.10")}], [b"\x00\x00\x00\x01", 5, 1],
]  # fmt: skip


def paged_content() -> dict[bytes, dict[bytes, Any]]:
    """A small space, one of many pages, and one whose values are of every kind."""
    return {
        b"m": {b"clock": [BASE_MS, [1, 2]]},
        b"g": {f"key {n}".encode(): [BASE_MS + n, n, "x" * (n % 40)] for n in range(300)},
        b"v": {str(n).encode(): value for n, value in enumerate(RUN_TIME)},
    }


def _paged() -> Iterator[dict[str, str]]:
    backend = Pages()
    store = PagedStore(backend)
    for space, entries in paged_content().items():
        for key, value in entries.items():
            store.put(space, key, value)
        store.flush()
    yield hexed(backend)


def _values() -> Iterator[dict[str, Any]]:
    for value, timestamp in ((b"", 0), (b'{"A":1}', BASE_MS), (b"\x00\xff", -1)):
        stored = formats.pack(value, timestamp).hex()
        yield {"value": value.hex(), "timestamp": timestamp, "stored": stored}
    yield {"key": "6b", "start": BASE_MS, "stored": window_key(b"k", BASE_MS).hex()}
    end = BASE_MS + 5
    stored = session_key(b"k", BASE_MS, end).hex()
    yield {"key": "6b", "start": BASE_MS, "end": end, "stored": stored}


def exchanged_records() -> dict[str, list[Record]]:
    """Records as an exchange carries them, by name; all but the first are a table's changes."""
    row, old = ("ann", 2, Decimal("1.50")), ("ann", 1, None)
    place = BASE_MS, 1, 2, 7

    def change(new: Any, before: Any) -> list[Record]:
        return [Record(3, pack_key(("g",)), new, *place, [("h", b"x")], before, BASE_MS + 1)]

    return {
        "rows": [Record(0, pack_key(("k", n)), (n, "é"), BASE_MS + n, 0, 1, n) for n in range(2)],
        "old": change(None, old),
        "new": change(row, None),
        "both": change(row, old),
        "mixed": [*change(row, old), *change(None, row), *change(old, None)],
    }


def exchanged_lanes() -> dict[str, list[Record]]:
    """The same of records in lanes."""
    return {
        name: [record._replace(lane=3 if name == "rows" else place) for place, record in each]
        for name, some in exchanged_records().items()
        for each in [list(enumerate(some, start=1))]
    }


def exchanged_states() -> dict[str, list[Record]]:
    """Records in lanes of which some stand for several, with their state and number."""
    one = Record(0, pack_key(("k",)), ("é", 1), BASE_MS, 0, 1, 7, sequence_key=BASE_MS + 5)
    state = one._replace(row=None, offset=8, old=(BASE_MS + 3, 4, {"a": 1}, 2))
    return {"combined": [state, one], "combined in a lane": [one._replace(lane=2)]}


def _exchanged(records: dict[str, list[Record]]) -> Iterator[dict[str, str]]:
    for name, some in records.items():
        stored = chunk.pack_records(some, 5, 6, **chunk_kind(name))
        yield {"name": name, "stored": stored.hex()}


def chunk_kind(name: str) -> dict[str, bool]:
    """The kind of the chunk with a sample's records."""
    combined = name.startswith("combined")
    return {"combined": combined, "changes": name != "rows" and not combined}


# --- the schema registry ------------------------------------------------------------------------


def schema_changes() -> list[SchemaChange]:
    """A change of every kind, with and without what may be left out."""
    avro = Schema("AVRO", '{"type":"string"}')
    proto = Schema("PROTOBUF", 'syntax = "proto3";', (Reference("o.proto", "o", 2),))
    more = {"metadata": {"owner": "ann"}}
    return [
        records.VersionSet(subject="s-value", version=1, id=7, schema=avro),
        records.VersionSet(
            subject="s-value",
            version=2,
            id=8,
            schema=Schema("JSON", '{"type":"object"}'),
            deleted=True,
        ),
        records.VersionSet(subject="p-value", version=1, id=9, schema=proto, more=more),
        records.VersionGone("s-value", 1),
        records.ConfigSet("", "FULL"),
        records.ConfigSet("s-value", "NONE", normalize=True, more={"alias": "x"}),
        records.ConfigSet("s-value"),
        records.ModeSet("", "READONLY"),
        records.ModeSet("s-value"),
        records.SubjectDeleted("s-value", 2),
        records.SubjectCleared("s-value"),
        records.Remembered(9, {"s-value": 2}, moved_in=True),
    ]


def _schema_line(change: SchemaChange) -> list[str | None]:
    key, value = records.encode(change)
    return [key.decode(), None if value is None else value.decode()]


# --- small files --------------------------------------------------------------------------------

IDENTITY: Final = Identity(
    service_id="kept_",
    state_id="0a1b2c",
    cluster_id="cluster",
    command_topic_id="topic-id",
    ended=True,
)
CLAIM: Final = LeadershipRecord(
    id="c1",
    host="host",
    pid=7,
    state_dir="/var/lib/ksql",
    state_id="0a1b2c",
    since_ms=BASE_MS,
    released=True,
)
STARTS: Final = {"s": {"0": 3, "1": 0}}
TOPICS: Final = {"s": "Xq3TQ8vLTtqS1dVv0w2m7A", "t": "0uJt1NnfRV6Gk5iVb4c9dg"}
RESULTS: Final = "_confluent-ksql-default_query_CTAS_T_4-v17-changelog"
SHAPE = {"id": "CTAS_T_4", "sink": "t", "topics": "s", "steps": "aggregate", "buckets": "2"}
CUT_OVER: Final = cut_over_mark.CutOverMark(
    number=17, snapshot=True, done=True, changed=1, added=2, removed=3, equal=4
)
CODES = {"KM": "0f1e2d3c4b5a6978", "LONGEST": "0f1e2d3c4b5a6978 8796a5b4c3d2e1f0"}


def _small_files(place: Path) -> None:
    if place.exists():
        return
    place.mkdir(parents=True)
    (place / "service.json").write_text(IDENTITY.text(), "utf-8")
    incarnations.begin(place, "5f6e7d")
    AppliedOffsetFile(place / "carried_out.json").write(17)
    checkpoint.write_starts(place / "starts-1.json", checkpoint.offsets_of(STARTS))
    checkpoint_topics.write(place, TOPICS)
    results_topic.write(place, RESULTS, TOPICS["t"])
    plan_fingerprint.write(place, SHAPE)
    cut_over_mark.write(place, CUT_OVER)
    (place / "claim.json").write_bytes(CLAIM.encode())
    left = place / "CTAS_T_4"
    left.mkdir()
    moved = Trash(place, lambda: BASE_MS).take(left, "checkpoint", "no query of that name is known")
    about = json.loads((moved.entry / "about.json").read_text("utf-8"))
    (moved.entry / left.name).rmdir()
    (moved.entry / "about.json").rename(place / "about.json")
    moved.entry.rmdir()
    known = (place / "about.json").read_text("utf-8")
    (place / "about.json").write_text(known.replace(about["from"], "/var/lib/CTAS_T_4"), "utf-8")


def unhexed(entries: dict[str, str]) -> Pages:
    """A state store of its frozen entries."""
    return Pages({bytes.fromhex(key): bytes.fromhex(value) for key, value in entries.items()})


if __name__ == "__main__":
    main()
