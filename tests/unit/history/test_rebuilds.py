"""Rebuilds in the ledger, as the engine reports them and as the command topic has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ksql.control.engine.changes import BeginRebuild, CutOverQuery, EndQuery, EndRebuild
from ksql.control.engine.command_execution import Upgrade
from ksql.control.engine.ports import Command
from ksql.control.statements.upgradereport import UpgradeDifference
from ksql.exec.ports import DifferenceCounts, Switch
from ksql.history.resilient import ResilientLedger
from ksql.history.upgrade_recorder import UpgradeRecorder
from ksql.sql.catalog.model import Rebuild
from ksql.sql.upgrade.verdict import Verdict
from tests.unit.control.engine.test_command_execution import COUNT, MORE, S
from tests.unit.world import World

SWITCH = Switch(
    4,
    {"s": {0: 17}},
    gap_ms=31,
    difference=DifferenceCounts(changed=1, added=2, removed=0, equal=5),
)
REFUSED = Verdict.before_plans("another grouping")


@pytest.fixture
def ledger(tmp_path):
    opened = ResilientLedger.open(f"sqlite:///{tmp_path}/ledger.db")
    yield opened
    opened.close()


@pytest.fixture
def world():
    return World(S, COUNT)


def candidate(world):
    """Return the query with another text, as a later version."""
    return replace(world.query("N"), version_number=2, offset=2, statement=MORE)


def recorder(ledger, known=None):
    return UpgradeRecorder(ledger, "default_", lambda: 5, [] if known is None else known)


def begun(history, world):
    new = candidate(world)
    upgrade = Upgrade(
        old=world.query("N"), statement=MORE, verdict=REFUSED, plan=new.plan, offset=2
    )
    history.rebuild_begun(upgrade, new.version)
    return new.version


def entries(ledger):
    assert ledger.flush(20)
    return ledger.upgrades()


def test_a_rebuild_is_recorded_from_begin_to_cut_over(ledger, world):
    history = recorder(ledger)
    version = begun(history, world)
    [building] = entries(ledger)
    assert (building.id, building.status) == ("default_/CTAS_N_1/2", "building")
    assert (building.entry.mode, building.entry.candidate) == ("rebuild", 2)
    assert building.entry.reasons == ("statement: another grouping (unsupported)",)
    history.rebuilt(version, SWITCH)
    [done] = entries(ledger)
    assert (done.status, done.outcome.offsets) == ("switched", {"s": {"0": 17}})
    assert (done.outcome.gap_ms, done.outcome.difference) == (31, SWITCH.difference)


def test_an_aborted_rebuild_says_why(ledger, world):
    history = recorder(ledger)
    history.rebuild_ended(begun(history, world), "ABORT UPGRADE OF N;")
    [upgrade] = entries(ledger)
    assert (upgrade.status, upgrade.outcome.reason) == ("aborted", "ABORT UPGRADE OF N;")


def test_the_end_of_an_unknown_rebuild_is_passed_over(ledger, world):
    history = recorder(ledger)
    version = candidate(world).version
    history.rebuilt(version, SWITCH)
    history.rebuild_ended(version, "it was ended")
    assert entries(ledger) == ()


def commands(world, *ends):
    old, new = world.query("N"), candidate(world)
    source = world.catalog.source("N")
    yield BeginRebuild(Rebuild(candidate=new, source=source))
    for end in ends:
        yield {
            "cut over": CutOverQuery(replace(new, offset=3), source, 99),
            "abort": EndRebuild(old.id),
            "terminate": EndQuery(old.id),
        }[end]


def replayed(world, *ends):
    for offset, change in enumerate(commands(world, *ends), 2):
        world.engine.replay(offset, Command("table/`N`/create", "text", (change,), ()))


def test_a_restart_leaves_a_rebuild_that_is_in_the_catalog(ledger, world):
    begun(recorder(ledger), world)
    again = world.engine.history = recorder(ledger)
    replayed(world)
    again.refill()
    [upgrade] = entries(ledger)
    assert (upgrade.status, upgrade.rebuilt) == ("building", False)
    again.rebuilt(candidate(world).version, SWITCH)
    [upgrade] = entries(ledger)
    assert (upgrade.status, upgrade.outcome.difference) == ("switched", SWITCH.difference)


def test_the_difference_of_a_cut_over_is_added_after_a_restart(ledger, world):
    begun(recorder(ledger), world)
    again = world.engine.history = recorder(ledger)
    replayed(world, "cut over")
    again.refill()
    version = candidate(world).version
    for difference in (SWITCH.difference, DifferenceCounts(9, 9, 9, 9)):
        again.cut_over_written(version, difference)
        [upgrade] = entries(ledger)
        assert (upgrade.status, upgrade.outcome.difference) == ("switched", SWITCH.difference)


def test_the_difference_of_a_rebuild_that_is_not_cut_over_is_not_its_own(ledger, world):
    """It is that of an earlier cut-over of the version, and its query is launched again."""
    history = recorder(ledger)
    version = begun(history, world)
    history.rebuilt(version, replace(SWITCH, difference=None))
    upgrade = Upgrade(old=world.query("N"), statement=COUNT, verdict=REFUSED, offset=4)
    history.rebuild_begun(upgrade, version, rollback=True)
    history.cut_over_written(version, SWITCH.difference)
    history.cut_over_written(replace(version, number=77), SWITCH.difference)
    history.cut_over_written(replace(version, query_id="CTAS_M_1"), SWITCH.difference)
    UpgradeRecorder(ledger, "other_", lambda: 5, []).cut_over_written(version, SWITCH.difference)
    assert [each.outcome and each.outcome.difference for each in entries(ledger)] == [None, None]


@pytest.mark.parametrize(
    ("end", "status"),
    [("cut over", "switched"), ("abort", "aborted"), ("terminate", "aborted")],
)
def test_the_command_topic_knows_how_a_rebuild_ended(ledger, world, end, status):
    begun(recorder(ledger), world)
    again = world.engine.history = recorder(ledger)
    replayed(world, end)
    again.refill()
    [upgrade] = entries(ledger)
    assert (upgrade.status, upgrade.rebuilt) == (status, False)


def test_a_lost_ledger_gets_the_rebuilds_of_the_command_topic(ledger, world):
    known: list[Any] = []
    history = world.engine.history = recorder(ledger, known)
    replayed(world)
    history.refill()
    [upgrade] = entries(ledger)
    assert (upgrade.status, upgrade.rebuilt) == ("building", True)
    assert upgrade.entry.statement_new == MORE
    history.rebuild_ended(candidate(world).version, "ABORT UPGRADE OF N;")
    assert [rebuild.outcome.status for rebuild in known] == ["aborted"]


def test_a_rollback_is_a_mode_of_its_own(ledger, world):
    history = recorder(ledger)
    new = candidate(world)
    upgrade = Upgrade(old=world.query("N"), statement=COUNT, verdict=REFUSED, offset=4)
    history.rebuild_begun(upgrade, new.version, rollback=True)
    [rollback] = entries(ledger)
    assert (rollback.entry.mode, rollback.id) == ("rollback", "default_/CTAS_N_1/2-4")


def test_the_history_is_shown_as_the_ledger_has_it(ledger, world):
    history = recorder(ledger)
    history.rebuilt(begun(history, world), SWITCH)
    entries(ledger)
    [shown] = history.upgrades("CTAS_N_1")
    assert (shown.id, shown.source, shown.mode, shown.status) == (
        "default_/CTAS_N_1/2",
        "N",
        "rebuild",
        "switched",
    )
    assert (shown.former_statement, shown.statement) == (COUNT, MORE)
    assert (shown.begun, shown.finished, shown.gap_ms) == (5, 5, 31)
    assert (shown.offsets, shown.restored) == ({"s": {"0": 17}}, False)
    assert shown.difference == UpgradeDifference(changed=1, added=2, removed=0, equal=5)
    assert history.upgrade(shown.id) == shown
    assert history.upgrades("CTAS_M_1") == ()


def test_the_history_of_another_service_is_not_shown(ledger, world):
    history = recorder(ledger)
    begun(history, world)
    [entry] = entries(ledger)
    other = UpgradeRecorder(ledger, "other_", lambda: 5, [])
    assert other.upgrades(None) == ()
    assert other.upgrade(entry.id) is None
    assert history.upgrade("none") is None


def test_a_ledger_that_is_away_shows_nothing(tmp_path):
    (tmp_path / "file").write_text("no directory")
    away = ResilientLedger.open(f"sqlite:///{tmp_path}/file/ledger.db")
    assert recorder(away).upgrades(None) is None
    assert recorder(away).upgrade("any") is None
    away.close(0.1)
