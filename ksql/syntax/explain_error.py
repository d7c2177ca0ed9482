"""What is told to a user whose text does not fit the grammar.

Source: the conventions of ksqlDB's parser: the place first, then `Syntax Error`, then what was expected
if that is short, or the word at which reading stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark.parsers.lalr_analysis import Shift

from ksql.base.errors import ParseError, Span
from ksql.base.ident import RESERVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import UnexpectedToken
    from lark.parsers.lalr_parser_state import ParserState

    from ksql.syntax.lexer import Lexer, Word

LEADING_WORDS = (
    "SELECT CREATE INSERT DESCRIBE PRINT EXPLAIN SHOW LIST TERMINATE PAUSE RESUME DROP SET DEFINE "
    "UNDEFINE UNSET ASSERT ALTER"
).split()
"""The words that a statement may start with."""

_MAX_EXPECTED = 3
_CLASS_NAMES = {
    "INTEGER": "INTEGER_VALUE",
    "DIGITS": "DECIMAL_VALUE",
    "FLOAT": "FLOATING_POINT_VALUE",
}
_MANY = frozenset(("NAME", "QUOTED"))


def check_start(words: Sequence[Word], *, test_statements: bool) -> None:
    """Refuses a statement whose first word starts none.

    Raises: ParseError with the most similar word that does start one.
    """
    word = words[0]
    if word.key in LEADING_WORDS or (test_statements and word.key == "RUN"):
        return
    if word.kind != "NAME":
        raise _error(word.span, f"mismatched input '{word.text}'")
    distance, best = min((levenshtein(word.key, known), known) for known in LEADING_WORDS)
    detail = f"Unknown statement '{word.text}'"
    close = distance <= max(1, len(best) // 2)
    raise ParseError(
        "Syntax Error",
        detail=detail,
        hint=f"Did you mean '{best}'?" if close else "",
        span=word.span,
    )


def not_in_tests(word: Word) -> ParseError:
    """The error for a statement that only test files may contain."""
    return _error(
        word.span, "Expecting {'NOT', TOPIC, SCHEMA}", "ASSERT of values and sources is for tests."
    )


def unexpected(lexer: Lexer, error: UnexpectedToken, words: Sequence[Word], at: int) -> ParseError:
    """Turns Lark's complaint about the word at ``at`` (or the end) into an error of ours."""
    state: ParserState[int] = error.state
    span, shown = _place(words, at)
    near = f"Syntax error at or near '{shown}' at line {span.line}:{span.column}"
    choices = state.parse_conf.states[state.position]
    accepted = {name for name in choices if name.isupper() and can_shift(state, name)}
    missing = _missing(lexer, state, accepted, words, at)
    if missing:
        return _error(span, f"missing '{missing}' at '{shown}'")
    if "NAME" in accepted and at < len(words) and words[at].key in RESERVED:
        return _error(span, near, _quote_hint(words[at]))
    return _error(span, _expectation(lexer, accepted) or near)


def _place(words: Sequence[Word], at: int) -> tuple[Span, str]:
    if at < len(words):
        return words[at].span, words[at].text
    if not words:
        return Span(0, 0, 1, 1), "<EOF>"
    last = words[-1].span
    width = last.end - last.start
    return Span(last.end, last.end, last.line, last.column + width), "<EOF>"


def _quote_hint(word: Word) -> str:
    return (
        f'"{word.text}" is a reserved keyword and it can\'t be used as an identifier. '
        f"You can use it as an identifier by escaping it as '`{word.text}`'."
    )


def _missing(
    lexer: Lexer, state: ParserState[int], accepted: set[str], words: Sequence[Word], at: int
) -> str:
    """The closing sign that makes the text go on at the word, or nothing."""
    following = "$END"
    if at < len(words):
        word = words[at]
        reserved = word.kind == "NAME" and word.key in RESERVED
        table = lexer.keywords if reserved else lexer.signs
        following = table.get(word.key if reserved else word.kind, word.kind)
    for sign in (")", "]", ">", ";"):
        terminal = lexer.signs[sign]
        if terminal in accepted and can_shift(state, terminal, following):
            return sign
    return ""


def _expectation(lexer: Lexer, accepted: set[str]) -> str:
    """The list of what could follow, if it is short.

    Inside brackets a long list is cut down to what separates and closes: that is what ends a part
    to which more could have been added.
    """
    if not accepted & _MANY:
        shown = _shown(lexer, accepted)
        if len(shown) <= _MAX_EXPECTED:
            return _listed(shown)
    closing = {lexer.signs[sign] for sign in ")]>"} & accepted
    if closing and len(accepted) > _MAX_EXPECTED:
        return _listed(_shown(lexer, closing | ({lexer.signs[","]} & accepted)))
    return ""


def _shown(lexer: Lexer, terminals: set[str]) -> list[str]:
    """The terminals as ksqlDB shows them: signs first, then keywords, then classes."""
    signs = [f"'{text}'" for text, name in lexer.signs.items() if name in terminals]
    keywords = [f"'{text}'" for text, name in lexer.keywords.items() if name in terminals]
    named = set(lexer.signs.values()) | set(lexer.keywords.values())
    classes = sorted(_CLASS_NAMES.get(name, name) for name in terminals - named - {"$END"})
    ends = ["<EOF>"] if "$END" in terminals else []
    return sorted(signs, key=_sign_order) + sorted(keywords) + classes + ends


def _sign_order(sign: str) -> int:
    return "';' '(' ',' ')'".find(sign) % 100


def _listed(shown: list[str]) -> str:
    return f"Expecting {{{', '.join(shown)}}}" if len(shown) > 1 else f"Expecting {shown[0]}"


def _error(span: Span, detail: str, hint: str = "") -> ParseError:
    return ParseError("Syntax Error", detail=detail, hint=hint, span=span)


def can_shift(state: ParserState[int], *terminals: str) -> bool:
    """Whether the parser, as it stands, can take the terminals one after another."""
    states = state.parse_conf.states
    stack = list(state.state_stack)
    for terminal in terminals:
        while True:
            action = states[stack[-1]].get(terminal)
            if action is None:
                return False
            kind, target = action
            if kind is Shift:
                stack.append(target)
                break
            if target.expansion:
                del stack[-len(target.expansion) :]
            stack.append(states[stack[-1]][target.origin.name][1])
            if terminal == "$END" and stack[-1] == state.parse_conf.end_state:
                break
    return True


def levenshtein(left: str, right: str) -> int:
    """How many letters must be put in, taken out or changed to make one word of the other."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]
