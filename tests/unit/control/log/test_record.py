from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ksql.control.engine.changes import EndRebuild, ForgetFormer
from ksql.control.engine.ports import Command, MemoryLog
from ksql.control.log.quarantine import CommandOfKsqlDb, UnreadableCommand
from ksql.control.log.record import (
    VERSION,
    CommandTooLarge,
    check_size,
    decode,
    encode,
)
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from tests.unit.world import World

SCRIPT = """
CREATE TYPE T AS STRUCT<A INT, B ARRAY<STRING>>;
CREATE STREAM S (K STRING KEY, V T, H BYTES HEADER('x'), TS BIGINT)
  WITH (KAFKA_TOPIC='s', PARTITIONS=1, TIMESTAMP='ts');
CREATE TABLE C AS SELECT K, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K;
CREATE STREAM D AS SELECT * FROM S WHERE V->A = 3;
INSERT INTO D SELECT * FROM S;
CREATE OR REPLACE STREAM D2 AS SELECT * FROM S;
"""


def commands():
    world = World(SCRIPT)
    world.run(f"PAUSE {world.query('C').id};")
    world.run(f"TERMINATE {world.query('C').id};")
    world.run("DROP TABLE C DELETE TOPIC; DROP TYPE T;", **{"commit.interval.ms": "7"})
    return world.log.commands


@pytest.mark.parametrize("command", commands(), ids=lambda c: c.id)
def test_every_kind_of_command_comes_back(command):
    key, value = encode(command)
    assert decode(3, key, value) == command
    assert encode(decode(3, key, value)) == (key, value)


def test_the_form_is_the_commands_own_words():
    command = Command("stream/`S`/create", "CREATE ..;", (), (("a", "1"),))
    key, value = encode(command)
    assert json.loads(key) == "stream/`S`/create"
    assert json.loads(value) == {
        "version": 1,
        "statement": "CREATE ..;",
        "streamsProperties": {"a": "1"},
        "changes": [],
    }


def test_only_what_an_older_version_cannot_read_has_a_new_number():
    versions = {c.id: json.loads(encode(c)[1])["version"] for c in commands()}
    assert versions.pop("table/`C`/drop") == 2
    assert set(versions.values()) == {1}


def put(number):
    """A command that puts a query of that version."""
    script = (
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        "CREATE STREAM D AS SELECT * FROM S;"
    )
    source, put_query = World(script, log=MemoryLog()).log.commands[-1].changes
    query = replace(put_query.query, version_number=number)
    return Command("stream/D/create", "", (source, replace(put_query, query=query)))


def test_a_later_version_of_a_query_comes_back_and_has_a_form_of_its_own():
    key, value = encode(put(17))
    assert json.loads(value)["version"] == 4
    assert decode(20, key, value).changes[1].query.version == QueryVersion(QueryId("CSAS_D_1"), 17)
    assert b"version_number" not in value
    assert json.loads(encode(put(0))[1])["version"] == 1


def test_a_number_below_the_first_is_no_version():
    with pytest.raises(UnreadableCommand) as caught:
        decode(20, *encode(put(-1)))
    assert "-1 is no version of CSAS_D_1" in caught.value.detail


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b'"k"', b'{"version": 99}', f"its version is 99, ours {VERSION}"),
        (b'"k"', None, "JSONDecodeError"),
        (None, b'{"version":1,"statement":"","changes":[],"streamsProperties":{}}', "JSONDecode"),
        (b'"k"', b"{}", "it has no version"),
        (b'"k"', b'{"version":1,"statement":"","changes":[],"streamsProperties":[]}', "Attribute"),
        (
            b'"k"',
            b'{"version":1,"statement":"","changes":[{"$":"x"}],"streamsProperties":{}}',
            "the tag 'x' is not known",
        ),
        (
            b'"k"',
            b'{"version":1,"statement":"","changes":[1],"streamsProperties":{}}',
            "TypeError: 1 is no change",
        ),
        (
            b'"k"',
            b'{"version":1,"statement":"","changes":[{"$":"decimal","v":"x"}],"streamsProperties":{}}',
            "InvalidOperation",
        ),
    ],
)
def test_a_command_that_cannot_be_read_is_never_skipped(key, value, reason):
    with pytest.raises(UnreadableCommand) as caught:
        decode(5, key, value)
    assert caught.value.message == ("the command at offset 5 of the command topic cannot be read")
    assert reason in caught.value.detail


@pytest.mark.parametrize("version", [4, 15])
def test_a_command_of_ksqldb_is_called_that(version):
    """Its version is one that we know, or a later one: neither reason would help."""
    record = {
        "statement": "CREATE STREAM S (K STRING KEY) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');",
        "streamsProperties": {},
        "originalProperties": {"ksql.streams.auto.offset.reset": "latest"},
        "plan": {"@type": "ksqlPlanV1", "statementText": "..", "ddlCommand": None},
        "version": version,
    }
    with pytest.raises(CommandOfKsqlDb) as caught:
        decode(0, b'"stream/`S`/create"', json.dumps(record).encode())
    assert "ksqlDB has written it" in caught.value.detail
    assert caught.value.hint.startswith("Choose another ksql.service.id")


def test_a_command_fits_a_record():
    check_size(Command("stream/S/create", "x" * 900_000, ()))
    with pytest.raises(CommandTooLarge, match="its command has 1000"):
        check_size(Command("stream/S/create", "x" * 1_000_000, ()))


def test_rebuilds_come_back_and_have_a_form_of_their_own():
    world = World(SCRIPT)
    world.run(
        "CREATE OR REPLACE TABLE C WITH (REPLACE_MODE='rebuild') AS SELECT K, COUNT(*) AS N FROM S "
        "WINDOW TUMBLING (SIZE 1 SECOND) WHERE K <> 'x' GROUP BY K;"
    )
    world.engine.cut_over(world.query("C").id, world.settings)
    query_id = world.query("C").id
    ends = (EndRebuild(query_id), ForgetFormer(query_id))
    for command in (*world.log.commands[-2:], Command("upgrade/`C`/abort", "", ends)):
        key, value = encode(command)
        assert json.loads(value)["version"] == 5
        assert decode(9, key, value) == command


def test_backfills_come_back_and_have_a_form_of_their_own():
    world = World(
        "CREATE STREAM S (K STRING KEY, N INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);",
        "CREATE TABLE C AS SELECT K, COUNT(*) AS N FROM S GROUP BY K;",
        "CREATE OR REPLACE TABLE C WITH (REPLACE_MODE='backfill') AS "
        "SELECT K, COUNT(*) AS N, SUM(N) AS T FROM S GROUP BY K;",
    )
    command = world.log.commands[-1]
    key, value = encode(command)
    assert json.loads(value)["version"] == VERSION
    assert decode(7, key, value).changes == command.changes
    assert command.changes[0].rebuild.backfill


def test_user_of_an_upgrade_comes_back_and_has_a_form_of_its_own():
    command = replace(put(0), user="zoë")
    key, value = encode(command)
    assert json.loads(value)["version"] == VERSION
    assert decode(9, key, value) == command


@pytest.mark.parametrize("user", ["1", "null", "[]"])
def test_user_that_is_no_text(user):
    body = f'{{"version":6,"statement":"","changes":[],"streamsProperties":{{}},"user":{user}}}'
    with pytest.raises(UnreadableCommand, match="cannot be read"):
        decode(9, b'"k"', body.encode())
