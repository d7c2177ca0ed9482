"""The message for a text that does not fit the grammar; common mistakes by example.

Source: the conventions of ksqlDB's parser: the place first, then `Syntax Error`, then what was
expected if that is short, or the word at which reading stopped.

Common mistakes are known by where reading stops.

This is Lark's idea of errors by example (``match_examples``), on our machine.
"""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from ksql.core import RESERVED, ParseError, Span, similar
from ksql.sql.syntax.lexer import Lexer, Word, WordContext
from ksql.sql.syntax.machine import Machine, Unexpected, grammar

if TYPE_CHECKING:
    from collections.abc import Sequence


_OF_TESTS = frozenset(("RUN",))
_MAX_EXPECTED = 3
_LEAST_SIMILAR = 4
_LOOK_BACK = 3
_CLASS_NAMES = {
    "INTEGER": "INTEGER_VALUE",
    "DIGITS": "DECIMAL_VALUE",
    "FLOAT": "FLOATING_POINT_VALUE",
}
_CLASS_ORDER = ("STRING", "INTEGER", "DIGITS", "FLOAT", "VARIABLE", "NAME", "QUOTED", "LAMBDA_OPEN")
_MANY = frozenset(("NAME", "QUOTED"))


@cache
def leading_words() -> frozenset[str]:
    """Return the words that a statement may start with, those of test files alone left out."""
    start = Machine((), WordContext())
    accepted = start.accepted()
    words = (word for word, terminal in start.lexer.keywords.items() if terminal in accepted)
    return frozenset(words) - _OF_TESTS


def check_start(words: Sequence[Word], *, test_statements: bool) -> None:
    """Refuse a statement whose first word starts none.

    Raises: ParseError with the most similar word that does start one.
    """
    word = words[0]
    if word.key in leading_words() or (test_statements and word.key in _OF_TESTS):
        return
    if word.kind != "NAME":
        raise _error(word.span, f"mismatched input '{word.text}'")
    close = similar(word.key, leading_words())
    hint = f"Did you mean '{close[0]}'?" if close else ""
    hint = mistakes().starts.get(word.key, hint)
    raise _error(word.span, f"Unknown statement '{word.text}'", hint)


def not_in_tests(words: Sequence[Word]) -> ParseError:
    """Return the error for a statement that only test files may contain.

    It stops at the second word: the first one, ASSERT, starts other statements, too.
    """
    start, stop = words[:2]
    shown = f"{start.text} {stop.text}"
    hint = "ASSERT of values and sources is for tests."
    return _error(stop.span, f"Unknown statement '{shown}'", hint)


def unexpected(machine: Machine, at: int) -> ParseError:
    """Explain the error at the word ``at``, or at the end of the text."""
    words = machine.words
    span, shown = _span_and_text(words, at)
    near = _near(span, shown)
    accepted = machine.accepted()
    advice = _variable_hint(words, at) or hint(machine, at)
    advice = advice or _similar(machine, accepted, at)
    missing = _missing(machine, accepted, at)
    if missing:
        return _error(span, f"missing '{missing}' at '{shown}'", advice)
    if "NAME" in accepted and at < len(words) and words[at].key in RESERVED:
        return _error(span, near, advice or _quote_hint(words[at]))
    return _error(span, _expectation(machine.lexer, accepted) or near, advice)


def _variable_hint(words: Sequence[Word], at: int) -> str:
    if at == len(words) or words[at].kind != "VARIABLE":
        return ""
    return (
        f"A variable stands for one name or one literal, and neither can stand here: write out "
        f"what {words[at].text} holds."
    )


def _similar(machine: Machine, accepted: set[str], at: int) -> str:
    """Return the keyword that resembles the word and lets the parse continue, if there is one.

    A name may be in many places: a misspelt keyword is then read as one. The parse stops at a word
    or two after it.
    """
    for index in range(min(at, len(machine.words) - 1), max(at - _LOOK_BACK, 0), -1):
        word = machine.words[index]
        if word.key in RESERVED and (index < at or "NAME" in accepted):
            continue
        keyword = _meant(machine, index, at) if len(word.key) >= _LEAST_SIMILAR else ""
        if keyword:
            instead = f" instead of '{word.text}'" if index < at else ""
            return f"Did you mean '{keyword}'{instead}?"
    return ""


def _meant(machine: Machine, index: int, at: int) -> str:
    """Return the most similar keyword that, put there, lets the parse come beyond ``at``."""
    words = list(machine.words)
    word = words[index]
    if word.kind != "NAME":
        return ""
    for keyword in similar(word.key, machine.lexer.keywords, count=3, least=0.7):
        words[index] = replace(word, key=keyword)
        with contextlib.suppress(ParseError):
            if keyword != word.key and machine.reach(words) > at:
                return keyword
    return ""


def _span_and_text(words: Sequence[Word], at: int) -> tuple[Span, str]:
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


