"""Errors in the meaning of an expression, with the CAST that mends it and expressions as text.

The texts are those of the product whose clients match on them.
Source: docs/sql/expressions.md.

If operands' types do not go together, the remedy is mostly a CAST, as it is written.

Error messages and logs show expressions fully bracketed, on one line.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ksql.core import PREPARING, RESOLVING, ParseError, StatementError, UnknownName, ident, quote
from ksql.core.types import SYSTEM_NAMES, coerce, model
from ksql.sql.syntax import expr as ex
from ksql.sql.syntax.printer import Writer, literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ksql.core import Span
    from ksql.core.types import SqlType


def position_text(span: Span) -> str:
    """Return ``Line: L, Col: C: `` of a span, nothing for a node that was not read from a text."""
    return "" if span is ex.NOWHERE else f"Line: {span.line}, Col: {span.column}: "


def type_name(type_: model.SqlType) -> str:
    """Return the type; that of an untyped NULL in small letters."""
    return "null" if type_ == model.NULL else str(type_)


class _Speller(Writer):
    """Writes expressions as they were written, spelled out."""

    def column(self, ref: ex.Ref) -> str:
        prefix = f"{quote(ref.source)}." if ref.source else ""
        return prefix + quote(ref.name)

    def literal(self, value: ex.Literal | ex.Variable) -> str:
        return f"{value.value:f}" if isinstance(value, ex.DecimalLit) else literal(value)

    def operand(self, text: str) -> str:
        return text

    def type(self, type_: model.SqlType) -> str:
        return str(type_)

    def call(self, expr: ex.Call, args: str) -> str:
        return f"{quote(expr.name)}({args})"

    def parameters(self, names: tuple[str, ...]) -> str:
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def base(self, expr: ex.Expr) -> str:
        return self.write(expr)


describe = _Speller().write
"""The expression as it was written, spelled out."""


OPERATORS = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
_CONDITIONS = ("WHERE", "HAVING")
_FEW: Final = 12
_NOW: Final = {
    "CURRENT_TIMESTAMP": "FROM_UNIXTIME(UNIX_TIMESTAMP())",
    "CURRENT_DATE": "FROM_DAYS(UNIX_DATE())",
}
_TIME_FORMS: dict[SqlType, str] = {
    model.TIMESTAMP: "yyyy-MM-dd'T'HH:mm:ss.SSS, with an optional offset",
    model.DATE: "yyyy-MM-dd",
    model.TIME: "HH:mm:ss.SSS",
}


class UnknownColumn(UnknownName):
    """No source has that column."""

    def __init__(
        self, clause: str, ref: ex.Ref, known: Sequence[str], alias: ex.Expr | None = None
    ) -> None:
        shown = describe(ref)
        text = f"{position_text(ref.span)}{clause} column '{shown}' cannot be resolved."
        if clause == "PARTITION BY":
            text += (
                f" '{shown}' must be a column in the source schema since PARTITION BY is applied "
                "on the input."
            )
        near = ident.near(ref.name, known)
        super().__init__(text, near)
        if alias is not None:
            self.hint = f"{shown} is an alias of SELECT: write {describe(alias)}."
        elif ref.name in _NOW:
            self.hint = f"{_NOW[ref.name]} is the present time."
        elif not near:
            self.hint = _without_likeness(ref, [name for name in known if name not in SYSTEM_NAMES])


def _without_likeness(ref: ex.Ref, known: Sequence[str]) -> str:
    """Return the hint for a name that looks like none that is known."""
    if not known or (ref.source is None and quote(ref.name) != ref.name):
        return f"Texts have single quotes: {ident.string_literal(ref.name)}."
    names = [quote(name) for name in known]
    return f"The columns are {ident.listed(names, 'and')}." if len(names) <= _FEW else ""


class UnknownSource(UnknownName, ParseError):
    """FROM has no source of that name or alias."""

    def __init__(self, ref: ex.Ref, known: Mapping[str, Mapping[str, SqlType]]) -> None:
        name = ref.source or ""
        text = f"{PREPARING}'{name}' is not a valid stream/table name or alias."
        super().__init__(text, ident.near(name, known), span=ref.span)
        type_ = next((columns[name] for columns in known.values() if name in columns), None)
        if isinstance(type_, model.Struct):
            self.hint = f"A field of a struct: {quote(name)}->{quote(ref.name)}."
        elif isinstance(type_, model.Map):
            self.hint = f"A value of a map: {quote(name)}['key']."
        elif known and not self.hint:
            self.hint = f"The sources of this query are called {ident.listed([*known], 'and')}."


class AmbiguousColumn(ParseError):
    """Several sources have that column."""

    def __init__(self, ref: ex.Ref, candidates: tuple[str, ...]) -> None:
        super().__init__(
            f"{RESOLVING}{position_text(ref.span)}Column '{describe(ref)}' is ambiguous. "
            f"Could be {ident.listed(sorted(candidates), 'or')}."
        )


class ExpressionError(StatementError):
    """An expression whose types do not fit; in a condition the text begins with the clause."""

    def __init__(
        self,
        clause: str,
        message: str,
        whole: ex.Expr | None = None,
        *,
        detail: str = "",
        hint: str = "",
    ) -> None:
        if clause in _CONDITIONS:
            message = f"Error in {clause} expression: {message}"
            if whole is not None:
                detail = "\n".join(filter(None, (detail, f"Statement: {describe(whole)}")))
        super().__init__(message, detail=detail, hint=hint)


class NotAvailableHere(ExpressionError):
    """A column that exists in other clauses of the query only."""

    def __init__(self, clause: str, ref: ex.Ref) -> None:
        if clause == "WHERE":
            super().__init__(clause, f"Unknown column {describe(ref)}.")
            return
        super().__init__(
            "",
            f"Window bounds column {describe(replace(ref, source=None))} can only be used in the "
            "SELECT clause of windowed aggregations and can not be passed to aggregate functions.\n"
            "See https://github.com/confluentinc/ksql/issues/4397",
        )


class CannotCompare(ExpressionError):
    """A comparison of types that have no order or equality in common."""

    def __init__(self, clause: str, node: ex.Compare, left: SqlType, right: SqlType) -> None:
        super().__init__(
            clause,
            f"Cannot compare {describe(node.left)} ({type_name(left)}) to "
            f"{describe(node.right)} ({type_name(right)}) with {OPERATORS[node.op]}.",
            node,
            hint=of_comparison((node.left, left), (node.right, right)),
        )


class UnreadableTime(StatementError):
    """A text that is compared with a time and is none."""

    def __init__(
        self, text: str, type_: SqlType, error: ValueError, span: Span | None = None
    ) -> None:
        super().__init__(
            f"Failed to parse {type_name(type_).lower()} '{text}': {error}",
            hint=f"Required format is: {_TIME_FORMS[type_]}; trailing parts may be missing.",
            span=span,
        )


class ComparedWithNull(ExpressionError):
    """A comparison with the literal NULL."""

    def __init__(self, clause: str, node: ex.Compare, left: SqlType, right: SqlType) -> None:
        shown = map(str, (left, right))
        super().__init__(
            clause,
            f"Comparison with NULL not supported: {f' {node.op} '.join(shown)}",
            node,
            detail="Use 'IS NULL' or 'IS NOT NULL' instead.",
        )


class BadArithmetic(ExpressionError):
    """An arithmetic operation that these types do not have."""

    def __init__(self, clause: str, node: ex.Expr, types: tuple[SqlType, ...]) -> None:
        shown = " and ".join(type_name(type_) for type_ in types)
        said = f"Error processing expression: {describe(node)}."
        if len(types) == 1:
            super().__init__(clause, f"{said} Arithmetic on type {shown} is not supported.")
            return
        refused = f"{said} Arithmetic on types {shown} are not supported."
        if model.NULL in types:
            super().__init__(clause, refused)
            return
        kinds = " ".join(str(type_).partition("(")[0].partition("<")[0] for type_ in types)
        hint = ""
        if isinstance(node, ex.Binary):
            operands = zip((node.left, node.right), types, strict=True)
            hint = of_arithmetic(node.op, *operands)
        super().__init__(
            clause, f"Unsupported arithmetic types. {kinds}", detail=refused, hint=hint
        )


class BadType(ExpressionError):
    """An operand of the wrong type."""

    def __init__(self, clause: str, message: str, *, hint: str = "") -> None:
        super().__init__(clause, message)
        self.hint = hint


class NoGroupKey(StatementError):
    """A GROUP BY of nothing."""

    def __init__(self) -> None:
        super().__init__("GROUP BY requires at least one expression")


class NotBoolean(StatementError):
    """A condition that is not a condition."""

    def __init__(self, clause: str, node: ex.Expr, type_: SqlType) -> None:
        super().__init__(
            f"Type error in {clause} expression: Should evaluate to boolean but is "
            f"{describe(node)} ({type_name(type_)}) instead."
        )


class InvalidExpression(StatementError):
    """An expression that is well typed but cannot be turned into a program."""

    def __init__(self, clause: str, message: str, *, hint: str = "") -> None:
        kind = "Predicate" if clause in _CONDITIONS else clause.title()
        super().__init__(f"Invalid {kind}: {message}", hint=hint)


class BadLiteral(InvalidExpression):
    """A literal that cannot take the type of its neighbours."""

    def __init__(self, clause: str, text: str, type_: SqlType) -> None:
        super().__init__(clause, f'invalid input syntax for type {type_}: "{text}".')


class NoOperator(InvalidExpression):
    """An element of a list whose type does not go with the others; ``cause`` says what in it."""

    def __init__(
        self, clause: str, left: SqlType, right: SqlType, node: ex.Expr, *, cause: str = ""
    ) -> None:
        hint = "Hint: You might need to add explicit type casts."
        super().__init__(
            clause,
            f"operator does not exist: {left} = {right} ({describe(node)})",
            hint=f"{hint}\n{cause}" if cause else hint,
        )


class BadLambda(StatementError):
    """A lambda where none may be, or with arguments that cannot be."""


class NameTaken(BadLambda):
    """A lambda with an argument whose name has another meaning there."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(f"{RESOLVING}{message}: {name}")


