"""SHOW UPGRADES and DESCRIBE UPGRADE as the terminal draws them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ksql.control.statements import entities as e
from ksql.control.statements.upgradereport import UpgradeDescription
from server.cli.render import grid_of
from server.wire import to_wire
from tests.unit.cli.test_render import shown
from tests.unit.server.entities import PROGRESS, UPGRADE

if TYPE_CHECKING:
    from server.cli.client import JsonObject

BUILDING = replace(UPGRADE, status="building", finished=None, gap_ms=None, progress=PROGRESS)


def listed(*upgrades: UpgradeDescription) -> e.Upgrades:
    return e.Upgrades(statement_text="", upgrades=tuple(row.info for row in upgrades))


def described(upgrade: UpgradeDescription) -> list[str]:
    text = shown(e.UpgradeDescriptionEntity(statement_text="", upgrade_description=upgrade))
    return [line.rstrip() for line in text.splitlines()]


def test_a_list_of_upgrades() -> None:
    lines = shown(listed(BUILDING, UPGRADE)).splitlines()
    assert lines[0].split("  ")[0] == "Upgrade ID"
    assert [" ".join(line.split()) for line in lines[2:4]] == [
        "default_/CTAS_N_1/7 CTAS_N_1 rebuild topology building 75 % ada 2023-11-14 22:13:20",
        "default_/CTAS_N_1/7 CTAS_N_1 rebuild topology switched ada 2023-11-14 22:13:20 "
        "2023-11-14 22:14:20 31",
    ]
    assert lines[4:] == [
        "default_/CTAS_N_1/7: 75 % (30,000 of 40,000 records), 2,000 records/s, "
        "state 4,096 bytes, 5 s behind, there at 2023-11-14 22:13:25"
    ]


def test_a_list_without_rebuilds_has_no_more_lines() -> None:
    assert len(shown(listed(UPGRADE)).splitlines()) == 3
    assert shown(listed()).strip() == "No upgrades."


def test_a_list_of_upgrades_as_a_table() -> None:
    grid = grid_of(cast("JsonObject", to_wire(listed(BUILDING, UPGRADE))))
    assert grid is not None
    assert [row[4] for row in grid.cells()] == ["Status", "building 75 %", "switched"]


def test_an_upgrade_in_full() -> None:
    assert described(UPGRADE) == [
        "ID        default_/CTAS_N_1/7",
        "Query     CTAS_N_1, which writes N",
        "Mode      rebuild",
        "Class     topology",
        "Status    switched",
        "User      ada",
        "Begun     2023-11-14 22:13:20",
        "Finished  2023-11-14 22:14:20",
        "",
        "Former statement",
        UPGRADE.former_statement,
        "",
        "Statement",
        UPGRADE.statement,
        "",
        "  query is    stateful",
        "  changes     ok  SELECT: SUM(A) instead of COUNT(*) (topology)",
        "  guarantees  live  yes  the running plan continues until the cut-over",
        "  switched    gap 31 ms",
        "              s: partition 0 at 17",
        "  rows        3 changed, 2 added, 1 removed, 90 equal",
    ]


def test_a_rebuild_under_way_says_how_far_it_is() -> None:
    lines = described(BUILDING)
    assert "Status    building 75 %" in lines
    assert any(line.startswith("Progress  75 % (30,000 of 40,000 records)") for line in lines)


def test_a_rebuild_that_stands_still_says_why() -> None:
    stuck = replace(PROGRESS, lag_seconds=None, estimated_end=None, trouble="no room")
    [line] = [
        line for line in described(replace(BUILDING, progress=stuck)) if line.startswith("Progress")
    ]
    assert line.endswith("state 4,096 bytes, trouble: no room")


def test_only_what_is_known_is_drawn() -> None:
    bare = UpgradeDescription(
        id="x",
        query_id="CTAS_N_1",
        source="N",
        mode="rollback",
        classes=(),
        status="aborted",
        former_statement="A;",
        statement="B;",
        outcome="ABORT UPGRADE OF N;",
        restored=True,
    )
    assert described(bare) == [
        "ID       x",
        "Query    CTAS_N_1, which writes N",
        "Mode     rollback",
        "Status   aborted",
        "Outcome  ABORT UPGRADE OF N;",
        "Note     taken from the command topic: the ledger was lost",
        "",
        "Former statement",
        "A;",
        "",
        "Statement",
        "B;",
    ]
