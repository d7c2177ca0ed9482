"""``apply``: which files are due, what is recorded, where it stops and where it continues."""

from __future__ import annotations

import pytest

from server.cli.client import Client, Row, ServerFailure, Unreachable
from server.cli.migrations.apply import Progress, Target, due
from server.cli.migrations.check import FileRefused
from server.cli.migrations.failure import MigrationFailed
from server.cli.migrations.metadata import reason
from server.cli.migrations.project import files_in
from server.cli.split import Statement

RIDES = (
    "CREATE STREAM rides (bike STRING KEY, metres INT) "
    "WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='JSON', PARTITIONS=1);\n"
)
FAR = "CREATE STREAM far AS SELECT * FROM rides WHERE metres > 1000;\n"
FARTHER = "CREATE OR REPLACE STREAM far AS SELECT * FROM rides WHERE metres > 2000;\n"
NEVER = "ASSERT TOPIC nowhere TIMEOUT 0 SECONDS;\n"
COLUMNS = "version_key, version, name, state, checksum, previous, error_reason"


def rows(tool, key):
    """The table's row of that key."""
    url = tool.config.read_text().split("ksql.server.url=")[1].split("\n")[0]
    client = Client(url)
    sql = f"SELECT {COLUMNS} FROM MIGRATION_SCHEMA_VERSIONS WHERE version_key='{key}';"
    with client.query(sql, {}, {}) as events:
        values = [event.values for part in events for event in part if isinstance(event, Row)]
    client.close()
    return values


def test_both_rows_of_a_version_are_the_references(tool):
    path = tool.file(1, "rides_of_today", RIDES)
    tool.run("apply", "-a")
    checksum = rows(tool, "1")[0][4]
    assert len(checksum) == 32
    kept = ["1", "rides of today", "MIGRATED", checksum, "<none>", "N/A"]
    assert rows(tool, "CURRENT") == [["CURRENT", *kept]]
    assert rows(tool, "1") == [["1", *kept]]
    tool.run("validate")
    path.write_text(RIDES + "\n")
    assert f"Expected checksum: {checksum}" in tool.fails("validate")
    path.unlink()
    assert "No migrations file found for version with status MIGRATED. Version: 1" in tool.fails(
        "apply", "-a"
    )


def test_a_failure_is_recorded_and_nothing_after_it_is_done(tool):
    tool.file(1, "rides", RIDES + NEVER + FAR)
    tool.file(2, "more", FAR)
    said = tool.fails("apply", "--all")
    assert said == f"Failed to execute sql: {NEVER.strip()} Error: Topic nowhere does not exist\n"
    assert rows(tool, "1")[0][3:] == [
        "ERROR",
        rows(tool, "CURRENT")[0][4],
        "<none>",
        said.strip(),
    ]
    assert tool.states() == ["ERROR", "PENDING"]


def test_it_continues_with_the_statement_that_failed(tool):
    insert = "INSERT INTO rides VALUES ('b1', 7);\n"
    tool.file(1, "rides", RIDES + insert + NEVER + FAR)
    tool.fails("apply", "--all")
    tool.file(1, "rides", f"-- repaired\n{RIDES}{insert}\n{FAR}")
    said = tool.run("apply", "--next")
    assert "2 of 3 statement(s) were carried out by an earlier apply" in said
    assert "3 of 3: Created query" in said
    assert tool.states() == ["MIGRATED"]


def test_settings_and_variables_of_what_was_carried_out_hold_again(tool):
    tool.file(1, "rides", f"DEFINE s='rides'; SET 'auto.offset.reset'='earliest';{RIDES}{NEVER}")
    tool.fails("apply", "--all")
    tool.file(
        1,
        "rides",
        f"DEFINE s='rides'; SET 'auto.offset.reset'='earliest';{RIDES}UNSET 'auto.offset.reset';"
        "CREATE STREAM copy AS SELECT * FROM ${s};",
    )
    assert "Created query" in tool.run("apply", "--all")


def test_changed_statements_begin_again(tool):
    tool.file(1, "rides", RIDES + NEVER)
    tool.fails("apply", "-n")
    tool.file(1, "rides", RIDES.replace("STREAM rides", "STREAM IF NOT EXISTS rides") + FAR)
    said = tool.run("apply", "-n")
    assert "The first 1 statement(s), which were carried out, are others now" in said
    assert "1 of 2: Cannot add stream 'RIDES'" in said


