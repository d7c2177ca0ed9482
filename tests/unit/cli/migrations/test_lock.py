"""Two ``apply`` at once: one works, the other is refused."""

from __future__ import annotations

import pytest

from server.cli.client import Client, Unreachable
from server.cli.migrations.lock import CLAIM, holder_of
from server.cli.migrations.metadata import NONE, VersionRow

RIDES = (
    "CREATE STREAM rides (bike STRING KEY, metres INT) "
    "WITH (KAFKA_TOPIC='rides', VALUE_FORMAT='JSON', PARTITIONS=1);"
)
FAR = "CREATE STREAM far AS SELECT * FROM rides;"


def claim(token, previous=NONE, state="RUNNING"):
    return VersionRow(CLAIM, CLAIM, "somebody", state, token, "1", "", previous)


def released(token):
    return claim(token, state="MIGRATED")


@pytest.mark.parametrize(
    ("events", "holder"),
    [
        ([], None),
        ([claim("a")], "a"),
        ([claim("a"), claim("b")], "a"),
        ([claim("a"), released("a")], None),
        ([claim("a"), released("a"), claim("b")], "b"),
        ([claim("a"), claim("b"), released("b")], "a"),
        ([claim("a"), claim("b"), released("a")], None),
        ([claim("a"), claim("b", previous="a")], "b"),
        ([claim("a"), claim("b", previous="a"), claim("c", previous="a")], "b"),
        ([claim("a"), claim("b", previous="a"), released("a")], "b"),
        ([released("a"), claim("b")], "b"),
        ([claim("a"), released("a"), claim("b", previous="a")], "b"),
    ],
)
def test_first_claim_counts_until_it_is_released(events, holder):
    claimed = holder_of(events)
    assert (None if claimed is None else claimed.checksum) == holder


def during(monkeypatch, mark, act):
    """Call ``act`` once, before the statement that contains the mark."""
    execute = Client.execute
    acted: list[str] = []

    def observed(client, text, *more, **options):
        if mark in text and not acted:
            acted.append(True)
            act()
        return execute(client, text, *more, **options)

    monkeypatch.setattr(Client, "execute", observed)


def test_second_apply_is_refused_and_the_first_ends_well(tool, monkeypatch):
    tool.file(1, "rides", RIDES + FAR)
    refusals = []
    during(monkeypatch, "STREAM far", lambda: refusals.append(tool.fails("apply", "--all")))
    tool.run("apply", "--all")
    [said] = refusals
    assert "is at work: only one may be" in said
    assert "process " in said
    assert tool.states() == ["MIGRATED"]


def test_claim_is_given_back_after_a_failure(tool):
    tool.file(1, "rides", RIDES + "CREATE STREAM far AS SELECT * FROM nowhere;")
    tool.fails("apply", "--all")
    assert "at work" not in tool.fails("apply", "--all")


def test_killed_apply_is_taken_over(tool, monkeypatch):
    tool.file(1, "rides", RIDES + FAR)
    execute = Client.execute
    gone = False

    def killed(client, text, *more, **options):
        nonlocal gone
        gone = gone or "STREAM far" in text
        if gone:
            raise Unreachable("no answer")
        return execute(client, text, *more, **options)

    monkeypatch.setattr(Client, "execute", killed)
    status, said, _ = tool.ended("apply", "--all")
    assert status == 1
    assert "The next apply needs --take-over." in said
    monkeypatch.setattr(Client, "execute", execute)
    assert "--take-over" in tool.fails("apply", "--all")
    said = tool.run("apply", "--all", "--take-over")
    assert "Taking over from process" in said
    assert "1 of 2 statement(s) were carried out" in said
    assert tool.states() == ["MIGRATED"]


def test_apply_that_was_taken_over_by_mistake_ends_before_its_next_statement(tool, monkeypatch):
    tool.file(1, "rides", RIDES + FAR)
    over = []
    during(
        monkeypatch,
        "'1/statements'",
        lambda: over.append(tool.fails("apply", "--all", "--take-over")),
    )
    assert "Another apply is at work: only one may be" in tool.fails("apply", "--all")
    assert "A stream with the same name already exists" in over[0]


@pytest.mark.parametrize(
    ("far", "why"),
    [(FAR, "already exists"), (FAR.replace("STREAM", "STREAM IF NOT EXISTS"), "at work")],
)
def test_what_another_apply_has_recorded_stays_when_the_former_one_goes_on(
    tool, monkeypatch, far, why
):
    tool.file(1, "rides", RIDES + far)
    tool.file(2, "near", "CREATE STREAM near AS SELECT * FROM rides WHERE metres < 10;")
    during(monkeypatch, " far ", lambda: tool.run("apply", "--all", "--take-over"))
    assert why in tool.fails("apply", "--all")
    assert tool.states() == ["MIGRATED", "MIGRATED"]
    assert "No eligible migrations found." in tool.run("apply", "--all")


def test_dry_run_needs_no_claim(tool, monkeypatch):
    tool.file(1, "rides", RIDES + FAR)
    during(monkeypatch, "STREAM far", lambda: tool.run("apply", "--all", "--dry-run"))
    tool.run("apply", "--all")
