"""Parts common to all joins: the sources that may be joined, joins in messages.

Source: docs/sql/joins.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core import StatementError, quote, quote_always
from ksql.core.types import capabilities
from ksql.sql.binder.errors import describe
from ksql.sql.binder.scope import FromSource, Source, joined_name
from ksql.sql.syntax import ast
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.walk import transform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.core.types import SqlType
    from ksql.sql.catalog.model import DataSource


class InvalidJoin(StatementError):
    """A join that the language does not have."""


class NoWithin(InvalidJoin):
    """A join of two streams without the time that may lie between their records."""

    def __init__(self, joined: FromSource) -> None:
        shown = quote(joined.source.name)
        if joined.alias != joined.source.name:
            shown += f" {quote(joined.alias)}"
        super().__init__(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided.",
            hint="It says how far apart the records may be, as in "
            f"JOIN {shown} WITHIN 1 HOUR GRACE PERIOD 10 MINUTES ON ..",
        )


class AliasTwice(InvalidJoin):
    """Two sources of a query under one alias."""

    def __init__(self, alias: str) -> None:
        super().__init__(
            f"The alias {quote_always(alias)} stands for more than one source.",
            hint="Give each source of FROM an alias of its own.",
        )


class NamesClash(InvalidJoin):
    """Two columns of different sources that would have one name in the rows of the join."""

    def __init__(self, name: str, type_: SqlType, one: str, other: str) -> None:
        super().__init__(
            f"Duplicate value columns found in schema: {quote_always(name)} {type_}",
            detail=f"In the rows of a join {one} and {other} are both called {quote(name)}.",
            hint="Give one of the sources another alias.",
        )


class NotRepartitioned(InvalidJoin):
    """A table whose rows would have to move to another key."""

    def __init__(self, key: Sequence[str], expression: str, *, hint: str) -> None:
        super().__init__(
            "Cannot repartition a TABLE source. If this is a join, make sure that the criteria "
            f"uses the TABLE's key column {', '.join(key)} instead of {expression}.",
            hint=hint,
        )


class IncompatibleWindows(InvalidJoin):
    """Sessions joined to windows of a fixed length."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(
            f"Incompatible windowed sources.\nLeft source: {left}\nRight source: {right}\n"
            "Session windowed sources can only be joined to other session windowed sources, and "
            "may still not result in expected behaviour as session bounds must be an exact match "
            "for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and "
            "tumbling windowed sources"
        )


def join_without_repartition(left: DataSource, right: DataSource) -> bool:
    """Return whether records of two windowed sources with equal keys need no other key.

    Keys of a registry's formats are always written again, so windows of any lengths meet there: by
    their start. Other keys must agree in their format and in the length of their windows.
    """
    sides = (left, right)
    if all(capabilities(side.key_format.name).infers for side in sides):
        return True
    sizes = {side.window.size_ms for side in sides if side.window is not None}
    return len(sizes) == 1 and left.key_format == right.key_format


def kind_of(join: ast.Join) -> str:
    """Return the kind of a join as messages show it."""
    names = {"INNER": "[INNER] JOIN", "LEFT": "LEFT [OUTER] JOIN", "RIGHT": "RIGHT [OUTER] JOIN"}
    return names.get(join.kind, "[FULL] OUTER JOIN")


def check_sources(left: FromSource, right: FromSource) -> None:
    """Check that two sources are different, in formats that can be joined.

    Raises: InvalidJoin.
    """
    if left.source.name == right.source.name:
        raise InvalidJoin(
            f"Can not join '{left.source.name}' to '{right.source.name}': "
            "self joins are not yet supported."
        )
    sources = [one.source for one in (left, right)]
    wrong = [one for one in sources if not capabilities(one.value_format.name).joins_and_groups]
    if wrong:
        raise InvalidJoin(
            f"Source(s) {', '.join(one.name for one in wrong)} are using the "
            f"'{wrong[0].value_format.name}' value format. "
            "This format does not yet support JOIN."
        )


def check_apart(sources: Sequence[Source]) -> None:
    """Check that each column of the sources has a name of its own in the rows of their join.

    Raises: AliasTwice, NamesClash.
    """
    aliases: set[str] = set()
    owners: dict[str, str] = {}
    for source in sources:
        if source.alias in aliases:
            raise AliasTwice(source.alias)
        aliases.add(source.alias)
        for column, type_ in source.columns.items():
            name = joined_name(source.alias, column)
            shown = f"{quote(source.alias)}.{quote(column)}"
            if name in owners:
                raise NamesClash(name, type_, owners[name], shown)
            owners[name] = shown


def check_stream_table(join: ast.Join, left: FromSource, right: FromSource) -> None:
    """Check the restrictions of a stream-table join.

    Raises: InvalidJoin.
    """
    names = f"Got {left.source.name} {kind_of(join)} {right.source.name}."
    if join.kind == "FULL":
        raise InvalidJoin(
            f"Invalid join type: full-outer join not supported for stream-table join. {names}"
        )
    if join.kind == "RIGHT":
        raise InvalidJoin(
            f"Invalid join type: right-outer join not supported for stream-table join. {names}"
        )
    if join.within is not None:
        raise InvalidJoin(
            "A window definition was provided for a Stream-Table join. These joins are not "
            "windowed. Please drop the window definition (ie. the WITHIN clause) and try to "
            "execute your join again."
        )


def qualified(criteria: ex.Expr, sides: tuple[FromSource, ...]) -> str:
    """Return the condition with its columns' sources named."""

    def qualify(node: ex.Expr) -> ex.Expr:
        if isinstance(node, ex.Ref) and node.source is None:
            home = next((s.alias for s in sides if s.source.schema.find(node.name)), None)
            return ex.Ref(node.name, home)
        return node

    shown = describe(transform(criteria, qualify))
    return shown[1:-1] if shown.startswith("(") else shown