def test_other_values_of_variables_make_other_statements(tool):
    """Else the second half of a file would belong to another environment than the first."""
    rides = RIDES.replace("'rides'", "'${p}rides'")
    tool.file(1, "rides", rides + NEVER)
    tool.fails("apply", "-n", "-d", "p=test_")
    tool.file(1, "rides", rides + FAR)
    assert "carried out already" in tool.run("plan", "-d", "p=test_")
    assert "already exists" in tool.fails("plan", "-d", "p=live_")
    said = tool.ended("apply", "-n", "-d", "p=live_")[1]
    assert "The first 1 statement(s), which were carried out, are others now" in said


def test_value_that_the_file_defines_is_part_of_what_was_carried_out(tool):
    rides = RIDES.replace("'rides'", "'${p}rides'")
    tool.file(1, "rides", f"DEFINE p='a'; DEFINE p='b';{rides}{NEVER}")
    tool.fails("apply", "-n", "-d", "p=c")
    tool.file(1, "rides", f"DEFINE p='a'; DEFINE p='b';{rides}{FAR}")
    assert "3 of 4 statement(s) were carried out" in tool.run("apply", "-n", "-d", "p=d")


def test_statement_whose_record_failed_is_not_carried_out_again(tool, monkeypatch):
    """It may have written a record, or begun a query."""
    execute = Client.execute
    failures: list[str] = []

    def failing(client, text, *more, **options):
        if "'1/statements'" in text and "INSERT INTO rides" in sent[-1] and not failures:
            failures.append(text)
            raise Unreachable("no answer")
        sent.append(text)
        return execute(client, text, *more, **options)

    sent = [""]
    insert = "INSERT INTO rides VALUES ('b1', 7);\n"
    tool.file(1, "rides", RIDES + insert + FAR)
    monkeypatch.setattr(Client, "execute", failing)
    assert "no answer" in tool.fails("apply", "-n")
    said = tool.run("apply", "-n")
    assert "2 of 3 statement(s) were carried out by an earlier apply" in said
    assert sum("INSERT INTO rides" in text for text in sent) == 1


def test_file_that_is_changed_meanwhile_is_recorded_as_it_was_applied(tool, monkeypatch):
    path = tool.file(1, "rides", RIDES)
    execute = Client.execute

    def changing(client, text, *more, **options):
        if "'RUNNING'" in text and "'rides'" in text:
            path.write_text(RIDES.replace("STREAM rides", "STREAM walks"))
        return execute(client, text, *more, **options)

    monkeypatch.setattr(Client, "execute", changing)
    tool.run("apply", "-n")
    monkeypatch.setattr(Client, "execute", execute)
    assert "does not match the checksum" in tool.fails("validate")
    path.write_text(RIDES)
    tool.run("validate")
    tool.file(2, "far", FAR)
    tool.run("apply", "-n")


def test_restart_begins_with_the_first_statement(tool):
    tool.file(1, "rides", RIDES + NEVER)
    tool.fails("apply", "-n")
    said = tool.fails("apply", "-n", "--restart")
    assert "A stream with the same name already exists" in said
    assert rows(tool, "1/statements")[0][4].startswith("0:")


def test_what_was_interrupted_continues(tool, monkeypatch):
    execute = Client.execute

    def interrupted(client, text, *more, **options):
        if "STREAM far" in text:
            raise KeyboardInterrupt
        return execute(client, text, *more, **options)

    tool.file(1, "rides", RIDES + FAR)
    monkeypatch.setattr(Client, "execute", interrupted)
    assert tool.ended("apply", "--all")[0] == 130
    monkeypatch.setattr(Client, "execute", execute)
    assert tool.states() == ["RUNNING"]
    said = tool.run("apply", "--all")
    assert "Version 1 is RUNNING: its apply was interrupted, or another one is at work." in said
    assert "1 of 2 statement(s) were carried out" in said
    assert tool.states() == ["MIGRATED"]