class CannotInfer(StatementError):
    """A NULL whose type cannot be inferred."""

    def __init__(self) -> None:
        super().__init__(
            "Can't infer a type of null. Please explicitly cast it to a required type, "
            "e.g. CAST(null AS VARCHAR)."
        )


class BadValue(StatementError):
    """A value that an INSERT gives to a column of another type."""


Operand = tuple[ex.Expr, "SqlType"]

_MOST_SHOWN: Final = 40
_ADDING: Final = {
    model.TIMESTAMP: "TIMESTAMPADD and TIMESTAMPSUB",
    model.DATE: "DATEADD and DATESUB",
    model.TIME: "TIMEADD and TIMESUB",
}
_FROM_NUMBER: Final = {
    model.TIMESTAMP: ("FROM_UNIXTIME", "milliseconds since 1970"),
    model.DATE: ("FROM_DAYS", "days since 1970"),
}


def of_arithmetic(op: str, left: Operand, right: Operand) -> str:
    """Return what to write instead of ``left op right``; empty if nothing is known."""
    types = left[1], right[1]
    for type_, functions in _ADDING.items():
        if type_ in types:
            return f"{functions} compute with a {type_}."
    if types == (model.STRING, model.STRING):
        return "CAST(.. AS DOUBLE) makes numbers of texts; || joins them."
    text, number = _text_and(left, right)
    if text is None or number is None or not model.is_numeric(number[1]):
        return _of_parts(left, right)
    as_number = _as_number(text, number[1])
    return f"{as_number} || joins texts: {_cast(number[0], 'STRING')}." if op == "+" else as_number


