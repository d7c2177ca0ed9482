"""Text to words to the tokens that the grammar's state asks for; bounds of depth.

The classes of words come from the grammar (`tokens.lark` and the strings in its rules). The place
decides between keyword and name. A word is a keyword where the parser can take it as one, else a
name unless it is reserved. Where it can take both, the word after it decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING

from ksql.core import RESERVED, ParseError, Span
from ksql.core.types import SqlType

if TYPE_CHECKING:
    from lark.lexer import TerminalDef


NUMBERS = frozenset(("INTEGER", "DIGITS", "FLOAT"))
_OPERAND_ENDS = NUMBERS | {"NAME", "QUOTED", "STRING", "VARIABLE", ")", "]"}
_OPERAND_WORDS = frozenset(("NULL", "TRUE", "FALSE", "END"))
_WORD = re.compile(r"[A-Z_]+\Z")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is written in the text.

    ``kind`` is a class of `tokens.lark` or, for a sign, the sign itself. ``key`` is what keywords
    are compared by: the word in upper case, the sign, or the class of what carries a value.
    """

    kind: str
    key: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class WordContext:
    """The types and variables on which the meaning of a statement's words depends."""

    types: Mapping[str, SqlType] = field(default_factory=dict)
    variables: Mapping[str, str] | None = None


class Token:
    """A word as the parser takes it: with the grammar's terminal as its type."""

    __slots__ = ("context", "span", "text", "type")

    def __init__(self, type_: str, text: str, span: Span, context: WordContext) -> None:
        self.type = type_
        self.text = text
        self.span = span
        self.context = context


class Lines:
    """The lines and columns of a text's places, asked for from the beginning to the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at, self._line, self._begin = 0, 1, 0

    def span(self, start: int, end: int) -> Span:
        """Return the place from offset ``start`` to before ``end``, behind the last one."""
        if count := self._text.count("\n", self._at, start):
            self._line += count
            self._begin = self._text.rfind("\n", self._at, start) + 1
        self._at = start
        return Span(start, end, self._line, start - self._begin + 1)


class Lexer:
    """Cuts text into words by the terminals of one grammar; made once, used by all threads."""

    def __init__(self, terminals: Iterable[TerminalDef], ignored: Iterable[str]) -> None:
        plain = {t.pattern.value: t.name for t in terminals if t.pattern.type == "str"}
        self.keywords = {text: name for text, name in plain.items() if _WORD.match(text)}
        self.signs = {text: name for text, name in plain.items() if text not in self.keywords}
        self._ignored = frozenset(ignored)
        classes = sorted(
            (t for t in terminals if t.pattern.type == "re"), key=lambda t: -t.priority
        )
        parts = [f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in classes]
        longest_first = sorted(self.signs, key=len, reverse=True)
        parts.append(f"(?P<SIGN>{'|'.join(map(re.escape, longest_first))})")
        self._scan = re.compile("|".join(parts)).match

    def words(self, text: str) -> list[Word]:
        """Return all words of the text, without white space and comments.

        Raises: as ``statements``.
        """
        return [word for words in self.statements(text) for word in words]

    def statements(self, text: str) -> Iterator[list[Word]]:
        """Yield the words of one statement after the other, each up to its semicolon.

        What is not taken is not read: a long text may have millions of statements.

        Raises: ParseError for a character that starts no word, or too many open brackets; TooLong.
        """
        lines = Lines(text)
        words: list[Word] = []
        depth = 0
        for match in self._matches(text, lines):
            kind, part = match.lastgroup or "", match.group()
            span = lines.span(*match.span())
            if kind == "SIGN":
                kind = key = part
                depth += _STEP.get(part, 0)
            else:
                key = part.upper() if kind == "NAME" else kind
                if kind in NUMBERS and _is_sign_of_number(words):
                    span = replace(words.pop().span, end=span.end)
                    part = "-" + part
            words.append(Word(kind, key, part, span))
            if depth > MAX_NESTING:
                raise TooDeep(span)
            if len(words) > MOST_WORDS or span.end - words[0].span.start > LONGEST_STATEMENT:
                raise TooLong(words[0].span)
            if part == ";":
                yield words
                words, depth = [], 0
        if words:
            yield words

    def _matches(self, text: str, lines: Lines) -> Iterator[re.Match[str]]:
        position = 0
        while position < len(text):
            match = self._scan(text, position)
            if match is None:
                raise _unreadable(text, lines.span(position, position + 1))
            start, position = match.span()
            if match.lastgroup == "SIGN" and text.startswith("/*", start):
                raise _unreadable(text, lines.span(start, position))
            if match.lastgroup not in self._ignored:
                yield match


_STEP = {"(": 1, "[": 1, ")": -1, "]": -1}


def _unreadable(text: str, span: Span) -> ParseError:
    character = text[span.start]
    if character in "'\"`":
        return ParseError(
            "Syntax Error",
            detail=f"The quote {character} is not closed",
            hint=f"Write a quote inside twice: {character}{character}.",
            span=span,
        )
    if text.startswith("/*", span.start):
        return ParseError("Syntax Error", detail="The comment is not closed", span=span)
    return ParseError("Syntax Error", detail=f"extraneous input '{character}'", span=span)


def _is_sign_of_number(before: list[Word]) -> bool:
    """Return whether the words end with a minus that follows no operand."""
    if not before or before[-1].kind != "-":
        return False
    if len(before) == 1:
        return True
    previous = before[-2]
    if previous.kind == "NAME" and previous.key in RESERVED:
        return previous.key not in _OPERAND_WORDS
    return previous.kind not in _OPERAND_ENDS


# --- keyword or name, where the grammar has room for both

UNIT_FUNCTIONS = frozenset(
    ("DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB")
)
"""The functions whose first argument may be a unit in the singular; elsewhere DAY is a name."""
SINGULAR_UNITS = frozenset(("DAY", "HOUR", "MINUTE", "SECOND"))


def is_keyword(words: Sequence[Word], at: int) -> bool | None:
    """Return whether the word is a keyword and no name, where the grammar alone cannot decide."""
    key = words[at].key
    if key == "COLUMN":  # ADD COLUMN c INT, but ADD column INT
        return at + 2 < len(words) and words[at + 2].key not in {",", ";", "(", "<"}
    if key in SINGULAR_UNITS:
        following = words[at + 1].key if at + 1 < len(words) else ""
        return following == "," and at > 1 and words[at - 2].key in UNIT_FUNCTIONS
    return None


def opens_lambda(words: Sequence[Word], at: int) -> bool:
    """Return whether the bracket is that of ``(a, b) =>``."""
    index = at + 1
    while index + 2 < len(words) and words[index].kind in {"NAME", "QUOTED", "VARIABLE"}:
        if words[index + 1].kind == ")":
            return words[index + 2].kind == "=>"
        if words[index + 1].kind != ",":
            return False
        index += 2
    return False


MAX_NESTING = 250
"""How deep brackets, expressions, types and statements may be nested.

