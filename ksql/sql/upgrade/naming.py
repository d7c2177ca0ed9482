"""Express a new plan in the running plan's names, and normal forms of equal aggregates.

An alias, and the names derived from it, have no effect on the computed values or on the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ksql.core.types import PSEUDO_COLUMNS, WINDOW_COLUMNS, Role
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Bound, Named
from ksql.sql.binder.grouping import meaning
from ksql.sql.binder.show import show_call
from ksql.sql.plan import nodes as p
from ksql.sql.plan.walk import nodes, sources

if TYPE_CHECKING:
    from ksql.core.types import Column


Names = Mapping[str, str]


def named_as(plan: p.Plan, running: p.Plan) -> p.Plan:
    """Return the plan with the running one's prefixes and inner names, where they mean the same.

    Example:
        running ``FROM S A JOIN T B ON A.K = B.ID``; of ``FROM S X JOIN T Y ON X.K = Y.ID`` the
        columns ``X_K`` and ``Y_ID`` become ``A_K`` and ``B_ID``.
    """
    return _Naming(running).visit(plan)[0]


def with_distinct_names(running: p.Plan, new: p.Plan) -> p.Plan:
    """Return the running plan, in the new one's prefixes if its own would give two columns a name.

    The new plan's never do: that was asked when it was made, and it knows all columns.

    Example:
        running ``FROM ORDERS JOIN ORDERS_ITEM``; ``ORDERS.ITEM_ID`` and the new ``ORDERS_ITEM.ID``
        would both be ``ORDERS_ITEM_ID``, so the running plan gets the new aliases.
    """
    if _apart(named_as(new, running)):
        return running
    naming = _Naming(new)
    naming.forget_all_but_sources()
    return naming.visit(running)[0]


def _apart(plan: p.Plan) -> bool:
    names = [source.prefix + name for source in sources(plan) for name in _known(source)]
    return len(set(names)) == len(names)


def _known(source: p.Source) -> Iterator[str]:
    """Return the names of a source's columns, and of those that any source has."""
    own = [column.name for column in source.columns]
    yield from own
    yield from (name for name in (*PSEUDO_COLUMNS, *WINDOW_COLUMNS) if name not in own)


class _Naming:
    def __init__(self, running: p.Plan) -> None:
        self._sources = list(sources(running))
        # those on the left first: they are visited before the join above them
        self._joins = [node for node in nodes(running) if isinstance(node, p.Join)][::-1]
        self._keys = [
            key
            for node in nodes(running)
            if isinstance(node, p.Aggregate | p.Rekey)
            for key in (node.group if isinstance(node, p.Aggregate) else node.keys)
        ]

        self._folds = [
            fold for node in nodes(running) if isinstance(node, p.Aggregate) for fold in node.folds
        ]

    def forget_all_but_sources(self) -> None:
        """Leave keys, joins and aggregates their names."""
        self._keys, self._joins, self._folds = [], [], []

    def visit(self, plan: p.Plan) -> tuple[p.Plan, Names]:
        """Return the plan, and what became of the names of its columns."""
        match plan:
            case p.Source():
                return self._source(plan)
            case p.Filter():
                below, names = self.visit(plan.source)
                predicate = _renamed(plan.predicate, names)
                return replace(plan, source=below, predicate=predicate), names
            case p.Rekey():
                below, names = self.visit(plan.source)
                keys, changed = self._named(plan.keys, names)
                return replace(plan, source=below, keys=keys), {**names, **changed}
            case p.Explode():
                below, names = self.visit(plan.source)
                calls = tuple(_call(call, names) for call in plan.calls)
                renamed = {old.name: new.name for old, new in zip(plan.calls, calls, strict=True)}
                return replace(plan, source=below, calls=calls), {**names, **renamed}
            case p.Select():
                below, names = self.visit(plan.source)
                key, value = (_renamed_columns(part, names) for part in (plan.key, plan.value))
                return replace(plan, source=below, key=key, value=value), {}
            case p.Aggregate():
                return self._aggregate(plan)
            case (
                p.StreamTableJoin() | p.StreamStreamJoin() | p.TableTableJoin() | p.ForeignKeyJoin()
            ):
                return self._join(plan)
            case p.EmitFinal() | p.Sink():
                below, names = self.visit(plan.source)
                return replace(plan, source=below), names

    def _source(self, plan: p.Source) -> tuple[p.Plan, Names]:
        twin = next((source for source in self._sources if source.name == plan.name), None)
        if twin is None:
            return plan, {}
        self._sources.remove(twin)
        names = {plan.prefix + name: twin.prefix + name for name in _known(plan)}
        columns = _in_order(plan.columns, twin.columns)
        return replace(plan, prefix=twin.prefix, columns=columns), names

    def _aggregate(self, plan: p.Aggregate) -> tuple[p.Plan, Names]:
        below, names = self.visit(plan.source)
        group, changed = self._named(plan.group, names)
        renamed = [_fold(fold, names) for fold in plan.folds]
        folds, twins = with_twins(renamed, self._folds)
        for before, fold in zip(plan.folds, renamed, strict=True):
            changed[before.name] = twins.get(fold.name, fold.name)
        return replace(plan, source=below, group=group, folds=folds), changed

    def _join(self, plan: p.Join) -> tuple[p.Plan, Names]:
        left, left_names = self.visit(plan.left)
        right, right_names = self.visit(plan.right)
        names = {**left_names, **right_names}
        joined = replace(
            plan,
            left=left,
            right=right,
            left_key=_renamed(plan.left_key, left_names),
            right_key=_renamed(plan.right_key, right_names),
        )
        twin = self._joins.pop(0) if self._joins else None
        if isinstance(joined, p.ForeignKeyJoin):  # its rows have the left table's key
            return joined, names
        if joined.key_name not in names and twin is not None:
            names |= _same_key(joined.key_name, twin, taken=names.values())
        return replace(joined, key_name=names.get(joined.key_name, joined.key_name)), names

    def _named(
        self, columns: tuple[Named, ...], names: Names
    ) -> tuple[tuple[Named, ...], dict[str, str]]:
        """Name key columns: those of the running plan keep its names, each name once."""
        renamed = _renamed_columns(columns, names)
        free = list(self._keys)
        keys = []
        for key in renamed:
            twin = _twin(key, free)
            if twin in free:
                free.remove(twin)
            keys.append(twin)
        if len({key.name for key in keys}) < len(keys):
            keys = list(renamed)
        return tuple(keys), {old.name: new.name for old, new in zip(columns, keys, strict=True)}