def of_comparison(left: Operand, right: Operand) -> str:
    """Return what to write instead of a comparison; empty if nothing is known."""
    for (_, time), (node, type_) in ((left, right), (right, left)):
        if time in _FROM_NUMBER and model.is_numeric(type_):
            function, unit = _FROM_NUMBER[time]
            return f"{function}({_shown(node)}) makes a {time} of {unit}."
    text, other = _text_and(left, right)
    if text is None or other is None:
        return _of_parts(left, right)
    if model.is_numeric(other[1]):
        return _as_number(text, other[1])
    if other[1] == model.BOOLEAN:
        return f"Write TRUE or FALSE without quotes, or {_cast(other[0], 'STRING')}."
    return _of_parts(left, right)


def of_value(node: ex.Expr, type_: SqlType, target: SqlType) -> str:
    """Return what to write instead of a value that a column does not take; empty if unknown."""
    if target in _FROM_NUMBER and model.is_numeric(type_):
        return of_comparison((node, type_), (node, target))
    if isinstance(node, ex.StringLit) and model.is_numeric(target) and _is_number(node.value):
        return _as_number((node, type_), target)
    if target == model.STRING and isinstance(node, ex.IntLit | ex.DecimalLit | ex.BoolLit):
        return f"Texts have single quotes: '{describe(node)}'."
    return ""


def _text_and(left: Operand, right: Operand) -> tuple[Operand | None, Operand | None]:
    for text, other in ((left, right), (right, left)):
        if text[1] == model.STRING != other[1]:
            return text, other
    return None, None


def _as_number(text: Operand, target: SqlType) -> str:
    node, _ = text
    if isinstance(node, ex.StringLit) and _is_number(node.value):
        return f"Write {node.value.strip()} without quotes."
    return f"{_cast(node, str(target))} makes it a number."


def _of_parts(*operands: Operand) -> str:
    for node, type_ in operands:
        if isinstance(type_, model.Array):
            return f"An element of the array: {_shown(node)}[1]."
        if isinstance(type_, model.Map):
            return f"A value of the map: {_shown(node)}['key']."
        if isinstance(type_, model.Struct) and type_.fields:
            return f"A field of the struct: {_shown(node)}->{type_.fields[0].name}."
    return ""


def _is_number(text: str) -> bool:
    try:
        coerce.parse_number(text)
    except (ValueError, ArithmeticError):
        return False
    return True


def _cast(node: ex.Expr, type_: str) -> str:
    return f"CAST({_shown(node)} AS {type_})"


def _shown(node: ex.Expr) -> str:
    text = describe(node)
    return text if len(text) <= _MOST_SHOWN else ".."
