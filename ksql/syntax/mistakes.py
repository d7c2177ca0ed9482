"""Common mistakes, known by where reading stops.

This is Lark's idea of errors by example (``match_examples``), on our machine.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from ksql.base.ident import RESERVED
from ksql.syntax.lexer import WordContext
from ksql.syntax.machine import Machine, Unexpected, grammar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.syntax.lexer import Word

_MAX_CONTEXT = 3
_ANY_NAME = "(any name)"

Place = tuple[tuple[int, ...], str]
"""The states that the parse is in, innermost last, and the word at which it stopped."""


class Mistakes(NamedTuple):
    """The table of mistakes."""

    places: dict[Place, str]
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
            hints.places[place(example, entry.get("context", 1))] = entry["hint"]
    return hints


def place(example: str, context: int) -> Place:
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
