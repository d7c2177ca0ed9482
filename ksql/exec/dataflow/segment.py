"""A stretch of a plan without state, folded into one projection over the rows where it enters.

``WHERE``, ``PARTITION BY`` and ``SELECT`` between two stateful steps become a list of conditions
and one expression per column, all over the columns of the entry. So each segment costs one
generated function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ksql.core.types import BIGINT, ROWTIME, SqlType
from ksql.sql.binder import Bound, Named, trees
from ksql.sql.binder import bound as b
from ksql.sql.plan import Explode, Filter, Rekey, Select, TableCall


@dataclass(frozen=True, slots=True)
class Explosion:
    """Rows of ``segment`` become several, each with the values of the calls at its end.

    The arguments of the calls are over the columns of the segment's entry.
    """

    segment: Segment
    calls: tuple[TableCall, ...]


@dataclass(frozen=True, slots=True)
class RowShape:
    """The columns of the rows at one place of a plan; ``layout`` makes all of them.

    ``times`` are the places of the row's time, ``keys`` those of a table's key columns. ``parts``
    are the lengths of the stretches of columns that sources gave, for rows of sources and joins.
    """

    columns: tuple[tuple[str, SqlType], ...]
    times: tuple[int, ...]
    keys: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where rows come in: source number ``index``, or the output of stage ``index``.

    With an ``explosion`` the rows are those that come out of it.
    """

    kind: str  # "source" or "stage"
    index: int
    shape: RowShape
    explosion: Explosion | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that entered at ``entry``, passed all ``wheres`` and have the columns ``items``.

    ``leftovers``: rows that do not pass may have passed before, see ``plan.nodes.Filter``.
    """

    entry: Entry
    wheres: tuple[Bound, ...]
    items: tuple[Named, ...]
    table: bool
    leftovers: bool = False

    def over_entry(self, expr: Bound) -> Bound:
        """Return the expression over what this segment's columns are computed from."""
        return trees.over_columns(expr, {item.name: item.expr for item in self.items})


def entering(entry: Entry, *, table: bool) -> Segment:
    """Return the segment right at its entry."""
    items = tuple(Named(name, b.Column(name, type_)) for name, type_ in entry.shape.columns)
    return Segment(entry, (), items, table)


def extend(segment: Segment, node: Filter | Rekey | Select) -> Segment:
    """Return the segment after one more stateless step."""
    match node:
        case Filter():
            wheres = (*segment.wheres, segment.over_entry(node.predicate))
            return replace(segment, wheres=wheres, leftovers=segment.leftovers or node.leftovers)
        case Rekey():
            return replace(segment, items=_with(segment, node.keys))
        case Select():
            return replace(segment, items=_with(segment, (*node.key, *node.value), alone=True))


def exploded(segment: Segment, node: Explode) -> Segment:
    """Return the segment after table functions: its rows have one more column for each."""
    calls = tuple(replace(c, args=tuple(map(segment.over_entry, c.args))) for c in node.calls)
    added = tuple((call.name, call.type) for call in calls)
    shape = replace(segment.entry.shape, columns=(*segment.entry.shape.columns, *added))
    entry = replace(segment.entry, shape=shape, explosion=Explosion(segment, calls))
    columns = tuple(Named(name, b.Column(name, type_)) for name, type_ in added)
    return Segment(entry, (), (*segment.items, *columns), segment.table)


def _with(segment: Segment, named: tuple[Named, ...], *, alone: bool = False) -> tuple[Named, ...]:
    new = {n.name: Named(n.name, segment.over_entry(n.expr)) for n in named}
    if ROWTIME not in new:
        new[ROWTIME] = Named(ROWTIME, segment.over_entry(b.Column(ROWTIME, BIGINT)))
    if not alone:
        new = {item.name: item for item in segment.items} | new
    return tuple(new.values())


def conjunction(conditions: tuple[Bound, ...]) -> Bound | None:
    """Return all conditions in one, evaluated in their order."""
    whole: Bound | None = None
    for condition in conditions:
        whole = condition if whole is None else b.Logical("AND", whole, condition)
    return whole