def test_a_server_that_goes_away_is_said_twice_if_it_cannot_be_recorded(tool, monkeypatch):
    execute = Client.execute
    gone = False

    def away(client, text, *more, **options):
        nonlocal gone
        gone = gone or "STREAM far" in text
        if gone:
            raise Unreachable("no answer")
        return execute(client, text, *more, **options)

    tool.file(1, "rides", RIDES + FAR)
    monkeypatch.setattr(Client, "execute", away)
    assert tool.fails("apply", "-n").splitlines() == [
        f"Failed to execute sql: {FAR.strip()} Error: no answer",
        "Failed to write state ERROR of version 1: no answer",
    ]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM rides;", "'SELECT' statements are not supported."),
        ("CREATE STREAM\n  t AS SELEC;", "line 5:8: Syntax Error"),
        ("SET 'a'='b", "the quote ' is open"),
        ("DROP STREAM nowhere;", "Stream NOWHERE does not exist"),
        ("CREATE SINK CONNECTOR c WITH ('a'='b');", "no Kafka Connect is configured"),
    ],
)
def test_a_file_with_a_mistake_changes_nothing(tool, statement, said):
    tool.file(1, "rides", f"-- a mistake comes\n\n{RIDES}{statement}")
    assert said in tool.fails("apply", "-a")
    assert rows(tool, "1")[0][3] == "ERROR"
    tool.file(1, "rides", RIDES)
    assert "1 of 1: Stream created" in tool.run("apply", "-a")


def test_a_class_that_is_not_allowed_changes_nothing(tool):
    tool.file(1, "rides", RIDES + FAR)
    tool.file(2, "farther", f"-- allow: configuration\nCREATE TYPE t AS INT;\n{FARTHER}")
    said = tool.fails("apply", "--all")
    assert "the replacement is of class data selection, which the file does not allow" in said
    assert "It allows: configuration." in said
    tool.file(2, "farther", f"CREATE TYPE t AS INT;\n{FARTHER}")
    said = tool.run("apply", "--all")
    assert "1 of 2: Registered custom type" in said
    assert "2 of 2: Upgrade of class data selection" in said


def test_another_mode_needs_its_word(tool, monkeypatch):
    """Whatever classes the server names: a rebuild takes them all."""

    def rebuilt(_client, text, *_more):
        report = {"mode": "rebuild", "classes": ["topology"], "queryId": "CSAS_FAR_1"}
        return [{"statementText": text, "message": "", "upgrade": report}]

    tool.file(1, "rides", RIDES)
    tool.run("apply", "-a")
    monkeypatch.setattr(Client, "dry_run", rebuilt)
    tool.file(2, "far", FAR)
    said = tool.fails("apply", "-a")
    assert "the replacement is a rebuild, which the file does not allow" in said
    assert "The line '-- allow: rebuild' at its head would allow it." in said
    tool.file(2, "far", f"-- allow: rebuild\n{FAR}")
    planned = tool.run("plan")
    assert "Replaces CSAS_FAR_1   topology   rebuild" in planned
    tool.run("apply", "-a")


AUTO = "CREATE OR REPLACE STREAM far WITH (REPLACE_MODE='auto') AS SELECT "


def test_auto_that_is_taken_in_place_needs_no_word(tool):
    tool.file(1, "rides", RIDES + FAR)
    tool.run("apply", "-a")
    tool.file(2, "farther", f"{AUTO}bike, metres FROM rides WHERE metres > 3000;")
    assert "data selection" in tool.run("plan")
    tool.run("apply", "-a")


def test_auto_that_rebuilds_needs_its_word(tool):
    tool.file(1, "rides", RIDES + FAR)
    tool.run("apply", "-a")
    again = RIDES.replace("STREAM rides", "STREAM walks").split(";")[0]
    tool.file(2, "farther", f"{again}; {AUTO}bike, metres FROM walks WHERE metres > 1000;")
    assert "the replacement is a rebuild, which the file does not allow" in tool.fails(
        "apply", "-a"
    )


def test_rollback_needs_the_word_of_a_rebuild(tool, memory):
    tool.file(1, "rides", RIDES + FAR)
    rebuilt = AUTO.replace("auto", "rebuild")
    tool.file(2, "far", f"-- allow: rebuild\n{rebuilt}bike, metres FROM rides;")
    tool.run("apply", "-a")
    memory.world.engine.cut_over(memory.world.query("FAR").id, memory.world.settings)
    tool.file(3, "back", "-- allow: transparent\nROLLBACK UPGRADE OF far;")
    assert "the replacement is a rebuild, which the file does not allow" in tool.fails("plan")
    assert "'-- allow: rebuild' at its head would allow it" in tool.fails("apply", "-n")
    assert not memory.world.catalog.rebuilds
    tool.file(3, "back", "-- allow: rebuild\nROLLBACK UPGRADE OF far;")
    assert "Rollback of " in tool.run("apply", "-n")
    tool.file(4, "abort", "-- allow: transparent\nABORT UPGRADE OF far;")
    assert "aborted" in tool.run("apply", "-n")


