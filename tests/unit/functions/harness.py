"""Calls functions as a compiled query does: resolve, convert, run (the inlined code too)."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ksql.core.types.coerce import caster
from ksql.core.types.model import NULL
from ksql.functions.instantiate import instantiate_aggregate, instantiate_scalar, instantiate_table
from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import resolve_overload, substitute
from ksql.functions.signature import parse_type

D = Decimal


class Fails:
    """The expected result of a call that is an evaluation error."""

    def __repr__(self):
        return "FAILS"


FAILS = Fails()


@dataclass(frozen=True)
class Lam:
    """A lambda: what it does, and the type of its body (a function of its parameters' types)."""

    arity: int
    run: Any = field(repr=False)  # its address is not the same in the next process
    body: Any

    def infer(self, params):
        return self.body(params) if callable(self.body) else sql(self.body)


def sql(text):
    """The SQL type that a text spells."""
    return NULL if text == "NULL" else substitute(parse_type(text), {})


def types_of(text):
    """The SQL types of a list such as ``STRING; ARRAY<INT>``; lambdas are left out."""
    return [sql(part.strip()) for part in text.split(";") if part.strip()]


def _arguments(types, args):
    left = iter(types_of(types))
    kinds = [arg if isinstance(arg, Lam) else next(left) for arg in args]
    assert next(left, None) is None, "more types than arguments"
    return kinds


def _converted(kinds, params, args):
    values = []
    for kind, param, arg in zip(kinds, params, args, strict=True):
        if isinstance(arg, Lam):
            values.append(arg.run)
        elif arg is None or kind in (param, NULL):
            values.append(arg)
        else:
            values.append(caster(kind, param)(arg))
    return values


def scalar(name, types, args):
    """The result of a scalar function."""
    function = BUILTINS.get(name)
    kinds = _arguments(types, args)
    chosen = resolve_overload(function, kinds)
    run = instantiate_scalar(function, chosen.overload, chosen.params)
    values = _converted(kinds, chosen.params, args)
    if run.nulls == "propagate" and None in [v for v in values if not callable(v)]:
        return None
    result_ = run.row(*values)
    if run.code is not None:
        assert evaluate(run.code, values) == result_
    return result_


def evaluate(code, values):
    """The value of an inlined template; as in a compiled stage, its arguments set temporaries."""
    names = [f"a{i}" for i in range(len(values))]
    args = [f"(t_{name} := {name})" for name in names]
    return eval(code.format(*args), {}, dict(zip(names, values, strict=True)))


def table(name, types, args):
    """The rows of a table function."""
    function = BUILTINS.get(name)
    chosen = resolve_overload(function, types_of(types))
    return instantiate_table(function, chosen.overload, chosen.params)(*args)


def aggregate(name, types, literals=(), settings=None):
    """The aggregate for columns of these types and these constants (given with their types)."""
    function = BUILTINS.get(name)
    columns = types_of(types)
    constants = [sql({bool: "BOOLEAN", int: "INT", str: "STRING"}[type(v)]) for v in literals]
    chosen = resolve_overload(function, [*columns, *constants])
    assert chosen.literals == len(literals)
    columns = chosen.params[: len(chosen.params) - chosen.literals]
    function_ = instantiate_aggregate(function, chosen.overload, columns, literals, settings)
    return function_, chosen


def fold(instance, rows, state=None):
    """The state after those rows."""
    state = instance.init() if state is None else state
    for row in rows:
        values = row if isinstance(row, tuple) else (row,)
        if instance.skips_null and None in values:
            continue
        state = instance.step(state, *values)
    return state


def result(instance, state):
    """What the state stands for."""
    return instance.result(state) if instance.result else state
