"""Compiles bound expressions to one Python function of rows, with a budget for patterns.

The generated source is plain: columns in local variables, a condition, the outputs, each in a
guard of its own. ``Projection.text`` shows it. A program that calls functions whose arguments are
patterns has a budget of its own.

Constant expressions, those of INSERT VALUES, are strictly brought to their columns' types.
Source: docs/sql/insert.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import TYPE_CHECKING, Any, Final

from ksql.core import Row, codegen, indent
from ksql.core.types import coerce, decimals, java_string, model
from ksql.exec.expressions import meter
from ksql.exec.expressions.emit import Code
from ksql.exec.expressions.errors import Log, TooDeep, reporter
from ksql.exec.expressions.generate import Generator
from ksql.java.regex import Budget, use
from ksql.sql.binder import NO_COLUMNS, BadValue, Const, bind, of_value, trees, type_of
from ksql.sql.binder import bound as b

if TYPE_CHECKING:
    from ksql.core.types import SqlType
    from ksql.functions import Functions
    from ksql.sql.binder import Bound
    from ksql.sql.syntax import Expr


_DROP = "<drop>"
_LIMIT = "too many"  # nested brackets or blocks, says Python
_MAX_UNPACKED = 64


@dataclass(frozen=True, slots=True)
class Projection:
    """A filter and a projection, compiled.

    ``run(row, log)`` gives the output row, or None if the filter drops it. ``batch(rows, log)``
    gives a list with one entry per row: the output row, or None.
    """

    run: Callable[[Row, Log], Row | None]
    batch: Callable[[Sequence[Row], Log], list[Row | None]]
    text: str


def compile_projection(
    columns: Sequence[str],
    where: Bound | None,
    outputs: Sequence[Bound],
    functions: Functions,
    settings: Mapping[str, Any],
    log: str,
) -> Projection:
    """Compile a filter and a projection over rows of these columns.

    ``log`` names the step in the processing log. Raises: TooDeep.
    """
    program = _program(columns, where, outputs, functions, settings)
    row = f"({', '.join(program.values)}{',' if len(program.values) == 1 else ''})"
    many = ["found = []", "add = found.append", "for row in rows:"]
    many += indent(program.lines(["add(None)", "continue"], f"add({row})"))
    source = [
        *program.code.prologue,
        "def run(row, log):",
        *indent(program.lines(["return None"], f"return {row}")),
        "def batch(rows, log):",
        *indent([*many, "return found"]),
    ]
    names = program.executed(source, log)
    return Projection(names["run"], names["batch"], "\n".join(source))


def compile_expr(
    columns: Sequence[str],
    expr: Bound,
    functions: Functions,
    settings: Mapping[str, Any],
    log: str,
    *,
    metered: bool = False,
) -> Callable[[Row, Log], Any]:
    """Compile one expression; an error gives None and is logged.

    ``metered``: however few its functions are, their results are counted. Raises: TooDeep.
    """
    program = _program(columns, None, [expr], functions, settings, metered=metered)
    return program.function(["return None"], f"return {program.values[0]}", log)


def compile_predicate(
    columns: Sequence[str],
    expr: Bound,
    functions: Functions,
    settings: Mapping[str, Any],
    log: str,
) -> Callable[[Row, Log], bool]:
    """Compile a condition; NULL and errors, which are logged, give false. Raises: TooDeep."""
    program = _program(columns, expr, [], functions, settings)
    return program.function(["return False"], "return True", log)


@dataclass(frozen=True, slots=True)
class Body:
    """The statements for one row, with a mark where it is dropped, and the output values.

    ``columns`` are the places of the columns that they read.
    """

    code: Code
    statements: Sequence[str]
    values: Sequence[str]
    columns: frozenset[int]

    @property
    def reports(self) -> bool:
        """Whether a row may be reported."""
        return bool(self.code.nodes)

    def lines(self, drop: Sequence[str], keep: str) -> list[str]:
        """Return the statements, with those for a row that is dropped and for one that is kept."""
        lines: list[str] = []
        for line in self.statements:
            head, mark, _ = line.partition(_DROP)
            lines += [head + dropped for dropped in drop] if mark and not head.strip() else [line]
        return [*lines, keep]

    def function(self, drop: Sequence[str], keep: str, log: str) -> Callable[[Row, Log], Any]:
        """Compile the statements to a function of one row."""
        body = indent(self.lines(drop, keep))
        names = self.executed([*self.code.prologue, "def run(row, log):", *body], log)
        run: Callable[[Row, Log], Any] = names["run"]
        return run

    def executed(
        self, source: Sequence[str], log: str, known: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Execute the source, which may also name what is ``known``; return what it defines."""
        own = {**self.code.namespace, "failed": reporter(log, self.code.nodes)}
        names = {**(known or {}), **own}
        try:
            return codegen.define(log, "\n".join(source), names)
        except (RecursionError, MemoryError) as error:
            raise TooDeep from error
        except SyntaxError as error:
            if _LIMIT in str(error):
                raise TooDeep from error
            raise


def compile_body(
    columns: Sequence[tuple[str, str]],
    row: str,
    where: Bound | None,
    outputs: Sequence[Bound],
    functions: Functions,
    settings: Mapping[str, Any],
) -> Body:
    """Generate the same statements for a loop of the caller's own.

    ``columns`` are names with the code of their values there, ``row`` is the code of what is logged
    for a row. Raises: TooDeep.
    """
    cells = [cell for _, cell in columns]
    return _program([name for name, _ in columns], where, outputs, functions, settings, cells, row)


