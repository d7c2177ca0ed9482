"""Names, literals, variables and types: the leaves of every tree."""

from __future__ import annotations

import decimal
import math
import re
from functools import partial
from typing import TYPE_CHECKING, Final, get_args

from ksql.core import PREPARING, ParseError, Span, did_you_mean
from ksql.core.types import model
from ksql.sql.syntax import expr
from ksql.sql.syntax.build import listed, node, rule, value, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.core.types import SqlType
    from ksql.sql.syntax.lexer import Token, Word

_SOURCE_NAME = re.compile(r"[A-Za-z0-9_-]*\Z")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_@]*)\}")
_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*\Z")
_QUOTED_NAME = re.compile(r'`(?:[^`]|``)*`\Z|"(?:[^"]|"")*"\Z')
_INTEGER = re.compile(r"-?[0-9]+\Z")
_DECIMAL = re.compile(r"-?(?:[0-9]+\.[0-9]*|\.[0-9]+)\Z")
_DOUBLE = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+\Z")
_STRING = re.compile(r"'(?:[^']|'')*'\Z")
_WORDS = {"NULL": expr.NullLit, "TRUE": expr.BoolLit, "FALSE": expr.BoolLit}

PLURAL: dict[str, expr.IntervalUnit] = {
    word: unit for unit in get_args(expr.IntervalUnit) for word in (unit, unit.removesuffix("S"))
}
"""The units of time by their words, singular and plural."""


class LiteralError(ParseError):
    """A literal that reads well but has no value, such as a number that is too large."""

    def text(self) -> str:
        """Return the whole error.

        The column is counted as ksqlDB does for literals, one further on.
        """
        if self.span is None:
            return self.message
        where = f"line {self.span.line}:{self.span.column + 1}"
        return f"{PREPARING}{where}: {self.message}"


class VariableError(ParseError):
    """A variable that is not defined, or whose text does not fit its place."""


_TYPES_ELSEWHERE: Final = {
    "BINARY": "BYTES",
    "BLOB": "BYTES",
    "BOOL": "BOOLEAN",
    "BYTEA": "BYTES",
    "CHAR": "STRING",
    "DATETIME": "TIMESTAMP",
    "DEC": "DECIMAL(10, 2)",
    "FLOAT": "DOUBLE",
    "INT64": "BIGINT",
    "JSON": "STRUCT<..>, or STRING with functions such as EXTRACTJSONFIELD",
    "LONG": "BIGINT",
    "NUMBER": "DECIMAL(10, 2)",
    "NUMERIC": "DECIMAL(10, 2)",
    "REAL": "DOUBLE",
    "ROW": "STRUCT<..>",
    "SHORT": "INTEGER",
    "SMALLINT": "INTEGER",
    "TEXT": "STRING",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TINYINT": "INTEGER",
    "VARBINARY": "BYTES",
}
"""What to write for the types of other databases."""


