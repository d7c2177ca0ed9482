"""Text to statements, expressions and types."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ksql.core import ParseError, Span
from ksql.sql.syntax import ast, explain_error
from ksql.sql.syntax.build import join
from ksql.sql.syntax.build_leaves import growth, with_variables
from ksql.sql.syntax.lexer import (
    LONGEST_STATEMENT,
    MAX_NESTING,
    TooLong,
    Word,
    WordContext,
    check_nesting,
)
from ksql.sql.syntax.machine import Machine, Unexpected, grammar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ksql.core.types import SqlType

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
    """A statement with its source text and its place in the script.

    ``text`` has its variables replaced: it means the same wherever it is read again.
    """

    statement: ast.Statement
    text: str
    span: Span


def split(text: str) -> list[RawStatement]:
    """Cut a script at its semicolons, minding quotes and comments.

    What follows the last semicolon is a statement too; `parse_one` refuses it as unfinished.

    Raises: as ``statements``.
    """
    return list(statements(text))


def statements(text: str) -> Iterator[RawStatement]:
    """Yield what ``split`` returns; what is not taken is not read.

    Raises: TooLong; ParseError for an open quote or comment and for characters that are not of
        the language.
    """
    _check_pieces(text)
    for words in grammar().lexer.statements(text):
        yield _raw(text, words)


def _check_pieces(text: str) -> None:
    """Check that no piece between two semicolons is longer than a statement, before it is read.

    It looks from the end of what may be one piece: millions of short ones take no time.
    Raises: TooLong.
    """
    begin = 0
    while begin + LONGEST_STATEMENT < len(text):
        end = text.rfind(";", begin, begin + LONGEST_STATEMENT + 1)
        if end < 0:
            end = text.find(";", begin)
            end = len(text) if end < 0 else end
            if len(text[begin:end].strip()) > LONGEST_STATEMENT:
                raise TooLong
        begin = end + 1


def parse_one(
    raw: RawStatement,
    *,
    types: Mapping[str, SqlType] | None = None,
    variables: Mapping[str, str] | None = None,
    test_statements: bool = False,
) -> Parsed:
    """Parse one statement of a script.

    Args:
        raw: what `split` gave.
        types: the registered types by name.
        variables: the defined variables; None turns substitution off.
        test_statements: whether the statements of test files are allowed.

    Raises: ParseError with the place of the first word that does not fit.
    """
    context = WordContext(types or {}, variables)
    try:
        explain_error.check_start(raw.words, test_statements=test_statements)
        _check_unpacked(raw, variables)
        statement = cast("ast.Statement", _run(raw.words, context))
        if isinstance(statement, _TEST_ONLY) and not test_statements:
            raise explain_error.not_in_tests(raw.words)
    except ParseError as error:
        error.statement = raw.text
        raise
    return Parsed(statement, _substituted(raw, variables), raw.span)


def _check_unpacked(raw: RawStatement, variables: Mapping[str, str] | None) -> None:
    """Check how long a statement becomes with the values of its variables, before it is so long.

    Raises: TooLong.
    """
    if not variables or "${" not in raw.text:
        return
    length = len(raw.text)
    for word in raw.words:
        length += growth(word, variables)
        if length > LONGEST_STATEMENT:
            raise TooLong(word.span)


def _substituted(raw: RawStatement, variables: Mapping[str, str] | None) -> str:
    if not variables or "${" not in raw.text:
        return raw.text
    parts, position = [], raw.span.start
    for word in raw.words:
        text = with_variables(word, variables)
        if text != word.text:
            before = raw.text[position - raw.span.start : word.span.start - raw.span.start]
            comment = text.startswith("-") and before.endswith("-")  # it would become one
            parts += [before, " " if comment else "", text]
            position = word.span.end
    return "".join(parts) + raw.text[position - raw.span.start :]


def _raw(text: str, words: list[Word]) -> RawStatement:
    span = join(words[0].span, words[-1].span)
    return RawStatement(text[span.start : span.end], span, tuple(words))


def _run(words: Sequence[Word], context: WordContext) -> object:
    try:
        tree = Machine(words, context).run()
    except Unexpected as error:
        raise explain_error.unexpected(error.machine, error.at) from None
    if len(words) > MAX_NESTING:
        check_nesting(tree, words[0].span)
    return tree
