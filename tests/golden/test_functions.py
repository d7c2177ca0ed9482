"""Expressions over one row: their values as text, or why there is none."""

from __future__ import annotations

import decimal
from pathlib import Path

from ksql.core.errors import KsqlError
from ksql.core.types import model
from ksql.core.types.model import Array, Decimal, Map
from ksql.exec.expressions.compile import compile_expr
from ksql.functions.registry import BUILTINS
from ksql.sql.binder.bound import type_of
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import Scope, Source
from tests.parsing import parse_expression

HERE = Path(__file__).parent
ROW = {
    "A": (model.INTEGER, 1),
    "B": (model.BIGINT, 2),
    "C": (model.DOUBLE, 1.5),
    "D": (Decimal(4, 2), decimal.Decimal("1.25")),
    "E": (model.STRING, "x"),
    "F": (model.BOOLEAN, True),
    "G": (Array(model.INTEGER), [3, 1, None, 2]),
    "GS": (Array(model.STRING), ["b", None, "a"]),
    "M": (Map(model.STRING, model.INTEGER), {"a": 1, "b": None}),
    "BYT": (model.BYTES, b"\1\2\3"),
    "DT": (model.DATE, 1),
    "TI": (model.TIME, 3_661_001),
    "TS": (model.TIMESTAMP, 90_061_001),
    "N": (model.STRING, None),
    "NI": (model.INTEGER, None),
    "NA": (Array(model.INTEGER), None),
    "NM": (Map(model.STRING, model.INTEGER), None),
    "NB": (model.BYTES, None),
}
SCOPE = Scope((Source("S", {name: type_ for name, (type_, _) in ROW.items()}),))


def value(text: str) -> str:
    errors: list[str] = []
    try:
        bound = bind(parse_expression(text), SCOPE, BUILTINS)
    except KsqlError as error:
        return f"refused: {error.text()}"
    run = compile_expr(list(ROW), bound, BUILTINS, {}, "Q")
    result = run(
        tuple(value for _, value in ROW.values()), lambda _op, message, _row: errors.append(message)
    )
    shown = f"{result!r} ({type_of(bound)})"
    return "\n".join([shown, *(f"logged: {error}" for error in errors)])


def test_functions(golden):
    golden(HERE / "functions.sql", value)
