"""Which columns of a result are its key, and that the projection has them.

Source: docs/sql/queries.md#select.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ksql.core import StatementError, listed, quote, quote_always
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import Bound, Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.sql.syntax import ast

_SYNTHETIC = (
    "\n{} was added as a synthetic key column because the join criteria did not match any "
    "source column. This expression must be included in the projection and may be aliased."
)
KeyOrigin = Literal[
    "key column", "grouping expression", "partitioning expression", "join expression"
]


class KeyMissing(StatementError):
    """The projection of a persistent query leaves a key column out; ``found`` is what it has."""

    def __init__(self, message: str, projected: Sequence[Named]) -> None:
        super().__init__(message)
        self.projected = tuple(projected)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One key column of the result: the first of ``exprs`` that is projected stands for it.

    Its value is that of ``gives``, else of the first of them. ``shown`` is for messages.
    """

    exprs: tuple[Bound, ...]
    shown: tuple[str, ...]
    gives: Bound | None = None


def split(
    projected: Sequence[Named], parts: Sequence[KeyPart], origin: KeyOrigin, sink: str
) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
    """Return the result's key columns and value columns.

    Keys come in the order of ``parts``, values in the order of the text.

    Raises: KeyMissing; StatementError for a key column that is projected twice.
    """
    key: list[Named] = []
    lost: list[KeyPart] = []
    used: set[int] = set()
    for part in parts:
        chosen = next((e for e in part.exprs if any(n.expr == e for n in projected)), None)
        hits = [i for i, named in enumerate(projected) if named.expr == chosen]
        if len(hits) > 1:
            raise _twice(sorted(projected[i].name for i in hits), part, origin)
        if not hits:
            lost.append(part)
            continue
        used.add(hits[0])
        key.append(Named(projected[hits[0]].name, part.gives or part.exprs[0]))
    if lost:
        missing = lost if origin == "grouping expression" else list(parts)
        raise KeyMissing(_missing(missing, origin, sink), projected)
    value = tuple(named for i, named in enumerate(projected) if i not in used)
    if not value:
        raise StatementError("The projection contains no value columns.")
    return tuple(key), value


def foreign_missing(projected: Sequence[Named], parts: Sequence[KeyPart], table: str) -> KeyMissing:
    """Return the key of a foreign-key join: the left table's, all of it."""
    have = {named.expr for named in projected}
    lost = [part.shown[0] for part in parts if part.exprs[0] not in have]
    plural = "s" if len(lost) > 1 else ""
    return KeyMissing(
        f"Primary key column{plural} missing in projection. For foreign-key table-table joins, the "
        "projection must include all primary key columns from the left input table "
        f"({quote_always(table)}). Missing column{plural}: {', '.join(map(quote_always, lost))}.",
        projected,
    )


def _twice(names: list[str], part: KeyPart, origin: KeyOrigin) -> StatementError:
    if origin == "grouping expression":
        shown = " and ".join(map(quote_always, names))
        return StatementError(f"The projection contains a key column more than once: {shown}.")
    column = part.exprs[0]
    name = column.name if isinstance(column, b.Column) else part.shown[0]
    return StatementError(
        f"The projection contains a key column ({quote_always(name)}) more than once, "
        f"aliased as: {listed([quote(n) for n in names], 'and')}."
    )


def _missing(parts: list[KeyPart], origin: KeyOrigin, sink: str) -> str:
    if origin == "join expression":
        options = list(parts[0].shown)
        text = missing(options, origin, sink, word="or", example=options[0])
        column = parts[0].exprs[0]
        synthetic = isinstance(column, b.Column) and column.name == options[0]
        return text + (_SYNTHETIC.format(options[0]) if synthetic else "")
    return missing([part.shown[0] for part in parts], origin, sink)


def missing(
    shown: Sequence[str], origin: KeyOrigin, sink: str, *, word: str = "and", example: str = ""
) -> str:
    """Return the message for keys that the projection must have, all or one of them."""
    example = example or ", ".join(shown)
    noun = origin + ("s" if len(shown) > 1 else "")
    return (
        "Key missing from projection (ie, SELECT). See https://cnfl.io/2LV7ouS.\n"
        f"The query used to build {quote_always(sink)} must include the {noun} "
        f"{listed(shown, word)} in its projection (eg, SELECT {example}...)."
    )


def wrong_kind(kind: ast.SourceKind) -> StatementError:
    """Return the error of a CREATE STREAM over a query that gives a table, or vice versa."""
    return StatementError(
        f"Invalid result type. Your SELECT query produces a {kind}. "
        f"Please use CREATE {kind} AS SELECT statement instead."
    )
