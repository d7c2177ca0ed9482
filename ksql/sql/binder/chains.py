"""Joins of all kinds and lengths: whether they are legal, and which columns make the result's key.

Source: docs/sql/joins.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ksql.core import quote
from ksql.core.types import SqlType, model
from ksql.functions import Functions
from ksql.sql.binder import bound as b
from ksql.sql.binder import trees
from ksql.sql.binder.bound import Bound, type_of
from ksql.sql.binder.errors import describe
from ksql.sql.binder.infer import bind
from ksql.sql.binder.joins import (
    IncompatibleWindows,
    InvalidJoin,
    NotRepartitioned,
    NoWithin,
    check_apart,
    check_sources,
    check_stream_table,
    join_without_repartition,
    kind_of,
    qualified,
)
from ksql.sql.binder.scope import JOIN_ON, FromSource, Scope, joined_name
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.ast import SourceKind

SYNTHETIC = "ROWKEY"
"""The key of a join that no column of a source gives, if no source has a column of that name."""
KeyOption = tuple["b.Column", str]
"""A column that gives the result's key, and its name in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundJoin:
    """One join of a chain with its keys bound, and the columns that can make its rows' key.

    ``left_key`` reads the rows so far, ``right_key`` the source that is joined to them. All
    expressions in ``equal`` have one value in each row of the result, or none; the first one has it
    in every row. ``options`` are the columns among them, without any the key is synthetic and
    called ``synthetic_name``. With ``foreign`` the key is that table's whole primary key.
    """

    kind: ast.JoinKind
    left: SourceKind
    right: SourceKind
    left_key: Bound
    right_key: Bound
    within: ast.Within | None
    equal: tuple[Bound, ...]
    options: tuple[KeyOption, ...]
    foreign: FromSource | None
    synthetic_name: str = SYNTHETIC

    @property
    def synthetic(self) -> bool:
        """Whether no column of a source gives the key."""
        return not self.options and self.foreign is None

    @property
    def key_names(self) -> list[str]:
        """The columns that have the key of the joined rows."""
        if self.foreign is not None:
            alias, key = self.foreign.alias, self.foreign.source.schema.key
            return [joined_name(alias, column.name) for column in key]
        return [self.options[0][0].name if self.options else self.synthetic_name]


def steps(join: ast.Join) -> list[ast.Join]:
    """Return the joins of a chain in the order of the text."""
    joins = [join]
    while isinstance(joins[0].left, ast.Join):
        joins.insert(0, joins[0].left)
    return joins


def bind_chain(
    join: ast.Join, sources: Sequence[FromSource], scope: Scope, functions: Functions
) -> tuple[BoundJoin, ...]:
    """Bind each join of the chain.

    Raises: InvalidJoin; StatementError for names that are not known.
    """
    for index in range(1, len(sources)):
        _check_names(sources[:index], sources[index])
    check_apart(scope.sources)
    joins: list[BoundJoin] = []
    name = synthetic_name(sources)
    for index, step in enumerate(steps(join), start=1):
        before = joins[-1] if joins else None
        bound = _Step(step, sources[:index], sources[index], scope, functions, before).bound()
        joins.append(replace(bound, synthetic_name=name))
    return tuple(joins)


def synthetic_name(sources: Sequence[FromSource]) -> str:
    """Return a name for the key of a join that no source has a column of, nor the joined rows.

    Example: ``ROWKEY_1`` if some source has a column ROWKEY.
    """
    taken = {
        name
        for source in sources
        for column in source.source.schema.columns
        for name in (column.name, joined_name(source.alias, column.name))
    }
    name, number = SYNTHETIC, 0
    while name in taken:
        number += 1
        name = f"{SYNTHETIC}_{number}"
    return name


def _check_names(known: Sequence[FromSource], new: FromSource) -> None:
    if len(known) == 1:
        check_sources(known[0], new)
    elif any(source.source.name == new.source.name for source in known):
        raise InvalidJoin(
            "N-way joins do not support multiple occurrences of the same source. "
            f"Source: '{new.source.name}'"
        )


def _option(home: FromSource, expr: Bound) -> tuple[KeyOption, ...]:
    if not isinstance(expr, b.Column):
        return ()
    return ((expr, f"{home.alias}.{expr.name.removeprefix(home.alias + '_')}"),)


