"""CAST as Python code; the common ones need no call.

Source: docs/sql/types.md#conversions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.types import coerce
from ksql.core.types.model import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIME, TIMESTAMP
from ksql.core.types.times import DAY_MS
from ksql.exec.expressions.nulls import doubtful
from ksql.sql.binder.bound import type_of

if TYPE_CHECKING:
    from ksql.core.types.model import SqlType
    from ksql.exec.expressions.generate import Generator
    from ksql.sql.binder import bound as b

_INLINE: dict[tuple[SqlType, SqlType], str] = {
    (BOOLEAN, STRING): "('true' if {0} else 'false')",
    (INTEGER, DOUBLE): "float({0})",
    (BIGINT, DOUBLE): "float({0})",
    (INTEGER, STRING): "str({0})",
    (BIGINT, STRING): "str({0})",
    (TIMESTAMP, DATE): f"({{0}} // {DAY_MS})",
    (TIMESTAMP, TIME): f"({{0}} % {DAY_MS})",
    (DATE, TIMESTAMP): f"({{0}} * {DAY_MS})",
}


def cast_code(gen: Generator, node: b.Cast, null: str) -> str:
    """Generate the code of a conversion; ``null`` is what NULL becomes."""
    source = type_of(node.operand)
    operand = gen.value(node.operand)
    if (source, node.type) == (INTEGER, BIGINT):
        return operand
    test = doubtful(node.operand, operand)
    atom = gen.code.atom(operand) if test else operand
    template = _INLINE.get((source, node.type))
    if template is None:
        convert = coerce.caster(source, node.type)
        template = gen.code.named(convert, "cast") + "({0})"
    code = template.format(atom)
    return f"({null} if {atom} is None else {code})" if test else code
