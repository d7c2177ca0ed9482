"""SHOW UPGRADES and DESCRIBE UPGRADE: the history, what is being built, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ksql.control.engine.catch_up import CatchUpSpeed
from ksql.control.engine.changes import BeginRebuild, CutOverQuery, applied
from ksql.control.planning.rebuild import stated_mode
from ksql.control.rebuild_supervisor import RebuildSupervisor
from ksql.control.statements.execute import RequestFailed, is_distributed, session
from ksql.control.statements.services import UpgradeReports
from ksql.control.statements.show_upgrades import UnknownUpgrade, replacing
from ksql.control.statements.upgradereport import UpgradeProgress
from ksql.core.config import Settings
from ksql.core.query_version import QueryVersion
from ksql.core.records import QueryId
from ksql.exec.ports import BuildProgress
from ksql.sql.catalog.model import CutOver, Rebuild
from tests.unit.control.engine.test_command_execution import COUNT, MORE, S
from tests.unit.server.entities import UPGRADE
from tests.unit.world import World

ID = QueryId("CTAS_N_1")
CANDIDATE = QueryVersion(ID, 7)
BUILDING = replace(UPGRADE, status="building", finished=None, gap_ms=None)
OTHER = replace(UPGRADE, id="af01", query_id="CTAS_M_2", source="M", mode="in_place")

BACKFILLED = (
    "CREATE OR REPLACE TABLE N WITH (REPLACE_MODE='backfill') AS "
    "SELECT K, COUNT(*) AS C, SUM(A) AS A FROM S GROUP BY K"
)
BACKFILL = f"{BACKFILLED};"


class History(UpgradeReports):
    """A ledger that has these upgrades."""

    def __init__(self, *known):
        self.known = known

    def upgrades(self, query_id):
        return tuple(row for row in self.known if query_id in (None, row.query_id))

    def upgrade(self, upgrade_id):
        return next((row for row in self.known if row.id == upgrade_id), None)


@pytest.fixture
def world():
    world: Any = World(S, COUNT)
    world.services.history = History(OTHER, UPGRADE)
    world.runner.progress = lambda version: None
    return world


def begin(world, **modes):
    query = replace(world.query("N"), version_number=7, offset=7, statement=MORE)
    rebuild = Rebuild(candidate=query, source=world.catalog.source("N"), **modes)
    world.engine.catalog = applied(world.catalog, BeginRebuild(rebuild))
    return query


def cut_over(world, **modes):
    query = replace(begin(world, **modes), cut_over=CutOver(8, 0))
    change = CutOverQuery(query, world.catalog.source("N"), 5000)
    world.engine.catalog = applied(world.catalog, change)


def run_to_cut_over(world, text):
    world.run(text)
    world.drain()
    RebuildSupervisor(world.engine, Settings()).step()
    assert not world.catalog.rebuilds


def one(world, text):
    [answer] = world.run(text)
    return answer


def ids(world, text):
    return [row.id for row in one(world, text).upgrades]


def refused(world, text):
    with pytest.raises(RequestFailed) as failed:
        world.run(text)
    return failed.value.error


# --- the history


@pytest.mark.parametrize("text", ["SHOW UPGRADES;", "LIST UPGRADES;"])
def test_all_upgrades_are_listed(world, text):
    answer = one(world, text)
    assert answer.upgrades == (OTHER.info, UPGRADE.info)
    assert answer.warnings == ()


@pytest.mark.parametrize("name", ["N", "n", "CTAS_N_1", "ctas_n_1"])
def test_the_upgrades_of_a_table_or_a_query(world, name):
    assert ids(world, f"SHOW UPGRADES FOR {name};") == [UPGRADE.id]


def test_a_query_that_is_gone_has_its_upgrades_still(world):
    assert ids(world, "SHOW UPGRADES FOR CTAS_M_2;") == [OTHER.id]


def test_a_declared_stream_has_none(world):
    assert ids(world, "SHOW UPGRADES FOR S;") == []


def test_a_name_that_nothing_has(world):
    error = refused(world, "SHOW UPGRADES FOR NN;")
    assert error.message == "There is no stream, table or query NN."
    assert "N" in error.hint


def test_an_upgrade_is_described(world):
    answer = one(world, f"DESCRIBE UPGRADE '{UPGRADE.id}';")
    assert (answer.upgrade_description, answer.warnings) == (UPGRADE, ())


def test_an_upgrade_that_is_not_there(world):
    error = refused(world, "DESCRIBE UPGRADE 'none';")
    assert isinstance(error, UnknownUpgrade)
    assert "'none'" in error.message


@pytest.mark.parametrize("text", ["SHOW UPGRADES;", "DESCRIBE UPGRADE 'x';"])
def test_the_leader_is_asked(world, text):
    assert is_distributed(text, session(world.services, world.settings, {}, {}))


# --- what is being built


def reading(position, rate, **more):
    return BuildProgress({"s": {0: 0}}, {"s": {0: position}}, {"s": {0: 400}}, rate, 64, **more)


def test_a_rebuild_shows_how_far_it_is(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(300, 50.0)}.get
    [row] = one(world, "SHOW UPGRADES FOR N;").upgrades
    expected = UpgradeProgress(
        records_read=300,
        records_left=100,
        percent=75,
        records_per_second=50.0,
        estimated_end=3000,  # the clock says 1000
        lag_seconds=2.0,
        state_bytes=64,
    )
    assert row == replace(BUILDING, progress=expected).info
    described = one(world, f"DESCRIBE UPGRADE '{BUILDING.id}';").upgrade_description
    assert described.progress == expected


def test_a_rebuild_that_stands_still_has_no_end(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(300, 0.0, problem="it failed")}.get
    [row] = one(world, "SHOW UPGRADES;").upgrades
    assert (row.progress.estimated_end, row.progress.lag_seconds) == (None, None)
    assert row.progress.trouble == "it failed"


def test_a_cut_over_that_fails_is_the_trouble(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(400, 50.0)}.get
    world.services.rebuild_problem = {CANDIDATE: "they did not meet"}.get
    [row] = one(world, "SHOW UPGRADES;").upgrades
    assert row.progress.trouble == "they did not meet"


def test_a_candidate_that_fails_is_the_trouble_after_a_failed_cut_over(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(400, 0.0, problem="it failed")}.get
    world.services.rebuild_problem = {CANDIDATE: "they did not meet"}.get
    [row] = one(world, "SHOW UPGRADES;").upgrades
    assert row.progress.trouble == "it failed"


def test_a_rebuild_that_does_not_catch_up_has_no_end(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(300, 50.0)}.get
    world.services.rebuild_growth = {CANDIDATE: CatchUpSpeed(3000.0, 5000.0)}.get
    answer = one(world, "SHOW UPGRADES;")
    progress = answer.upgrades[0].progress
    assert (progress.estimated_end, progress.lag_seconds) == (None, None)
    assert (progress.records_per_second, progress.input_per_second) == (3000.0, 5000.0)
    assert progress.trouble == "does not catch up at 3,000/s against 5,000/s"
    [warning] = answer.warnings
    assert warning.message == f"The rebuild of {ID} does not catch up at 3,000/s against 5,000/s."
    assert one(world, f"DESCRIBE UPGRADE '{BUILDING.id}';").warnings == answer.warnings


def test_the_bytes_that_a_rebuild_has_read(world):
    begin(world)
    world.services.history = History(BUILDING)
    world.runner.progress = {CANDIDATE: reading(300, 50.0, record_bytes=12.5)}.get
    assert one(world, "SHOW UPGRADES;").upgrades[0].progress.bytes_read == 3750


@pytest.mark.parametrize("row", [UPGRADE, replace(BUILDING, id="default_/CTAS_N_1/5")])
def test_no_other_upgrade_of_the_query_has_the_progress(world, row):
    begin(world)
    world.services.history = History(row)
    world.runner.progress = {CANDIDATE: reading(300, 50.0)}.get
    assert one(world, "SHOW UPGRADES;").upgrades == (row.info,)


# --- without a ledger


def test_the_catalog_knows_what_is_being_built(world):
    begin(world)
    world.services.history = UpgradeReports()
    world.runner.progress = {CANDIDATE: reading(300, 50.0)}.get
    answer = one(world, "SHOW UPGRADES;")
    [row] = answer.upgrades
    assert (row.id, row.mode, row.status) == (UPGRADE.id, "rebuild", "building")
    assert row.progress.percent == 75
    assert "The ledger cannot be read" in answer.warnings[0].message
    described = one(world, f"DESCRIBE UPGRADE '{row.id}';")
    assert described.upgrade_description.statement == MORE
    assert described.upgrade_description.former_statement == COUNT
    assert described.warnings == answer.warnings


def test_the_catalog_knows_the_last_cut_over(world):
    cut_over(world)
    world.services.history = UpgradeReports()
    [row] = one(world, "SHOW UPGRADES FOR N;").upgrades
    assert (row.id, row.status, row.begun) == (UPGRADE.id, "switched", None)


@pytest.mark.parametrize(
    ("modes", "mode"),
    [({}, "rebuild"), ({"backfill": True}, "backfill"), ({"rollback": True}, "rollback")],
)
def test_the_catalog_knows_how_a_query_was_replaced(world, modes, mode):
    cut_over(world, **modes)
    world.services.history = UpgradeReports()
    [building] = one(world, "SHOW UPGRADES;").upgrades
    assert (building.mode, building.status) == (mode, "switched")


def without_history(world):
    world.services.history = UpgradeReports()
    [row] = one(world, "SHOW UPGRADES;").upgrades
    return row


def test_the_catalog_knows_a_backfill_that_was_replaced_in_place_since():
    world = World(S, COUNT)
    run_to_cut_over(world, BACKFILL)
    in_place = BACKFILLED.replace(" WITH (REPLACE_MODE='backfill')", "")
    world.run(f"{in_place} HAVING COUNT(*) > 1;")
    again = World(log=world.log, topics=world.topics)
    for offset, command in enumerate(world.log.commands):
        again.engine.replay(offset, command)
    for server in (world, again):
        row = without_history(server)
        assert (row.id, row.mode, row.status) == ("default_/CTAS_N_1/2", "backfill", "switched")
        described = one(server, f"DESCRIBE UPGRADE '{row.id}';").upgrade_description
        assert (described.former_statement, described.statement) == (COUNT, BACKFILL)


def test_the_catalog_knows_a_rollback_by_its_own_id():
    world = World(S, COUNT)
    run_to_cut_over(world, BACKFILL)
    run_to_cut_over(world, "ROLLBACK UPGRADE OF N;")
    row = without_history(world)
    offset = next(iter(world.catalog.former_versions.values())).replaced_by.candidate.offset
    assert (row.id, row.mode) == (f"default_/CTAS_N_1/0-{offset}", "rollback")


def test_a_rollback_is_built_under_an_id_of_its_own(world):
    cut_over(world)
    world.services.history = UpgradeReports()
    [begun] = world.engine.dry_run(
        world.parse("ROLLBACK UPGRADE OF N;"), "", world.settings
    ).changes
    world.engine.catalog = applied(world.catalog, begun)
    rollback, _ = one(world, "SHOW UPGRADES;").upgrades
    assert (rollback.id, rollback.mode) == ("default_/CTAS_N_1/0-0", "rollback")


def test_an_upgrade_that_only_the_ledger_knows(world):
    world.services.history = UpgradeReports()
    error = refused(world, "DESCRIBE UPGRADE 'none';")
    assert error.code == 50300
    assert "cannot be read" in error.detail


def test_the_catalog_has_no_rows_of_other_queries(world):
    world.run(COUNT.replace("TABLE N", "TABLE M"))
    begin(world)
    world.services.history = UpgradeReports()
    assert ids(world, "SHOW UPGRADES FOR M;") == []


# --- a rollback of an upgrade in place


def test_the_former_statement_is_the_way_back(world):
    having = COUNT.replace("CREATE", "CREATE OR REPLACE").replace(";", " HAVING COUNT(*) > 1;")
    world.run(having)
    row = replace(
        OTHER,
        query_id=ID,
        former_statement=COUNT,
        statement=having,
        classes=("data selection",),
    )
    world.services.history = History(replace(row, statement="an earlier one"), row)
    error = refused(world, "ROLLBACK UPGRADE OF N;")
    way_back = error.hint.split("former statement:\n")[1]
    assert way_back == COUNT.replace("CREATE TABLE", "CREATE OR REPLACE TABLE")
    world.run(way_back)


def test_former_statement_that_lacks_columns_is_no_way_back(world):
    """The result's readers know them: it would be refused."""
    world.run(MORE)
    row = replace(OTHER, query_id=ID, former_statement=COUNT, statement=MORE)
    row = replace(row, classes=("data selection", "schema evolution"))
    world.services.history = History(row)
    assert "SHOW UPGRADES FOR N;" in refused(world, "ROLLBACK UPGRADE OF N;").hint
    assert "was removed" in refused(world, COUNT.replace("CREATE", "CREATE OR REPLACE")).text()