def _missing(machine: Machine, accepted: set[str], at: int) -> str:
    """Return the closing sign with which the parse continues at the word; empty if none does."""
    for sign in _closing(machine.lexer, accepted) + ";":
        terminal = machine.lexer.signs[sign]
        if terminal in accepted:
            for following in machine.readings(at):
                if machine.can_take(terminal, following):
                    return sign
    return ""


def _closing(lexer: Lexer, accepted: set[str]) -> str:
    """Return the signs that close brackets; not ``>`` where other comparisons are accepted too."""
    return ")]" if lexer.signs["<="] in accepted else ")]>"


def _expectation(lexer: Lexer, accepted: set[str]) -> str:
    """Return the list of what could follow, if it is short.

    Inside brackets a long list is cut down to the words that separate and close. They end a part to
    which more could have been added.
    """
    if not accepted & _MANY:
        shown = _shown(lexer, accepted)
        if len(shown) <= _MAX_EXPECTED:
            return _listed(shown)
    closing = {lexer.signs[sign] for sign in _closing(lexer, accepted)} & accepted
    if closing and len(accepted) > _MAX_EXPECTED:
        return _listed(_shown(lexer, closing | ({lexer.signs[","]} & accepted)))
    return ""


def _shown(lexer: Lexer, terminals: set[str]) -> list[str]:
    """Return the terminals as ksqlDB shows them: signs first, then keywords, then classes."""
    signs = [f"'{text}'" for text, name in lexer.signs.items() if name in terminals]
    keywords = [f"'{text}'" for text, name in lexer.keywords.items() if name in terminals]
    named = set(lexer.signs.values()) | set(lexer.keywords.values())
    others = terminals - named - {"$END"}
    classes = [_CLASS_NAMES.get(name, name) for name in sorted(others, key=_CLASS_ORDER.index)]
    ends = ["<EOF>"] if "$END" in terminals else []
    return sorted(signs, key=_sign_order) + sorted(keywords) + classes + ends


def _sign_order(sign: str) -> int:
    return "';' '(' ',' ')'".find(sign) % 100


def _listed(shown: list[str]) -> str:
    return f"Expecting {{{', '.join(shown)}}}" if len(shown) > 1 else f"Expecting {shown[0]}"


def _near(span: Span, shown: str) -> str:
    return f"Syntax error at or near '{shown}' at line {span.line}:{span.column}"


def _error(span: Span, detail: str, hint: str = "") -> ParseError:
    return ParseError("Syntax Error", detail=detail, hint=hint, span=span)


_MAX_CONTEXT = 3
_ANY_NAME = "(any name)"

ParserStop = tuple[tuple[int, ...], str]
"""The states that the parse is in, innermost last, and the word at which it stopped."""


class Mistakes(NamedTuple):
    """The table of mistakes."""

    places: dict[ParserStop, str]
    phrases: list[tuple[list[str], str]]
    starts: dict[str, str]


def hint(machine: Machine, at: int) -> str:
    """Return the hint about the word at ``at``; empty if there is none."""
    known = mistakes()
    for phrase, said in known.phrases:
        if _spells(machine.words, at, phrase):
            return said
    key = _key(machine.words, at)
    for context in range(1, _MAX_CONTEXT + 1):
        states = machine.states(context)
        said = known.places.get((states, key), "")
        if not said and _is_free(machine.words, at):
            said = known.places.get((states, _ANY_NAME), "")
        if said:
            return said
    return ""


@cache
def mistakes() -> Mistakes:
    """Read the examples, at the first error that is met."""
    text = resources.files("grammar").joinpath("bad.toml").read_text("utf-8")
    hints = Mistakes({}, [], {})
    for entry in tomllib.loads(text)["mistake"]:
        for words in entry.get("words", ()):
            hints.phrases.append((words.split(), entry["hint"]))
        hints.starts.update(dict.fromkeys(entry.get("starts", ()), entry["hint"]))
        for example in entry.get("examples", ()):
            hints.places[stop_of(example, entry.get("context", 1))] = entry["hint"]
    return hints


def stop_of(example: str, context: int) -> ParserStop:
    """Return where reading the broken text stops.

    Raises: ValueError if the text is not broken.
    """
    words = grammar().lexer.words(example)
    try:
        Machine(words, WordContext()).run()
    except Unexpected as error:
        key = _key(words, error.at)
        is_any = len(key) == 1 and _is_free(words, error.at)
        return error.machine.states(context), _ANY_NAME if is_any else key
    raise ValueError(f"no mistake in {example}")


def _key(words: Sequence[Word], at: int) -> str:
    return words[at].key if at < len(words) else "<EOF>"


def _is_free(words: Sequence[Word], at: int) -> bool:
    """Return whether the word is a name that means nothing to the grammar."""
    return at < len(words) and words[at].kind == "NAME" and words[at].key not in RESERVED


def _spells(words: Sequence[Word], at: int, phrase: list[str]) -> bool:
    """Return whether the word belongs to the phrase."""
    for start in range(at - len(phrase) + 1, at + 1):
        if start >= 0 and [word.key for word in words[start : start + len(phrase)]] == phrase:
            return True
    return False
