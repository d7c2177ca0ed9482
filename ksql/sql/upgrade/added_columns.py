"""Columns that a source got later: the rows that a join has kept from before lack them.

A join decodes a row when it comes, and keeps it. A column that the source gets later is NULL in
kept rows, whatever their records had. So a projection may read it, which the answer says. A
condition may not, if the row is a table's: it would reject rows that meet it, perhaps for ever, and
delete their results. Rows of streams wait for no longer than their window.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import quote
from ksql.sql.binder import trees
from ksql.sql.binder.show import sql_of
from ksql.sql.plan.nodes import (
    Explode,
    Filter,
    ForeignKeyJoin,
    Plan,
    Source,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
)
from ksql.sql.plan.walk import expressions, nodes, sources, with_sources
from ksql.sql.upgrade.verdict import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.sql.binder.bound import Bound


@dataclass(frozen=True, slots=True)
class AddedColumn:
    """A column that kept rows of a source may lack, under the name that it has in joined rows."""

    source: str
    table: bool
    column: str
    name: str

    def __str__(self) -> str:
        return f"{quote(self.source)}.{quote(self.column)}"


def with_later(old: Plan, new: Plan) -> Plan:
    """Mark, in the new plan's sources, the columns that rows kept by its joins may lack.

    Example:
        running ``.. JOIN T``; T gets Y: in each later plan Y is marked, for good.
    """
    twins, kept = list(sources(old)), {source.name for source in _kept(new)}

    def marked(source: Source) -> Source:
        twin = next((candidate for candidate in twins if candidate.name == source.name), None)
        if twin is None:
            return source
        twins.remove(twin)
        if source.name not in kept:
            return source
        known = {column.name for column in twin.columns}
        came = tuple(column.name for column in source.columns if column.name not in known)
        return replace(source, later=(*twin.later, *came))

    return with_sources(new, marked)


def compare(old: Plan, new: Plan) -> Iterator[Difference]:
    """Yield the conditions, and table functions, that come to read what kept rows may lack."""
    later = {source.name: source for source in _later(new) if source.table}
    before = {repr(expr) for _, expr in _selecting(old)}
    for clause, expr in _selecting(new):
        lacking = [later[name] for name in _read(expr) if name in later]
        if lacking and repr(expr) not in before:
            text = (
                f"{sql_of(expr)} reads {', '.join(map(str, lacking))}, which rows do not have that "
                "the join has kept since before; it would reject them whatever their records hold"
            )
            yield Difference("topology", clause, text, allowed=False)


def notes(new: Plan) -> Iterator[str]:
    """Say which columns that the plan reads are NULL in rows that its joins keep."""
    read = {name for node in nodes(new) for expr in expressions(node) for name in _read(expr)}
    for table in (True, False):
        lacking = [
            source for source in _later(new) if source.name in read and source.table is table
        ]
        if lacking:
            until = "until they change" if table else "as long as they wait"
            yield (
                f"{', '.join(map(str, lacking))}: NULL in rows that the join has kept since before "
                f"the column came, {until}"
            )


def _later(plan: Plan) -> list[AddedColumn]:
    return [
        AddedColumn(source.name, source.kind == "TABLE", column, source.prefix + column)
        for source in sources(plan)
        for column in source.later
    ]


def _kept(plan: Plan) -> Iterator[Source]:
    """Return the sources whose rows a join keeps."""
    for node in nodes(plan):
        match node:
            case StreamTableJoin():
                yield from sources(node.right)
            case StreamStreamJoin() | TableTableJoin() | ForeignKeyJoin():
                yield from (*sources(node.left), *sources(node.right))
            case _:
                pass


def _selecting(plan: Plan) -> Iterator[tuple[str, Bound]]:
    """Return what decides whether, and how many times, a row is passed on, by clause."""
    for node in nodes(plan):
        match node:
            case Filter():
                yield node.clause, node.predicate
            case Explode():
                yield from (("SELECT", arg) for call in node.calls for arg in call.args)
            case _:
                pass


def _read(expr: Bound) -> Iterator[str]:
    return (column.name for column in trees.columns(expr))