def _same_key(name: str, twin: p.Join, taken: Collection[str]) -> Names:
    """Return the running name of the key that a join makes of both sides.

    Example:
        a FULL JOIN's key is ``ROWKEY``, and ``ROWKEY_1`` once a source has a column ``ROWKEY``.
    """
    if isinstance(twin, p.ForeignKeyJoin) or twin.key_name in taken:
        return {}
    columns = {source.prefix + known for source in sources(twin) for known in _known(source)}
    return {} if twin.key_name in columns else {name: twin.key_name}


def _in_order(columns: tuple[Column, ...], running: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return a source's columns, those that the running plan knows first: as rows are stored.

    The order among values (keys, headers) is that of the records: it stays, or all do.

    Example:
        running ``V, H HEADERS``; ALTER puts W before the headers: ``V, W, H`` becomes ``V, H, W``.
    """
    places = {column.name: index for index, column in enumerate(running)}
    ordered = tuple(sorted(columns, key=lambda column: places.get(column.name, len(places))))
    same = all(
        [column for column in ordered if column.role is role]
        == [column for column in columns if column.role is role]
        for role in Role
    )
    return ordered if same else columns


def _twin(key: Named, running: list[Named]) -> Named:
    """Return a running column that computes the same; under the same name if there is a choice."""
    same = [candidate for candidate in running if candidate.expr == key.expr]
    return key if key in same or not same else same[0]


def _renamed(expr: Bound, names: Names) -> Bound:
    def rename(node: Bound) -> Bound | None:
        if isinstance(node, b.Column) and node.name in names:
            return b.Column(names[node.name], node.type)
        return None

    return trees.rewrite(expr, rename)


def _renamed_columns(columns: tuple[Named, ...], names: Names) -> tuple[Named, ...]:
    return tuple(Named(column.name, _renamed(column.expr, names)) for column in columns)


def _fold(fold: p.Fold, names: Names) -> p.Fold:
    args = tuple(_renamed(arg, names) for arg in fold.args)
    if args == fold.args:
        return fold
    return replace(fold, args=args, name=show_call(fold.function, args, fold.literals))


def _call(call: p.TableCall, names: Names) -> p.TableCall:
    args = tuple(_renamed(arg, names) for arg in call.args)
    if args == call.args:
        return call
    return replace(call, args=args, name=show_call(call.function, args))


def with_twins(
    folds: Sequence[p.Fold], running: Sequence[p.Fold]
) -> tuple[tuple[p.Fold, ...], dict[str, str]]:
    """Return the aggregates with the running plan's in the place of those that mean the same.

    Return also the name under which each of those continues. Two that mean the same become one.

    Example:
        running ``COUNT(*)``; new ``COUNT(1), SUM(A)``: ``COUNT(*), SUM(A)``.
    """
    known = {fold.name for fold in running}
    own = {fold.name for fold in folds}
    twins: dict[str, str] = {}
    aligned = []
    for fold in folds:
        twin = None if fold.name in known else fold_twin(fold, running)
        if twin is not None:
            twins[fold.name] = twin.name
            if twin.name in own:
                continue
            own.add(twin.name)
        aligned.append(fold if twin is None else replace(twin, slot=fold.slot))
    return tuple(aligned), twins


def fold_twin(fold: p.Fold, running: Sequence[p.Fold]) -> p.Fold | None:
    """Return the aggregate among those that means the same; ``COUNT(*)`` for ``COUNT(1)``."""
    sought = meaning(fold)
    return next((candidate for candidate in running if meaning(candidate) == sought), None)
