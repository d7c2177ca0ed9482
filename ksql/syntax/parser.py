"""Text to statements: the one place that drives Lark."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from lark import Lark, UnexpectedToken
from lark.lexer import Lexer as LarkLexer

from ksql.base.errors import ParseError, Span
from ksql.base.ident import RESERVED
from ksql.syntax import ast, build_expr, build_leaves, build_query, build_statement, explain_error
from ksql.syntax.build import BUILDERS, Part, join
from ksql.syntax.expr import NOWHERE
from ksql.syntax.lexer import Context, Lexer, Token, Word, is_keyword, opens_lambda

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lark.parsers.lalr_interactive_parser import InteractiveParser

    from ksql.syntax.expr import Expr
    from ksql.types.model import SqlType

_START = {"statement": "statement_text", "expression": "expression_text", "type": "type_text"}
_TEST_ONLY = (ast.AssertValues, ast.AssertNullValues, ast.AssertSource, ast.RunScript)


@dataclass(frozen=True, slots=True)
class RawStatement:
    """A statement cut out of a script, not parsed yet.

    ``text`` is its own source with the ``;``, without the white space and comments around it.
    """

    text: str
    span: Span
    words: tuple[Word, ...] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement with its source text and its place in the script."""

    statement: ast.Statement
    text: str
    span: Span


def split(text: str) -> list[RawStatement]:
    """Cuts a script at its semicolons, minding quotes and comments.

    What follows the last semicolon is a statement too; `parse_one` refuses it as unfinished.

    Raises: ParseError for an open quote or comment and for characters outside the language.
    """
    found: list[RawStatement] = []
    words: list[Word] = []
    for word in _grammar().lexer.words(text):
        words.append(word)
        if word.kind == ";":
            found.append(_raw(text, words))
            words = []
    if words:
        found.append(_raw(text, words))
    return found


def parse_one(
    raw: RawStatement,
    *,
    types: Mapping[str, SqlType] | None = None,
    variables: Mapping[str, str] | None = None,
    test_statements: bool = False,
) -> Parsed:
    """Parses one statement of a script.

    Args:
        raw: what `split` gave.
        types: the registered types by name.
        variables: the defined variables; None turns substitution off.
        test_statements: whether the statements of test files are allowed.

    Raises: ParseError with the place of the first word that does not fit.
    """
    context = Context(types or {}, variables)
    try:
        explain_error.check_start(raw.words, test_statements=test_statements)
        statement = _run("statement", raw.words, context)
        if isinstance(statement, _TEST_ONLY) and not test_statements:
            raise explain_error.not_in_tests(raw.words[1])
    except ParseError as error:
        error.statement = raw.text
        raise
    return Parsed(statement, raw.text, raw.span)


def parse(
    text: str,
    *,
    types: Mapping[str, SqlType] | None = None,
    variables: Mapping[str, str] | None = None,
    test_statements: bool = False,
) -> list[Parsed]:
    """Parses a whole script with one state of types and variables; see `parse_one`."""
    return [
        parse_one(raw, types=types, variables=variables, test_statements=test_statements)
        for raw in split(text)
    ]


def parse_expression(text: str, *, types: Mapping[str, SqlType] | None = None) -> Expr:
    """Parses an expression that stands alone.

    Raises: ParseError if the text is anything else.
    """
    expression: Expr = _run("expression", _grammar().lexer.words(text), Context(types or {}))
    return expression


def parse_type(text: str, types: Mapping[str, SqlType] | None = None) -> SqlType:
    """Parses a type that stands alone.

    Raises: ParseError if the text is anything else or names an unknown type.
    """
    type_: SqlType = _run("type", _grammar().lexer.words(text), Context(types or {}))
    return type_


# --- the machine


class _NoLexer(LarkLexer):
    """Lark gets its tokens from us; so it need not build a lexer of its own."""

    def __init__(self, conf: Any) -> None:
        """Takes Lark's configuration and leaves it."""

    def lex(self, *_: Any) -> Iterator[Any]:
        """Never called."""
        return iter(())


@dataclass(frozen=True, slots=True)
class _Grammar:
    lark: Lark
    lexer: Lexer


@cache
def _grammar() -> _Grammar:
    folder = resources.files("grammar")
    files = ("ksql", "query", "expr", "tokens")
    text = "\n".join(folder.joinpath(f"{name}.lark").read_text("utf-8") for name in files)
    lark = Lark(
        text,
        parser="lalr",
        lexer=_NoLexer,
        start=list(_START.values()),
        transformer=BUILDERS,
        keep_all_tokens=True,
        maybe_placeholders=True,
    )
    return _Grammar(lark, Lexer(lark.terminals, lark.ignore_tokens))


def _raw(text: str, words: list[Word]) -> RawStatement:
    span = join(words[0].span, words[-1].span)
    return RawStatement(text[span.start : span.end], span, tuple(words))


def _run(start: str, words: Sequence[Word], context: Context) -> Any:
    grammar = _grammar()
    machine = grammar.lark.parse_interactive(start=_START[start])
    at = 0
    try:
        for at in range(len(words)):
            word = words[at]
            type_ = _terminal(grammar.lexer, machine, words, at)
            machine.feed_token(Token(type_, word.text, word.span, context))  # type: ignore[arg-type]
        at = len(words)
        result = machine.feed_token(Token("$END", "", NOWHERE, context))  # type: ignore[arg-type]
    except UnexpectedToken as error:
        raise explain_error.unexpected(grammar.lexer, error, words, at) from None
    return result.value if result.__class__ is Part else result


def _terminal(
    lexer: Lexer, machine: InteractiveParser, words: Sequence[Word], at: int
) -> str:
    """The terminal that the word is at this place."""
    word = words[at]
    if word.kind != "NAME":
        if word.kind == "(" and "LAMBDA_OPEN" in machine.choices() and opens_lambda(words, at):
            return "LAMBDA_OPEN"
        return lexer.signs.get(word.kind, word.kind)
    keyword = lexer.keywords.get(word.key)
    if word.key in RESERVED:
        return keyword or "RESERVED"
    choices = machine.choices()
    if keyword is None or keyword not in choices:
        return "NAME"
    if "NAME" not in choices:
        return keyword
    if not explain_error.can_shift(machine.parser_state, keyword):
        return "NAME"
    if explain_error.can_shift(machine.parser_state, "NAME") and not is_keyword(words, at):
        return "NAME"
    return keyword