Everything after the parser walks trees by recursion; this bound keeps that well below the limit of
Python.
"""


LONGEST_STATEMENT = 250_000
"""Characters of a statement: with its plan it has to fit a record of the command topic."""

MOST_WORDS = 30_000
"""Words of a statement, so that other clients' statements do not wait long for it."""


class TooLong(ParseError):
    """A statement that is longer than any that could be kept."""

    def __init__(self, span: Span | None = None) -> None:
        super().__init__(
            "Statement is too large to parse",
            detail=f"A statement may have {LONGEST_STATEMENT} characters and {MOST_WORDS} words.",
            hint="Split it, or put long lists into a table and join it.",
            span=span,
        )


class TooDeep(ParseError):
    """A statement that is nested beyond all reason."""

    def __init__(self, span: Span) -> None:
        super().__init__(
            "Statement is too large to parse",
            detail="This may be caused by having too many nested expressions in the statement.",
            hint=f"Expressions and types may be nested {MAX_NESTING} levels deep.",
            span=span,
        )


def check_nesting(tree: object, span: Span) -> None:
    """Refuse a tree that is deeper than `MAX_NESTING`, without recursion.

    Raises: TooDeep.
    """
    level = [tree]
    for _ in range(MAX_NESTING + 1):
        level = [part for node in level for part in _parts(node)]
        if not level:
            return
    raise TooDeep(span)


def _parts(node: object) -> list[object]:
    """Return the nodes directly below; tuples are no level of their own."""
    parts: list[object] = []
    waiting = [getattr(node, name) for name in _names(type(node))]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting.extend(value)
        elif _names(type(value)):
            parts.append(value)
    return parts


_FIELDS: dict[object, tuple[str, ...]] = {Span: ()}


def _names(kind: type) -> tuple[str, ...]:
    """Return the fields of a node's class that may hold nodes; none for anything else."""
    if kind not in _FIELDS:
        known = fields(kind) if is_dataclass(kind) else ()
        _FIELDS[kind] = tuple(field.name for field in known if field.name != "span")
    return _FIELDS[kind]