class UnknownType(ParseError):
    """A type name that is neither SQL's nor registered."""

    def __init__(self, name: str, span: Span, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(name, (*model.PRIMITIVES, *known))
        if name in _TYPES_ELSEWHERE:
            hint = f"Write {_TYPES_ELSEWHERE[name]}."
        if name == "KEY":
            hint = "KEY, or PRIMARY KEY of a table, follows the type of its column: (id INT KEY)."
        super().__init__(f"Cannot resolve unknown type: {name}", hint=hint, span=span)


class TypedLiteral(ParseError):
    """A type before a text; only DECIMAL can be there."""

    def __init__(self, name: str, text: str, span: Span) -> None:
        hint = f"CAST({text} AS {name}) makes one of a text." if name in model.PRIMITIVES else ""
        if name == "INTERVAL":
            hint = "TIMESTAMPADD(DAYS, 1, x), DATEADD and TIMEADD add to times."
        super().__init__(f"Cannot resolve unknown type: {name}", hint=hint, span=span)


class BadType(ParseError):
    """A type whose parts contradict each other."""


# --- names


def unquote(text: str) -> str:
    """Return the text within quotes, whose doubled quotes stand for one."""
    quote = text[0]
    return text[1:-1].replace(quote + quote, quote)


@rule("plain_name")
def plain_name(span: Span, token: Token) -> str:
    """Return an unquoted name, in upper case."""
    return token.text.upper()


@rule("quoted_name")
def quoted_name(span: Span, token: Token) -> str:
    """Return a quoted name, as written."""
    return unquote(token.text)


@rule("variable_name")
def variable_name(span: Span, token: Token) -> str:
    """Return a name that a variable stands for; its text must itself be a name."""
    value = _variable(token)
    name = _as_name(value)
    if name is None:
        raise VariableError(f"Got: '{value}'. A variable for a name must hold a name", span=span)
    return name


def _as_name(text: str) -> str | None:
    if _QUOTED_NAME.match(text):
        return unquote(text)
    return text.upper() if _BARE_NAME.match(text) else None


@rule("source_name")
def source_name(span: Span, name: str) -> str:
    """Return the name of a stream or table, which has fewer characters to choose from."""
    if not _SOURCE_NAME.match(name):
        raise ParseError(
            f"Illegal argument at Line: {span.line}, Col: {span.column}. Source names may only "
            f"contain alphanumeric values, '_' or '-'. Got: '{name}'",
            span=span,
        )
    return name


@rule("resource", "property_name")
def resource(span: Span, token: Token) -> str:
    """Return the name of something outside (a topic, a subject) as written: its case may count."""
    match token.type:
        case "STRING":
            return string_value(token)
        case "QUOTED":
            return unquote(token.text)
        case "VARIABLE":
            value = _variable(token)
            return unquote(value) if value[:1] in {"'", '"', "`"} else value
        case _:
            return token.text


@rule("variable")
def variable(span: Span, token: Token) -> str:
    """Return the name of a variable; its case counts."""
    if token.text[0].isdigit():
        raise ParseError(
            f"Got: '{token.text}'. The name of a variable begins with a letter or _",
            span=token.span,
        )
    return token.text


# --- literals


def string_value(token: Token) -> str:
    """Return the value of a text in single quotes, with its variables replaced."""
    text = token.text[1:-1].replace("''", "'")
    variables = token.context.variables
    if not variables or "${" not in text:
        return text
    return _VARIABLE.sub(lambda reference: variables.get(reference[1], reference[0]), text)


def with_variables(word: Word, variables: Mapping[str, str]) -> str:
    """Return the word as it would be written without its variables."""
    match word.kind:
        case "VARIABLE":
            return variables.get(word.text[2:-1], word.text)
        case "STRING":
            return _VARIABLE.sub(lambda reference: _quoted(reference, variables), word.text)
        case _:
            return word.text


def growth(word: Word, variables: Mapping[str, str]) -> int:
    """Return by how many characters the values of its variables make a word longer."""
    match word.kind:
        case "VARIABLE":
            return len(variables.get(word.text[2:-1], word.text)) - len(word.text)
        case "STRING":
            references = [one for one in _VARIABLE.finditer(word.text) if one[1] in variables]
            values = [variables[one[1]] for one in references]
            quotes = sum(value.count("'") for value in values)
            return sum(map(len, values)) + quotes - sum(len(one[0]) for one in references)
        case _:
            return 0


def _quoted(reference: re.Match[str], variables: Mapping[str, str]) -> str:
    value = variables.get(reference[1])
    return reference[0] if value is None else value.replace("'", "''")


def _variable(token: Token) -> str:
    name = token.text[2:-1]
    variables = token.context.variables
    if variables is None:
        raise VariableError(
            f"Variable substitution is disabled, {token.text} has no value",
            hint="Set 'ksql.variable.substitution.enable' to 'true'.",
            span=token.span,
        )
    if name not in variables:
        raise VariableError(
            f"The variable {token.text} is not defined",
            hint=f"DEFINE {name} = '..'; defines it.",
            span=token.span,
        )
    return variables[name]


@rule("text")
def text(span: Span, token: Token) -> str:
    """Return a text in single quotes."""
    return string_value(token)


@rule("string_literal")
def string_literal(span: Span, token: Token) -> expr.StringLit:
    """Return a text in single quotes."""
    return expr.StringLit(string_value(token), span=span)


@rule("integer_literal")
def integer_literal(span: Span, token: Token) -> expr.IntLit:
    """Return a whole number of at most 64 bits."""
    return _integer(token.text, span)


@rule("decimal_literal")
def decimal_literal(span: Span, token: Token) -> expr.DecimalLit:
    """Return a number with a point."""
    return expr.DecimalLit(decimal.Decimal(token.text), span=span)


@rule("double_literal")
def double_literal(span: Span, token: Token) -> expr.DoubleLit:
    """Return a number with an exponent."""
    return _double(token.text, span)


def _integer(digits: str, span: Span, *, bits: int = 64) -> expr.IntLit:
    significant = digits.lstrip("-").lstrip("0") or "0"
    value = int(significant) if len(significant) < 20 else 2**64
    if digits.startswith("-"):
        value = -value
    if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise LiteralError(f"Invalid numeric literal: {digits}", span=span)
    return expr.IntLit(value, span=span)


def _double(digits: str, span: Span) -> expr.DoubleLit:
    value = float(digits)
    if math.isinf(value):
        raise LiteralError(f"Number overflows DOUBLE: {digits}", span=span)
    return expr.DoubleLit(value, span=span)


@rule("variable_literal")
def variable_literal(span: Span, token: Token) -> expr.Literal | expr.Ref | expr.Variable:
    """Return a variable in an expression: a literal or a column, by what its text is."""
    if token.context.variables is None:
        return expr.Variable(token.text[2:-1], span=span)
    value = _variable(token)
    if _STRING.match(value):
        return expr.StringLit(value[1:-1].replace("''", "'"), span=span)
    if _INTEGER.match(value):
        return _integer(value, span)
    if _DECIMAL.match(value):
        return expr.DecimalLit(decimal.Decimal(value), span=span)
    if _DOUBLE.match(value):
        return _double(value, span)
    if value.upper() in _WORDS:
        return _word(value.upper(), span)
    name = _as_name(value)
    if name is None:
        raise VariableError(
            f"Got: '{value}'. A variable for a literal must hold a literal",
            hint="Hold a text in quotes of its own: DEFINE v = '''text''';",
            span=span,
        )
    return expr.Ref(name, span=span)


def _word(word: str, span: Span) -> expr.NullLit | expr.BoolLit:
    return expr.NullLit(span=span) if word == "NULL" else expr.BoolLit(word == "TRUE", span=span)


words("decimal_word")
node(expr.NullLit, "null_literal")
node(partial(expr.BoolLit, True), "true_literal")
node(partial(expr.BoolLit, False), "false_literal")


@rule("typed_literal")
def typed_literal(span: Span, type_name: str, token: Token) -> expr.DecimalLit:
    """Build ``DECIMAL '12.30'``, the only literal that names its type."""
    if type_name != "DECIMAL":
        raise TypedLiteral(type_name, token.text, span)
    value = string_value(token)
    if not (_INTEGER.match(value) or _DECIMAL.match(value)):
        raise LiteralError(f"Invalid numeric literal: {value}", span=span)
    return expr.DecimalLit(decimal.Decimal(value), span=span)


# --- types


@rule("type_name")
def type_name(span: Span, token: Token) -> SqlType:
    """Return a primitive or a registered type; quotes do not make their case count."""
    match token.type:
        case "QUOTED":
            name = unquote(token.text)
        case "VARIABLE":
            name = variable_name(span, token)
        case _:
            name = token.text.upper()
    known = model.PRIMITIVES.get(name.upper()) or token.context.types.get(name.upper())
    if known is None:
        raise UnknownType(name, span, token.context.types)
    return known


@rule("sized_type")
def sized_type(span: Span, type_: SqlType, *parameters: object) -> SqlType:
    """Build ``VARCHAR(30)``, whose parameters say nothing."""
    return type_


words("type_parameter")
listed("type_fields")
value(model.Array, "array_type")
value(model.Map, "map_type")
value(model.Field, "type_field")


@rule("decimal_type")
def decimal_type(span: Span, precision: Token, scale: Token) -> model.Decimal:
    """Build ``DECIMAL(p, s)`` with p at least 1 and s from 0 to p."""
    digits, places = (
        _integer(token.text, token.span, bits=32).value for token in (precision, scale)
    )
    shown = f"DECIMAL({digits},{places})"
    if digits < 1:
        raise BadType(f"DECIMAL precision must be >= 1: {shown}", span=span)
    if places < 0:
        raise BadType(f"DECIMAL scale must be >= 0: {shown}", span=span)
    if digits < places:
        raise BadType(f"DECIMAL precision must be >= scale: {shown}", span=span)
    return model.Decimal(digits, places)


@rule("struct_type")
def struct_type(span: Span, fields: tuple[model.Field, ...] | None = None) -> model.Struct:
    """Build ``STRUCT<name type, ..>``; no two fields have one name."""
    if wrong := model.duplicate_fields(fields or ()):
        raise BadType(wrong, span=span)
    return model.Struct(fields or ())
