"""Parts common to all joins: the sources that may be joined, joins in messages.

Source: docs/sql/joins.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.analysis.describe import describe
from ksql.base.errors import StatementError
from ksql.syntax import ast
from ksql.syntax import expr as ex
from ksql.syntax.walk import transform
from ksql.types.format import capabilities

if TYPE_CHECKING:
    from ksql.analysis.sources import FromSource


class InvalidJoin(StatementError):
    """A join that the language does not have."""


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