def test_mark_of_the_byte_order_hides_nothing(tool):
    tool.file(1, "rides", RIDES + FAR)
    tool.run("apply", "-a")
    tool.file(2, "farther", f"\ufeff-- allow: configuration\n{FARTHER}")
    assert "It allows: configuration." in tool.fails("apply", "-n")


def test_no_file_has_the_settings_of_another(tool):
    tool.file(1, "a", f"DEFINE s='rides'; SET 'auto.offset.reset'='earliest'; {RIDES}")
    tool.file(2, "b", "UNSET 'auto.offset.reset'; CREATE STREAM c AS SELECT * FROM ${s};")
    assert "auto.offset.reset was not set" in tool.fails("plan")
    tool.file(2, "b", "CREATE STREAM c AS SELECT * FROM ${s};")
    assert "${s}" in tool.fails("plan")
    assert "${s}" in tool.fails("apply", "-a")
    assert tool.states() == ["MIGRATED", "ERROR"]
    assert "1 migration file(s) can be applied" in tool.run("plan", "-d", "s=rides")
    tool.run("apply", "-a", "-d", "s='rides'")


def test_define_takes_a_value(tool):
    assert "--define takes name=value, not 'x'" in tool.fails("apply", "-a", "-d", "x")


def test_a_server_without_a_sandbox_for_clients(tool, monkeypatch):
    def missing(*_request):
        raise ServerFailure(40400, "there is nothing at /ksql/dry-run")

    tool.file(1, "rides", RIDES)
    monkeypatch.setattr(Client, "dry_run", missing)
    assert "has no /ksql/dry-run: it is older than this tool" in tool.fails("apply", "-a")


def test_a_request_that_is_too_large_names_no_statement(tool):
    tool.file(1, "rides", RIDES + "SET 'auto.offset.reset'='earliest';\n" * 1000)
    said = tool.fails("plan")
    assert "the request has more than 1000 statements" in said
    assert "Failed to execute" not in said


@pytest.mark.parametrize(
    ("previous", "target", "versions"),
    [
        ("<none>", Target(all=True), [1, 3, 7]),
        ("1", Target(all=True), [3, 7]),
        ("1", Target(next=True), [3]),
        ("7", Target(next=True), []),
        ("<none>", Target(until=3), [1, 3]),
        ("1", Target(until=5), [3]),
        ("1", Target(version=7), [7]),
        ("1", Target(), [3, 7]),
    ],
)
def test_what_is_due(fresh, previous, target, versions):
    assert [file.version for file in due(_files(fresh), previous, target)] == versions


def test_what_cannot_be_due(fresh):
    with pytest.raises(MigrationFailed, match="No migration file with version 2 exists"):
        due(_files(fresh), "<none>", Target(version=2))
    with pytest.raises(MigrationFailed, match="Last version migrated was 3"):
        due(_files(fresh), "3", Target(version=3))


def _files(fresh):
    for version in (7, 1, 3):
        fresh.file(version, "x", "")
    return files_in(fresh.root / "migrations", print)


@pytest.mark.parametrize("arguments", [("apply",), ("apply", "-a", "-n"), ("apply", "-u", "0")])
def test_bad_options_end_with_status_1(tool, arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        tool.ended(*arguments)
    assert ended.value.code == 1
    assert "See the -h or --help flags for usage information" in capsys.readouterr().err


def test_progress_is_what_was_carried_out():
    one, two = Statement("SET 'a'='b';"), Statement("DROP STREAM s;", 7)
    assert Progress.of([one, two], {}) == Progress.of([one, Statement(two.text)], {})
    assert Progress.of([one], {}) != Progress.of([two], {})
    assert Progress.read(None).count == 0


def test_a_very_long_reason_is_cut():
    assert reason("x" * 5000) == "x" * 3998 + ".."
    assert reason("short") == "short"


def test_a_failure_shows_and_keeps_no_password(tool):
    said_once = "CREATE SOURCE CONNECTOR c WITH ('connector.class'='x', 'a.password'='m4rk3r');"
    tool.file(1, "rides", f"{RIDES}{said_once}\n")
    _, out, errors = tool.ended("apply", "--all")
    [row] = rows(tool, "1")
    assert row[3] == "ERROR"
    assert "'a.password'='***'" in out
    refused = str(FileRefused(Statement(said_once, 1, 1), 0, "why"))
    assert "'a.password'='***'" in refused
    assert "m4rk3r" not in refused + out + errors + str(row)
    assert tool.config.stat().st_mode & 0o777 == 0o600
