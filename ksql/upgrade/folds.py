"""Aggregates that are written differently and are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ksql.analysis import bound as b

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.plan.nodes import Fold

_IGNORE_NULLS = frozenset({"EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET"})


def with_twins(
    folds: Sequence[Fold], running: Sequence[Fold]
) -> tuple[tuple[Fold, ...], dict[str, str]]:
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
        twin = None if fold.name in known else _twin(fold, running)
        if twin is not None:
            twins[fold.name] = twin.name
            if twin.name in own:
                continue
            own.add(twin.name)
        aligned.append(fold if twin is None else replace(twin, slot=fold.slot))
    return tuple(aligned), twins


def _twin(fold: Fold, running: Sequence[Fold]) -> Fold | None:
    meaning = _meaning(fold)
    return next((candidate for candidate in running if _meaning(candidate) == meaning), None)


def _meaning(fold: Fold) -> tuple[Any, ...]:
    args, literals, overload = fold.args, fold.literals, fold.overload
    if fold.function == "COUNT" and all(map(_always_there, args)):
        return ("COUNT", (), ())
    if fold.function in _IGNORE_NULLS:
        if literals and literals[-1] is True:
            literals = literals[:-1]
        return (fold.function, args, literals)
    return (fold.function, overload, args, literals, fold.type)


def _always_there(arg: b.Bound) -> bool:
    return isinstance(arg, b.Const) and arg.value is not None