@pytest.mark.parametrize(
    ("history", "status"), [(UpgradeReports(), ""), (None, "refused"), (None, "rolled_back")]
)
def test_a_former_statement_that_is_not_known(world, history, status):
    row = replace(OTHER, query_id=ID, former_statement=S, statement=COUNT, status=status)
    world.services.history = history or History(row)
    assert "SHOW UPGRADES FOR N;" in refused(world, "ROLLBACK UPGRADE OF N;").hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE A AS SELECT 1;", "CREATE OR REPLACE TABLE A AS SELECT 1;"),
        ("create stream a;", "create OR REPLACE stream a;"),
        ("CREATE\nOR REPLACE TABLE A;", "CREATE\nOR REPLACE TABLE A;"),
        ("create or replace table a;", "create or replace table a;"),
        ("INSERT INTO A SELECT 1;", "CREATE OR REPLACE QUERY Q_1 AS INSERT INTO A SELECT 1;"),
    ],
)
def test_a_statement_becomes_one_that_may_replace(text, expected):
    assert replacing(text, "Q_1") == expected


@pytest.mark.parametrize(
    ("stated", "mode"),
    [
        ("", "in_place"),
        ("WITH (REPLACE_MODE = 'In_Place')", "in_place"),
        ("WITH (partitions = 1, replace_mode = 'rebuild')", "rebuild"),
        ("WITH (REPLACE_MODE = 'auto')", "rebuild"),
        ("WITH (REPLACE_MODE = 'Backfill')", "backfill"),
    ],
)
def test_the_mode_of_an_attempt_that_is_refused(world, stated, mode):
    text = MORE.replace("TABLE N AS", f"TABLE N {stated} AS")
    assert stated_mode(world.parse(text)) == mode
