"""Bound expressions to Python code: access, constructors, conditions, calls and CAST.

The common casts need no call.

Source: docs/sql/expressions.md; docs/sql/types.md#conversions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ksql.core import indent
from ksql.core.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_MS,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    coerce,
    model,
)
from ksql.exec.expressions.compare import compare_code, in_code, like_code
from ksql.exec.expressions.emit import Block, Code, doubtful, is_atom
from ksql.exec.expressions.errors import NullOperand, null_boolean
from ksql.exec.expressions.meter import called, counted, is_counted, walked
from ksql.exec.expressions.numbers import arithmetic_code, negate_code
from ksql.functions import Functions, instantiate_scalar
from ksql.sql.binder import Bound, trees, type_of
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from ksql.core.types import SqlType


def element(array: list[Any] | None, index: int | None) -> Any:
    """Return an element by its place from 1, or from the end if negative; NULL if there is none.

    Raises: NullOperand for a NULL index.
    """
    if array is None:
        return None
    if index is None:
        raise NullOperand
    if index == 0 or abs(index) > len(array):
        return None
    return array[index - 1 if index > 0 else index]


NESTED_GUARDS = "ksql.nested.error.set.null"
_PYTHON = {"AND": "and", "OR": "or"}
CAST_NULLS = "ksql.cast.strings.preserve.nulls"


def _is_on(settings: Mapping[str, Any], name: str) -> bool:
    return str(settings.get(name, "true")).lower() != "false"


@dataclass(slots=True)
class Generator:
    """Generates the code of expressions over one row.

    ``metered``: see ``ksql.exec.expressions.meter``.
    """

    code: Code
    functions: Functions
    settings: Mapping[str, Any]
    metered: bool = False

    def value(self, node: Bound) -> str:
        """Return the code of the value; its statements are in the current block."""
        return self.code.short(self._value(node))

    def atom(self, node: Bound) -> str:
        """Return the same as ``value``, as code that may be repeated."""
        return self.code.atom(self.value(node))

    def guarded(self, node: Bound) -> str:
        """Return the value.

        An error makes it NULL and is reported, and nothing around it notices.
        """
        with self.code.within(self.code.tried()) as block:
            code = self.value(node)
        return self.code.guard(node, block, code)

    def nested(self, node: Bound) -> str:
        """Do as ``guarded``, where the settings want errors inside expressions kept inside."""
        return self.guarded(node) if _is_on(self.settings, NESTED_GUARDS) else self.value(node)

    def truth(self, node: Bound) -> str:
        """Return a condition; NULL raises."""
        code = self.value(node)
        if not doubtful(node, code):
            return code
        atom = self.code.atom(code)
        return f"({atom} if {atom} is not None else {self.code.library(null_boolean)}())"

    def lazily(self, node: Bound, *, truth: bool = False) -> tuple[list[str], str]:
        """Return the statements and the code of what is evaluated only sometimes."""
        with self.code.within(self.code.lazy()) as block:
            code = self.truth(node) if truth else self.value(node)
        return self.code.closed(block, code)

    def _value(self, node: Bound) -> str:  # noqa: C901 (one arm per node)
        match node:
            case b.Column(name):
                return self.code.column(name)
            case b.LambdaVar(name):
                return self.code.variable(name)
            case b.Const(value):
                return self.code.constant(value)
            case b.Call():
                return self._call(node)
            case b.Arith():
                return self._counted(node, arithmetic_code(self, node))
            case b.Negate():
                return negate_code(self, node)
            case b.Compare():
                return compare_code(self, node)
            case b.Logical():
                return self._logical(node)
            case b.Not(operand):
                return f"(not {self.truth(operand)})"
            case b.IsNull(operand, negated):
                return self._is_null(operand, negated)
            case b.In():
                return in_code(self, node)
            case b.Like():
                return like_code(self, node)
            case b.Case():
                return self._case(node)
            case b.Cast():
                return self._cast(node)
            case b.Subscript():
                return self._subscript(node)
            case b.Deref(base, field):
                if _is_null(base):
                    return "None"
                atom = self.atom(base)
                return f"({atom}[{self.code.constant(field)}] if {atom} is not None else None)"
            case b.MakeArray(items):
                return f"[{', '.join(self.nested(item) for item in items)}]"
            case b.MakeMap(entries):
                pairs = (f"{self.nested(key)}: {self.nested(item)}" for key, item in entries)
                return f"{{{', '.join(pairs)}}}"
            case b.MakeStruct(fields):
                named = (f"{self.code.constant(n)}: {self.nested(item)}" for n, item in fields)
                return f"{{{', '.join(named)}}}"
            case b.Let():
                return self._let(node)
            case b.Lambda():
                return self._lambda(node)

    def _is_null(self, operand: Bound, negated: bool) -> str:
        code = self.value(operand)
        if doubtful(operand, code):
            if next(trees.columns(operand), None) is None:
                code = self.code.atom(code)  # Python warns of tests of its own constants for None
            return f"({code} is {'not ' if negated else ''}None)"
        if not is_atom(code):
            self.code.spill(code)  # it may still raise
        return repr(negated)

    def _logical(self, node: b.Logical) -> str:
        """Return a chain of the same operator.

        What follows the first operand may not be reached.
        """
        first, *rest = _chain(node)
        head = self.truth(first)
        parts = [self.lazily(operand, truth=True) for operand in rest]
        if not any(lines for lines, _ in parts):
            return f"({f' {_PYTHON[node.op]} '.join([head, *(code for _, code in parts)])})"
        name = self.code.fresh()
        stop = f"if not {name}: break" if node.op == "AND" else f"if {name}: break"
        body = [f"{name} = {head}"]
        for lines, code in parts:
            body += [stop, *lines, f"{name} = {code}"]
        self.code.block.body += ["while True:", *indent([*body, "break"])]
        return name

    def _case(self, node: b.Case) -> str:
        (first, _), *_ = node.whens
        conditions: list[tuple[list[str], str]] = [([], self.truth(first))]
        conditions += [self.lazily(when, truth=True) for when, _ in node.whens[1:]]
        results = [self.lazily(then) for _, then in node.whens]
        last: tuple[list[str], str] = ([], "None")
        if node.otherwise is not None:
            last = self.lazily(node.otherwise)
        if not any(lines for lines, _ in (*conditions, *results, last)):
            chain = (
                f"{result} if {condition} else "
                for (_, condition), (_, result) in zip(conditions, results, strict=True)
            )
            return f"({''.join(chain)}{last[1]})"
        name = self.code.fresh()
        body: list[str] = []
        for (lines, condition), (then, result) in zip(conditions, results, strict=True):
            body += [*lines, f"if {condition}:", *indent([*then, f"{name} = {result}", "break"])]
        body += [*last[0], f"{name} = {last[1]}", "break"]
        self.code.block.body += ["while True:", *indent(body)]
        return name

    def _cast(self, node: b.Cast) -> str:
        if not node.implicit and _is_on(self.settings, NESTED_GUARDS):
            with self.code.within(self.code.tried()) as block:
                code = self._cast_value(node)
            return self.code.guard(node, block, code)
        return self._cast_value(node)

    def _cast_value(self, node: b.Cast) -> str:
        keep = node.implicit or node.type != model.STRING or _is_on(self.settings, CAST_NULLS)
        return self._counted(node, cast_code(self, node, "None" if keep else "'null'"))

    def _counted(self, node: Bound, code: str) -> str:
        """Return the code of a value, counted where the program's results are."""
        if not self.metered or not is_counted(node):
            return code
        return f"{self.code.library(counted)}({code})"

    def _subscript(self, node: b.Subscript) -> str:
        if _is_null(node.base):
            return "None"
        base = self.atom(node.base)
        if isinstance(type_of(node.base), model.Map):
            return f"({base}.get({self.atom(node.index)}) if {base} is not None else None)"
        if isinstance(node.index, b.Const) and isinstance(node.index.value, int):
            index = node.index.value
            if index == 0:
                return "None"
            at = index - 1 if index > 0 else index
            return f"({base}[{at}] if {base} is not None and len({base}) >= {abs(index)} else None)"
        return f"{self.code.library(element)}({base}, {self.value(node.index)})"

    def _let(self, node: b.Let) -> str:
        """Return the body's code, with the value in a temporary before the guards of the body."""
        local = self.code.spill(self.value(node.operand))
        self.code.variables[node.name] = local
        outer = self.code.block
        with self.code.within(Block(outer.depth, outer.depth)) as block:
            code = self.value(node.body)
        outer.body += block.lines()
        del self.code.variables[node.name]
        self.code.used.discard(local)
        return code

    def _lambda(self, node: b.Lambda) -> str:
        """Return a function; it is made once and for all if it reads nothing of the row."""
        outer, self.code.used = self.code.used, set()
        shadowed = dict(self.code.variables)
        params = [self.code.fresh("v") for _ in node.params]
        self.code.variables.update(zip(node.params, params, strict=True))
        with self.code.within(Block()) as block:
            code = self.value(node.body)
        self.code.variables.clear()
        self.code.variables.update(shadowed)
        reads = self.code.used - set(params)
        self.code.used = outer | reads
        name = self.code.fresh("f")
        lines = [
            f"def {name}({', '.join(params)}):",
            *indent([*block.lines(), f"return {code}"]),
        ]
        (self.code.block.safe if reads else self.code.prologue).extend(lines)
        return name

    def _call(self, node: b.Call) -> str:
        function = self.functions.get(node.function)
        run = instantiate_scalar(function, node.overload, [type_of(arg) for arg in node.args])
        if run.nulls == "propagate" and any(_is_null(arg) for arg in node.args):
            return "None"
        args = [self._argument(arg) for arg in node.args]
        tests: list[str] = []
        if run.nulls == "propagate":
            self._test_nulls(node.args, args, tests)
        if self.metered and not run.code:
            walks = any(isinstance(arg, b.Lambda) for arg in node.args)
            meter = self.code.library(walked if walks else called)
            code = f"{meter}({', '.join([self.code.named(run.row, 'call'), *args])})"
        elif run.code:
            code = run.code.format(*(f"({arg})" if arg[0].isdigit() else arg for arg in args))
        else:
            code = f"{self.code.named(run.row, 'call')}({', '.join(args)})"
        if run.code and self.metered and is_counted(node):
            code = f"{self.code.library(counted)}({code})"
        return f"(None if {' or '.join(tests)} else {code})" if tests else f"({code})"

    def _argument(self, node: Bound) -> str:
        return self.nested(node) if isinstance(node, b.Call | b.Deref) else self.value(node)

    def _test_nulls(self, nodes: Sequence[Bound], args: list[str], tests: list[str]) -> None:
        """Add tests of the arguments that may be NULL; all arguments are evaluated before.

        A single one that is more than a name is tested where it is computed.
        """
        tested = [i for i, node in enumerate(nodes) if _may_be_null(node, args[i])]
        composite = [i for i, arg in enumerate(args) if not is_atom(arg)]
        if tested and len(composite) == 1 and composite[0] in tested:
            (only,) = composite
            name = self.code.fresh()
            tests.append(f"({name} := {args[only]}) is None")
            args[only] = name
            tested.remove(only)
        elif tested:
            args[:] = [self.code.atom(arg) for arg in args]
        tests += [f"{args[i]} is None" for i in tested]


def _chain(node: b.Logical) -> list[Bound]:
    """Return the operands of AND in AND in AND .., in order."""
    operands: list[Bound] = []
    waiting: list[Bound] = [node]
    while waiting:
        last = waiting.pop()
        if isinstance(last, b.Logical) and last.op == node.op:
            waiting += [last.right, last.left]
        else:
            operands.append(last)
    return operands


def _is_null(node: Bound) -> bool:
    return isinstance(node, b.Const) and node.value is None


def _may_be_null(node: Bound, code: str) -> bool:
    return not isinstance(node, b.Lambda) and doubtful(node, code)


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
