"""Columns, functions and helpers of the tests of compiled rows."""

from __future__ import annotations

from ksql.core.types import model
from ksql.core.types.model import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
)
from ksql.exec.expressions.compile import compile_projection
from ksql.functions.registry import Functions
from ksql.functions.spec import Function, Scalar
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import Scope, Source
from tests.parsing import parse_expression

STRUCT = model.Struct((model.Field("F", INTEGER), model.Field("G", STRING)))
COLUMNS = {
    "B": BOOLEAN,
    "I": INTEGER,
    "J": INTEGER,
    "L": BIGINT,
    "D": DOUBLE,
    "E": DOUBLE,
    "DEC": model.Decimal(4, 2),
    "S": STRING,
    "P": STRING,
    "Y": BYTES,
    "DT": DATE,
    "TM": TIME,
    "TS": TIMESTAMP,
    "A": model.Array(INTEGER),
    "M": model.Map(STRING, BIGINT),
    "ST": STRUCT,
}
SCOPE = Scope((Source("T", COLUMNS),))


class Odd:
    """NULL on the first, third, .. call, else the argument: it tells how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, value):
        self.calls += 1
        return None if self.calls % 2 else value


def fail(value):
    raise ValueError(f"bad {value}")


def scalar(name, *overloads):
    return Function(name, "SCALAR", "", "", overloads)


def functions(odd=None):
    return Functions(
        [
            scalar("UCASE", Scalar(("STRING",), "STRING", str.upper, code="{0}.upper()")),
            scalar("LEN", Scalar(("STRING",), "INT", len, code="len({0})")),
            scalar(
                "JOINED",
                Scalar(("STRING", "STRING"), "STRING", lambda x, y: x + y, code="({0} + {1})"),
            ),
            scalar("SAME", Scalar(("T",), "T", lambda value: value, code="({0})", nulls="pass")),
            scalar("ABS", Scalar(("INT",), "INT", abs, code="abs({0})")),
            scalar(
                "COALESCE",
                Scalar(
                    ("T", "T..."),
                    "T",
                    lambda *args: next((arg for arg in args if arg is not None), None),
                    nulls="pass",
                ),
            ),
            scalar("PLUS", Scalar(("int", "int"), "INT", lambda x, y: x + y)),
            scalar("FAIL", Scalar(("STRING",), "STRING", fail), Scalar(("INT",), "INT", fail)),
            scalar("ODD", Scalar(("STRING",), "STRING", odd or Odd(), nulls="pass")),
            scalar(
                "TRANSFORM",
                Scalar(("ARRAY<T>", "T => R"), "ARRAY<R>", lambda a, f: [f(x) for x in a]),
            ),
            scalar(
                "REDUCE",
                Scalar(("ARRAY<T>", "S", "(S, T) => S"), "S", _reduce),
            ),
        ]
    )


def _reduce(array, state, step):
    for item in array:
        state = step(state, item)
    return state


def row(**values):
    return tuple(values.get(name.lower()) for name in COLUMNS)


def stage(*texts, where=None, settings=None, known=None):
    known = known or functions()
    bound = [bind(parse_expression(text), SCOPE, known) for text in texts]
    condition = None if where is None else bind(parse_expression(where), SCOPE, known)
    return compile_projection(list(COLUMNS), condition, bound, known, settings or {}, "Q")


def evaluate(text, settings=None, known=None, **values):
    """The value of an expression and the errors that were logged."""
    errors = []
    projection = stage(text, settings=settings, known=known)
    result = projection.run(row(**values), lambda _context, message, _row: errors.append(message))
    return result[0], errors
