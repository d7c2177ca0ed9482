"""Plans of queries, and what the validator says of replacing one by another."""

from __future__ import annotations

from pathlib import Path

from ksql.control.engine.errors import UpgradeRefused
from ksql.control.statements.execute import RequestFailed
from ksql.core.errors import KsqlError
from ksql.sql.plan.explain import explain
from ksql.sql.syntax.parser import split
from tests.unit.world import World

HERE = Path(__file__).parent
SETUP = (HERE / "setup.sql").read_text("utf-8")


def plan(text: str) -> str:
    world = World(SETUP)
    try:
        outcome = world.execute(text)
    except KsqlError as error:
        return error.text()
    query = world.catalog.queries[outcome.prepared.query_id]
    return explain(world.plan(query.sink).sink)


def refused(text: str) -> str:
    """The error of a statement, where a query runs already."""
    world = World(SETUP)
    world.run("CREATE STREAM OPEN_ORDERS AS SELECT * FROM ORDERS;")
    try:
        world.execute(text)
    except KsqlError as error:
        return error.text()
    return "accepted"


def verdict(text: str) -> str:
    """Two statements or more: all run, the last is judged."""
    world = World(SETUP)
    *before, last = [each.text for each in split(text)]
    world.run("\n".join(before))
    statement = world.parse(last)
    try:
        outcome = world.engine.dry_run(statement, last, world.settings).verdict
    except UpgradeRefused as refused:
        outcome = refused.verdict
        if outcome is None:
            return refused.text()
    except (KsqlError, RequestFailed) as error:
        return error.text()
    answer = "accepted" if outcome.accepted else "refused"
    kept = ", ".join(g.name for g in outcome.guarantees if g.holds)
    return "\n".join(
        [
            f"{answer}: {', '.join(outcome.classes)}",
            f"the query is {', '.join(outcome.traits)}; kept: {kept}",
            *(f"{'+' if change.allowed else '-'} {change}" for change in outcome.changes),
        ]
    )


def test_plans(golden):
    golden(HERE / "plans.sql", plan)


def test_hints(golden):
    golden(HERE / "hints.sql", refused)


def test_upgrades(golden):
    golden(HERE / "upgrades.sql", verdict)
