"""Frozen commands give the catalog that they gave, and frozen states go on as they did."""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem

import pytest

from ksql.control.engine.changes import PutQuery, applied
from ksql.control.log.record import decode, encode
from ksql.spark.task.packing import pack, unpack
from ksql.sql.catalog.catalog import Catalog
from ksql.sql.catalog.model import Topic
from ksql.sql.plan.codec import dumps, loads
from tests.stored.corpora import CORPORA, V1, V2
from tests.stored.lines import read_lines
from tests.stored.make import hexed, records_of, unhexed
from tests.stored.memory import PagedRunner, catalog_text, feed
from tests.unit.world import World

LINES = {name: read_lines(one.place / "commands.jsonl") for name, one in CORPORA.items()}
EVERY = [
    *(line for lines in LINES.values() for line in lines),
    *read_lines(V2 / "restored.jsonl"),
    *read_lines(V2 / "rebuilt.jsonl"),
    *read_lines(V2 / "backfilled.jsonl"),
    *read_lines(V2 / "users.jsonl"),
]
SERVICE = [
    line
    for line in read_lines(V1 / "service" / "topics.jsonl")
    if line["topic"].endswith("_command_topic")
]
RECORDS = {name: read_lines(one.place / "records.jsonl") for name, one in CORPORA.items()}
STATES = {name: read_lines(one.place / "states.jsonl") for name, one in CORPORA.items()}
every_corpus = pytest.mark.parametrize("name", CORPORA)


def commands(lines):
    return [decode(n, line["key"].encode(), line["value"].encode()) for n, line in enumerate(lines)]


@pytest.mark.parametrize("line", [*EVERY, *SERVICE], ids=lambda line: line["key"])
def test_commands_are_read_and_written_as_they_are(line):
    key, value = line["key"].encode(), line["value"].encode()
    command = decode(0, key, value)
    assert encode(command) == (key, value)
    for change in command.changes:
        if isinstance(change, PutQuery):
            assert dumps(loads(change.query.plan)) == change.query.plan


def overloads(value):
    """The overloads of a stored plan."""
    if isinstance(value, dict):
        yield from ([value["overload"]] if "overload" in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from overloads(each)


def test_an_overload_is_stored_as_its_signature():
    names = [
        name
        for command in commands([*EVERY, *SERVICE])
        for change in command.changes
        if isinstance(change, PutQuery)
        for name in overloads(json.loads(change.query.plan))
    ]
    assert len(names) >= 20
    assert all(name.startswith("(") for name in names)


def test_commands_of_every_kind_are_frozen():
    text = "".join(line["value"] for line in EVERY)
    for tag in (file.stem for file in (V1 / "forms").iterdir()):
        if tag.startswith(("changes.", "nodes.", "bound.")):
            assert tag in text, tag


def test_commands_give_the_catalog_that_they_gave():
    catalog = Catalog()
    for command in commands(LINES["first"]):
        catalog = reduce(applied, command.changes, catalog)
    assert catalog_text(catalog) == (V1 / "catalog.txt").read_text("utf-8")


def replayed(name="first"):
    """A service after its commands; its queries wait for records."""
    world = World(runner=PagedRunner)
    world.topics.create(Topic("s", 1, 1))
    for offset, command in enumerate(commands(LINES[name])):
        world.engine.replay(offset, command)
    world.engine.start_queries()
    return world


@every_corpus
def test_replayed_queries_give_the_records_that_they_gave(name):
    world = replayed(name)
    feed(world, CORPORA[name].inputs)
    assert list(records_of(world)) == RECORDS[name]


@every_corpus
def test_states_continue(name):
    world = replayed(name)
    head, *states = STATES[name]
    for topic, key, value, time in RECORDS[name][: head["records"]]:
        data = [None if each is None else each.encode("latin-1") for each in (key, value)]
        world.topics.append(topic, *data, time)
    for line in states:
        pages = [unhexed(stage) for stage in line["stages"]]
        world.runner.adopt(line["query"], pages, line["positions"])
    feed(world, CORPORA[name].inputs[CORPORA[name].half :])
    assert list(records_of(world)) == RECORDS[name]


CORRECTED = {
    # the time of a joined row, not of the deletion that left it behind
    ("tables", "CTAS_P3_5"): {(0, "00", 2, 4, b"\x91\xa2k0", 0): 1600000001000},
}
"""Values that earlier versions stored otherwise, in the same form: by their places."""


def content(entries):
    """The pages of a state with all that is in them."""
    return {key: _content(unpack(bytes.fromhex(value)[1:])) for key, value in entries.items()}


def _content(page):
    if isinstance(page, dict):
        return {key: unpack(value) for key, value in page.items()}
    return [[*space[:-1], space[-1] and _content(space[-1])] for space in page]


@every_corpus
def test_states_are_written_as_they_were(name):
    world = replayed(name)
    feed(world, CORPORA[name].inputs[: CORPORA[name].half])
    for line in STATES[name][1:]:
        mine = [content(hexed(stage)) for stage in world.runner.pages[line["query"]]]
        then = [content(stage) for stage in line["stages"]]
        for (*way, last), value in CORRECTED.get((name, line["query"]), {}).items():
            reduce(getitem, way, then)[last] = value
        assert mine == then


@every_corpus
def test_pages_are_packed_as_they_were(name):
    for line in STATES[name][1:]:
        for stage in line["stages"]:
            for value in map(bytes.fromhex, stage.values()):
                assert value[:1] + pack(unpack(value[1:])) == value