def _program(
    columns: Sequence[str],
    where: Bound | None,
    outputs: Sequence[Bound],
    functions: Functions,
    settings: Mapping[str, Any],
    cells: Sequence[str] | None = None,
    row: str = "row",
    *,
    metered: bool = False,
) -> Body:
    code = Code({name: index for index, name in enumerate(columns)}, row=row)
    expressions = outputs if where is None else [where, *outputs]
    try:
        metered = metered or meter.are_many(expressions)
        generator = Generator(code, functions, settings, metered)
        condition = [] if where is None else _condition(generator, where)
        first = code.used & _locals(columns)
        values = [generator.guarded(output) for output in outputs]
    except RecursionError as error:
        raise TooDeep from error
    read = code.used & _locals(columns)
    before, after = (_loaded(used, len(columns), cells) for used in (first, read - first))
    places = frozenset(int(name[1:]) for name in read)
    if are_in(expressions):
        own = code.named(Budget())
        before = [f"{code.library(use)}({own})", *before]
    if metered:
        before = [f"{code.library(meter.begin)}()", *before]
    return Body(code, [*before, *condition, *after, *code.block.lines()], values, places)


def _locals(columns: Sequence[str]) -> set[str]:
    return {f"c{index}" for index in range(len(columns))}


def _loaded(used: set[str], width: int, cells: Sequence[str] | None) -> list[str]:
    """Return lines that load columns: all at once if most are wanted, else one by one."""
    if not used:
        return []
    if cells is not None:
        return [f"{name} = {cells[int(name[1:])]}" for name in sorted(used)]
    if width <= _MAX_UNPACKED and 3 * len(used) >= width:
        names = (f"c{index}" if f"c{index}" in used else "_" for index in range(width))
        return [f"{', '.join(names)}, = row"]
    return [f"{name} = row[{name[1:]}]" for name in sorted(used, key=lambda n: int(n[1:]))]


def _condition(generator: Generator, where: Bound) -> list[str]:
    """Return the filter; what it needs is evaluated in it, and an error in it drops the row."""
    code = generator.code
    with code.within(code.tried()) as block:
        test = generator.value(where)
    lines = [*block.body, f"if not {test}:", *indent([_DROP])]
    before = [*code.block.safe, *block.safe, *code.guarded(where, lines, [_DROP])]
    code.block.safe.clear()
    return before


FUNCTIONS: Final = frozenset(
    {
        *("REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "REGEXP_REPLACE", "REGEXP_SPLIT_TO_ARRAY"),
        *("PARSE_DATE", "PARSE_TIME", "PARSE_TIMESTAMP", "STRINGTODATE", "STRINGTOTIMESTAMP"),
    }
)
"""Those that match with backtracking where it cannot be avoided; LIKE never does."""


def are_in(expressions: Iterable[Bound]) -> bool:
    """Return whether one of them is called."""
    return any(
        isinstance(node, b.Call) and node.function in FUNCTIONS
        for expression in expressions
        for node in trees.nodes(expression)
    )


def constant_value(
    expr: Expr,
    target: SqlType,
    functions: Functions,
    settings: Mapping[str, Any],
    column: str = "",
) -> Any:
    """Return the value of an expression without columns, as a value of the type.

    Numbers are widened, decimals must fit exactly, texts become times and bytes, a struct loses the
    fields that the type lacks; nothing else is converted. ``column`` is named in errors.
    Raises: BadValue; whatever ``bind`` raises.
    """
    bound = bind(expr, NO_COLUMNS, functions)
    if isinstance(bound, Const):
        value = bound.value
    else:
        run = compile_expr((), bound, functions, settings, column, metered=True)
        value = run((), _refuse)
    try:
        return strict(value, type_of(bound), target)
    except (ValueError, ArithmeticError, TypeError) as error:
        shown = java_string(value, type_of(bound))
        raise BadValue(
            f"Expected type {target} for field `{column}` "
            f"but got {model.base_name(type_of(bound))}({shown})",
            detail="" if isinstance(error, TypeError | DecimalException) else str(error),
            hint=of_value(expr, type_of(bound), target),
        ) from error


def _refuse(_context: str, message: str, _row: Any) -> None:
    raise BadValue(message)


def strict(value: Any, source: SqlType, target: SqlType) -> Any:
    """Return the value with the target's type, if no information is lost or guessed.

    Raises: TypeError for types that do not convert; ValueError or ArithmeticError for the value.
    """
    if value is None:
        return None
    if isinstance(target, model.Decimal):
        if decimals.as_decimal(source) is None:
            raise coerce.CastNotSupported(source, target)
        return decimals.fitter(target, exact=True)(Decimal(value))
    match source, target:
        case model.Array(a), model.Array(b):
            return [strict(item, a, b) for item in value]
        case model.Map(k1, v1), model.Map(k2, v2):
            return {strict(k, k1, k2): strict(v, v1, v2) for k, v in value.items()}
        case model.Struct(), model.Struct():
            return _strict_struct(value, source, target)
        case _ if coerce.can_coerce(source, target):
            return coerce.caster(source, target)(value)
        case _:
            raise coerce.CastNotSupported(source, target)


def _strict_struct(value: dict[str, Any], source: model.Struct, target: model.Struct) -> Any:
    """Convert a struct: fields not given are NULL, those that the target lacks are left out."""
    given = {field.name: field.type for field in source.fields}
    return {
        field.name: strict(value[field.name], given[field.name], field.type)
        if field.name in given
        else None
        for field in target.fields
    }