@dataclass(slots=True)
class _Step:
    join: ast.Join
    known: Sequence[FromSource]
    new: FromSource
    scope: Scope
    functions: Functions
    before: BoundJoin | None

    def bound(self) -> BoundJoin:
        left, left_expr, right_expr = self._sides()
        kind: SourceKind = self.known[0].source.kind
        if kind == "TABLE" and self.new.source.kind == "STREAM":
            raise InvalidJoin(
                "Invalid join order: table-stream joins are not supported; only stream-table "
                f"joins. Got {left.source.name} {kind_of(self.join)} {self.new.source.name}.",
                hint=f"Write the stream first: FROM {quote(self.new.source.name)} .. JOIN "
                f"{quote(left.source.name)} ..",
            )
        self._check_windows(left, left_expr, right_expr)
        self._check_within(kind, left)
        if self.new.source.kind == "TABLE":
            self._check_right_key(kind, right_expr)
        if type_of(left_expr) != type_of(right_expr):
            raise InvalidJoin(
                f"Invalid join condition: types don't match. Got {self._typed()}.",
                hint=self._cast_hint(left_expr, type_of(right_expr)),
            )
        foreign = kind == "TABLE" and not self._on_left_key(left, left_expr)
        if foreign:
            self._check_foreign(left, left_expr)
        equal, options = ((), ()) if foreign else self._key(left, left_expr, right_expr)
        return BoundJoin(
            kind=self.join.kind,
            left=kind,
            right=self.new.source.kind,
            left_key=left_expr,
            right_key=right_expr,
            within=self.join.within,
            equal=equal,
            options=options,
            foreign=left if foreign else None,
        )

    def _sides(self) -> tuple[FromSource, Bound, Bound]:
        """Return the source that the new one is joined to, and both expressions, its own first."""
        criteria = self.join.criteria
        if isinstance(criteria, ex.Logical):
            raise InvalidJoin(
                "Invalid join condition: joins on multiple conditions are not yet supported. "
                f"Got {describe(criteria)}.",
                hint="Conditions on one source go into WHERE. Streams can be joined on an "
                "expression over several columns: ON a.x || a.y = b.x || b.y.",
            )
        if not isinstance(criteria, ex.Compare) or criteria.op != "=":
            raise InvalidJoin(
                f"Unsupported join expression: {describe(criteria)}. "
                "Only equality join criteria is supported."
            )
        on = replace(self.scope, clause=JOIN_ON)
        sides = (criteria.left, criteria.right)
        exprs = [bind(side, on, self.functions) for side in sides]
        homes = [self._home(expr, side) for expr, side in zip(exprs, sides, strict=True)]
        if homes[0].alias == homes[1].alias:
            raise InvalidJoin(
                "Each side of the join must reference exactly one source and not the same source. "
                f"Left side references `{homes[0].alias}` and right references "
                f"`{homes[1].alias}`: {describe(criteria)}"
            )
        if homes[0].alias == self.new.alias:
            return homes[1], exprs[1], exprs[0]
        if homes[1].alias != self.new.alias:
            raise InvalidJoin(
                f"A join criteria is expected to reference the source (`{self.new.alias}`) in the "
                f"FROM clause, instead the right source references `{homes[1].alias}` and the left "
                f"source references `{homes[0].alias}`"
            )
        return homes[0], exprs[0], exprs[1]

    def _home(self, expr: Bound, side: ex.Expr) -> FromSource:
        names = {column.name for column in trees.columns(expr)}
        columns = {source.alias: source.columns for source in self.scope.sources}
        homes = [
            source
            for source in (*self.known, self.new)
            if any(joined_name(source.alias, name) in names for name in columns[source.alias])
        ]
        if len(homes) != 1:
            raise InvalidJoin(
                f"Invalid comparison expression '{describe(side)}' in join "
                f"'{describe(self.join.criteria)}'. Each side of the join comparision must contain "
                "references from exactly one source."
            )
        return homes[0]

    def _check_windows(self, left: FromSource, left_expr: Bound, right_expr: Bound) -> None:
        ours, theirs = left.source.window, self.new.source.window
        if ours is None and theirs is None:
            return
        if ours is None or theirs is None:
            shown = "\n".join(
                f"`{side.source.name}` is "
                f"{f'{side.source.window.kind} windowed' if side.source.window else 'not windowed'}"
                for side in (left, self.new)
            )
            raise InvalidJoin(f"Can not join windowed source to non-windowed source.\n{shown}")
        if (ours.kind == "SESSION") != (theirs.kind == "SESSION"):
            raise IncompatibleWindows(ours.kind, theirs.kind)
        on_keys = self._is_key(left, left_expr) and self._is_key(self.new, right_expr)
        if not on_keys or not join_without_repartition(left.source, self.new.source):
            raise InvalidJoin(
                "Implicit repartitioning of windowed sources is not supported. "
                "See https://github.com/confluentinc/ksql/issues/4385."
            )

    def _check_within(self, kind: SourceKind, left: FromSource) -> None:
        if kind == "STREAM" and self.new.source.kind == "STREAM":
            if self.join.within is None:
                raise NoWithin(self.new)
        elif kind == "STREAM":
            check_stream_table(self.join, left, self.new)
        elif self.join.within is not None:
            raise InvalidJoin(
                "A window definition was provided for a Table-Table join. These joins are not "
                "windowed. Please drop the window definition (ie. the WITHIN clause) and try to "
                "execute your Table-Table join again."
            )

    def _check_right_key(self, kind: SourceKind, right_expr: Bound) -> None:
        if self._is_key(self.new, right_expr):
            return
        what = (
            "stream-table joins require to join on the table's primary key"
            if kind == "STREAM"
            else "table-table joins require to join on the primary key of the right input table"
        )
        raise InvalidJoin(f"Invalid join condition: {what}. Got {self._qualified()}.")

    def _check_known_key(self, left: FromSource, left_expr: Bound, before: BoundJoin) -> None:
        """Refuse the primary key of a table whose rows have another key since the join before.

        That is so after a FULL JOIN, and on the right side of a foreign key.
        """
        if isinstance(left_expr, b.Column) and self._is_key(left, left_expr):
            raise NotRepartitioned(
                before.key_names,
                left_expr.name,
                hint="CREATE the joins before as a table of their own, and join that on its key.",
            )

    def _check_foreign(self, left: FromSource, left_expr: Bound) -> None:
        if self.before is not None:
            self._check_known_key(left, left_expr, self.before)
            raise InvalidJoin(
                "Invalid join condition: foreign-key table-table joins are not supported as part "
                f"of n-way joins. Got {self._qualified()}."
            )
        if self.join.kind == "RIGHT":
            raise InvalidJoin("RIGHT OUTER JOIN on a foreign key is not supported")
        if self.join.kind == "FULL":
            raise InvalidJoin(
                "Invalid join type: full-outer join not supported for foreign-key table-table "
                f"join. Got {left.source.name} {kind_of(self.join)} {self.new.source.name}."
            )

    def _on_left_key(self, left: FromSource, expr: Bound) -> bool:
        if self.before is None:
            return self._is_key(left, expr)
        if self.before.foreign is not None:
            return self._is_key(self.before.foreign, expr)
        return expr in self.before.equal

    @staticmethod
    def _is_key(source: FromSource, expr: Bound) -> bool:
        key = source.source.schema.key
        return len(key) == 1 and expr == b.Column(
            joined_name(source.alias, key[0].name), key[0].type
        )

    def _key(
        self, left: FromSource, left_expr: Bound, right_expr: Bound
    ) -> tuple[tuple[Bound, ...], tuple[KeyOption, ...]]:
        """Return the expressions equal in all rows of the result, and the columns among them."""
        if self.join.kind == "FULL":
            return (), ()
        own, other = _option(left, left_expr), _option(self.new, right_expr)
        equal: tuple[Bound, ...] = (left_expr,)
        before = self.before
        if before is not None and left_expr in before.equal:
            equal, own = before.equal, before.options
        if self.join.kind == "RIGHT":  # the left side may have no row
            return (right_expr, *equal), (*own, *other)
        return (*equal, right_expr), (*own, *other)

    def _qualified(self) -> str:
        return qualified(self.join.criteria, (*self.known, self.new))

    def _cast_hint(self, left: Bound, other: SqlType) -> str:
        """Return the CAST of the side that may be any expression, where there can be one."""
        plain = (model.Primitive, model.Decimal)
        if not (isinstance(type_of(left), plain) and isinstance(other, plain)):
            return ""
        criteria = self.join.criteria
        on = replace(self.scope, clause=JOIN_ON)
        sides = (criteria.left, criteria.right) if isinstance(criteria, ex.Compare) else ()
        own = next(side for side in sides if bind(side, on, self.functions) == left)
        return f"Write CAST({qualified(own, (*self.known, self.new))} AS {other}) instead."

    def _typed(self) -> str:
        criteria = self.join.criteria
        if not isinstance(criteria, ex.Compare):
            return describe(criteria)
        on = replace(self.scope, clause=JOIN_ON)
        return " = ".join(
            f"{qualified(side, (*self.known, self.new))}"
            f"{{{type_of(bind(side, on, self.functions))}}}"
            for side in (criteria.left, criteria.right)
        )
