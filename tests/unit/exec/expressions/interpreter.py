"""The meaning of bound expressions, told a second time: a plain walk over the tree."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from ksql.core.types import coerce, decimals, model
from ksql.functions.instantiate import instantiate_scalar
from ksql.sql.binder import bound as b
from ksql.sql.binder.bound import type_of

INTS = {model.INTEGER: 32, model.BIGINT: 64}


class Interpreter:
    """Evaluates one expression on one row; ``errors`` are the expressions that failed."""

    def __init__(self, columns, functions):
        self.columns = {name: place for place, name in enumerate(columns)}
        self.functions = functions
        self.errors = []
        self.row = ()

    def run(self, expr, row):
        self.row = row
        return self.guarded(expr, {})

    def guarded(self, node, env):
        try:
            return self.value(node, env)
        except Exception:  # noqa: BLE001 (as the compiled code does)
            self.errors.append(node)
            return None

    def need(self, node, env):
        value = self.value(node, env)
        if value is None:
            raise ValueError("null")
        return value

    def value(self, node, env):
        return getattr(self, f"_{type(node).__name__.lower()}")(node, env)

    def _column(self, node, _env):
        return self.row[self.columns[node.name]]

    def _const(self, node, _env):
        return node.value

    def _lambdavar(self, node, env):
        return env[node.name]

    def _let(self, node, env):
        return self.value(node.body, {**env, node.name: self.value(node.operand, env)})

    def _lambda(self, node, env):
        return lambda *args: self.value(
            node.body, {**env, **dict(zip(node.params, args, strict=True))}
        )

    def _call(self, node, env):
        run = instantiate_scalar(
            self.functions.get(node.function), node.overload, [type_of(a) for a in node.args]
        )
        args = [
            self.guarded(a, env) if isinstance(a, b.Call | b.Deref) else self.value(a, env)
            for a in node.args
        ]
        if run.nulls == "propagate" and None in args:
            return None
        return run.row(*args)

    def _arith(self, node, env):
        if node.type == model.STRING:
            both = self.value(node.left, env), self.value(node.right, env)
            return "".join("null" if value is None else value for value in both)
        x, y = self.value(node.left, env), self.value(node.right, env)
        if x is None or y is None:
            raise ValueError("null")
        if node.type in INTS:
            return self.wrap(self.integer(node.op, x, y), INTS[node.type])
        if isinstance(node.type, model.Decimal):
            return decimals.operation(node.op, node.type)(x, y)
        match node.op:
            case "/" if y == 0:
                if x == 0 or x != x:
                    return math.nan
                return math.copysign(math.inf, x) * math.copysign(1.0, y)
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case _:
                return x / y

    def integer(self, op, x, y):
        match op:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case _:
                return self.divided(op, x, y)

    def divided(self, op, x, y):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if op == "/" else x - quotient * y

    def wrap(self, value, bits):
        return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)

    def _negate(self, node, env):
        value = self.need(node.operand, env)
        return self.wrap(-value, INTS[node.type]) if node.type in INTS else -value

    def _compare(self, node, env):
        x, y = self.value(node.left, env), self.value(node.right, env)
        if "DISTINCT" in node.op:
            one = (x is None) != (y is None)
            other = one or (x is not None and self.order("<>", x, y))
            return other is (node.op == "IS DISTINCT FROM")
        return x is not None and y is not None and self.order(node.op, x, y)

    def order(self, op, x, y):
        if isinstance(x, float) and isinstance(y, Decimal):
            x = decimals.exact_double(x)
        if isinstance(y, float) and isinstance(x, Decimal):
            y = decimals.exact_double(y)
        match op:
            case "=":
                return x == y
            case "<>":
                return x < y or x > y if isinstance(x, float) else x != y
            case "<":
                return x < y
            case "<=":
                return x <= y
            case ">":
                return x > y
            case _:
                return x >= y

    def _logical(self, node, env):
        left = self.need(node.left, env)
        if left is (node.op == "OR"):
            return left
        return self.need(node.right, env)

    def _not(self, node, env):
        return not self.need(node.operand, env)

    def _isnull(self, node, env):
        return (self.value(node.operand, env) is None) is not node.negated

    def _in(self, node, env):
        value = self.value(node.operand, env)
        options = [self.value(option, env) for option in node.options]
        return value is not None and any(value == o for o in options if o is not None)

    def _like(self, node, env):
        text, pattern = self.need(node.operand, env), self.need(node.pattern, env)
        parts = ("[^\n]*" if c == "%" else "[^\n]" if c == "_" else re.escape(c) for c in pattern)
        return re.fullmatch("".join(parts), text) is not None

    def _case(self, node, env):
        for when, then in node.whens:
            if self.need(when, env):
                return self.value(then, env)
        return None if node.otherwise is None else self.value(node.otherwise, env)

    def _cast(self, node, env):
        convert = coerce.caster(type_of(node.operand), node.type)

        def cast():
            value = self.value(node.operand, env)
            return None if value is None else convert(value)

        if node.implicit:
            return cast()
        try:
            return cast()
        except Exception:  # noqa: BLE001 (as the compiled code does)
            self.errors.append(node)
            return None

    def _subscript(self, node, env):
        base, index = self.value(node.base, env), self.value(node.index, env)
        if base is None:
            return None
        if isinstance(base, dict):
            return base.get(index)
        if index is None:
            raise ValueError("null")
        if index == 0 or abs(index) > len(base):
            return None
        return base[index - (index > 0)]

    def _deref(self, node, env):
        base = self.value(node.base, env)
        return None if base is None else base[node.field]

    def _makearray(self, node, env):
        return [self.guarded(item, env) for item in node.items]

    def _makemap(self, node, env):
        return {self.guarded(k, env): self.guarded(v, env) for k, v in node.entries}

    def _makestruct(self, node, env):
        return {name: self.guarded(item, env) for name, item in node.fields}
