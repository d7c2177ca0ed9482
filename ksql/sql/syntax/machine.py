"""Lark's LALR tables for our grammar, and a parse in progress.

Lark reads the grammar and makes the tables. ``ksql.sql.syntax.lexer`` cuts the words; the state of
the parse decides what a word is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lark import Lark
from lark.lexer import Lexer as LarkLexer
from lark.lexer import Token as LarkToken
from lark.parsers.lalr_analysis import Shift

from ksql.core import RESERVED
from ksql.sql.syntax import build_expr, build_leaves, build_query, build_statement
from ksql.sql.syntax.build import BUILDERS, Part
from ksql.sql.syntax.lexer import Lexer, Token, Word, WordContext, is_keyword, opens_lambda

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lark.common import LexerConf
    from lark.grammar import Rule
    from lark.parsers.lalr_parser_state import ParseConf

    from ksql.sql.syntax.build import Callback

_BUILDER_MODULES = (build_leaves, build_expr, build_query, build_statement)
"""The modules that fill `BUILDERS` when they are imported."""

FILES = ("ksql", "query", "expr", "tokens")
START = "statement_text"


class Unexpected(Exception):
    """The word at ``at`` (or the end of the text) does not fit; caught by the parser."""

    def __init__(self, machine: Machine, at: int) -> None:
        super().__init__(at)
        self.machine = machine
        self.at = at


class _NoLexer(LarkLexer):
    """Lark gets its tokens from us; so it need not build a lexer of its own."""

    def __init__(self, conf: LexerConf) -> None:
        """Take Lark's configuration and leave it."""

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[LarkToken]:
        """Yield nothing: it is never called."""
        return iter(())


class Reduction(NamedTuple):
    """The end of a rule: its parts are taken from the stack and replaced by its value."""

    size: int
    origin: str
    build: Callback | None
    """None if the rule has one part and hands it on."""


Actions = dict[int, "dict[str, int | Reduction]"]
"""For each state and terminal the state to go to, or the rule that ends."""
Gotos = dict[int, dict[str, int]]
"""For each state and rule the state to go to when the rule has ended."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tables and the lexer; made once, used by all threads."""

    actions: Actions
    gotos: Gotos
    first: int
    last: int
    lexer: Lexer


@cache
def grammar() -> Grammar:
    """Build the tables, at the first text that is parsed."""
    folder = resources.files("grammar")
    text = "\n".join(folder.joinpath(f"{name}.lark").read_text("utf-8") for name in FILES)
    lark = Lark(
        text,
        parser="lalr",
        lexer=_NoLexer,
        start=START,
        transformer=BUILDERS,
        keep_all_tokens=True,
        maybe_placeholders=True,
    )
    conf = lark.parse_interactive().parser_state.parse_conf
    reductions = {rule: _reduction(rule, build) for rule, build in _callbacks(conf)}
    actions: Actions = {}
    gotos: Gotos = {}
    for state, row in conf.states.items():
        actions[state], gotos[state] = {}, {}
        for name, (kind, target) in row.items():
            if not name.isupper():
                gotos[state][intern(str(name))] = target
            else:
                actions[state][intern(str(name))] = target if kind is Shift else reductions[target]
    lexer = Lexer(lark.terminals, lark.ignore_tokens)
    return Grammar(actions, gotos, conf.start_state, conf.end_state, lexer)


def _callbacks(conf: ParseConf[int]) -> Iterable[tuple[Rule, Callback]]:
    """Return the builders by rule; Lark's annotation says that the keys are texts."""
    return cast("Iterable[tuple[Rule, Callback]]", conf.callbacks.items())


def _reduction(rule: Rule, build: Callback) -> Reduction:
    size = len(rule.expansion)
    hands_on = size == 1 and rule.options.expand1 and not rule.alias
    return Reduction(size, intern(str(rule.origin.name)), None if hands_on else build)


class Machine:
    """One parse: takes words from left to right and gives the tree of a statement.

    This is the usual loop of an LR parser over Lark's tables. It is written out here because it has
    to list, word by word, the words that may follow.
    """

    def __init__(self, words: Sequence[Word], context: WordContext) -> None:
        self.lexer = grammar().lexer
        self.words = words
        self._context = context
        self._actions = grammar().actions
        self._gotos = grammar().gotos
        self._last = grammar().last
        self._states = [grammar().first]
        self._values: list[Any] = []

    def reach(self, words: Sequence[Word]) -> int:
        """Return the place at which a parse of other words from the same start stops.

        Raises: ParseError from the builders.
        """
        try:
            Machine(words, self._context).run()
        except Unexpected as error:
            return error.at
        return len(words) + 1

    def run(self) -> object:
        """Take all words.

        Raises: Unexpected at the first that does not fit; ParseError from the builders.
        """
        for at, word in enumerate(self.words):
            terminal = self._terminal(at)
            self._take(terminal, Token(terminal, word.text, word.span, self._context), at)
        self._take("$END", None, len(self.words))
        value = self._values[0]
        return value.value if value.__class__ is Part else value

    def states(self, count: int) -> tuple[int, ...]:
        """Return the innermost states that the parse is in, the current one last."""
        return tuple(self._states[-count:])

    def accepted(self) -> set[str]:
        """Return the terminals that fit here."""
        return {name for name in self._actions[self._states[-1]] if self.can_take(name)}

    def can_take(self, *terminals: str) -> bool:
        """Return whether the terminals fit here one after another."""
        states = list(self._states)
        return all(self._shift(states, terminal) for terminal in terminals)

    def readings(self, at: int) -> tuple[str, ...]:
        """Return the terminals that the word at ``at`` may be in any place."""
        if at >= len(self.words):
            return ("$END",)
        word = self.words[at]
        if word.kind != "NAME":
            return (self.lexer.signs.get(word.kind, word.kind),)
        keyword = self.lexer.keywords.get(word.key)
        if word.key in RESERVED:
            return (keyword or "RESERVED",)
        return (keyword, "NAME") if keyword else ("NAME",)

    def _take(self, terminal: str, token: Token | None, at: int) -> None:
        """End the rules that the terminal ends, then put the token on the stack."""
        actions, states, values = self._actions, self._states, self._values
        while True:
            action = actions[states[-1]].get(terminal)
            if action.__class__ is int:
                states.append(action)
                values.append(token)
                return
            if not isinstance(action, Reduction):
                raise Unexpected(self, at)
            size, origin, build = action
            if build is None:
                states.pop()
            elif size:
                parts = values[-size:]
                del states[-size:], values[-size:]
                values.append(build(parts))
            else:
                values.append(build([]))
            states.append(self._gotos[states[-1]][origin])
            if states[-1] == self._last:
                return

    def _shift(self, states: list[int], terminal: str) -> bool:
        """Do to a stack of states what taking the terminal would do."""
        while True:
            action = self._actions[states[-1]].get(terminal)
            if action is None:
                return False
            if not isinstance(action, Reduction):
                states.append(action)
                return True
            if action.size:
                del states[-action.size :]
            states.append(self._gotos[states[-1]][action.origin])
            if states[-1] == self._last:
                return True

    def _terminal(self, at: int) -> str:
        """Return the terminal that the word is at this place."""
        readings = self.readings(at)
        choices = self._actions[self._states[-1]]
        if self.words[at].kind == "(" and "LAMBDA_OPEN" in choices:
            return "LAMBDA_OPEN" if opens_lambda(self.words, at) else readings[0]
        if len(readings) == 1:
            return readings[0]
        keyword, name = readings
        if keyword not in choices or not self.can_take(keyword):
            return name
        if name not in choices or not self.can_take(name):
            return keyword
        decided = is_keyword(self.words, at)
        if decided is None:
            decided = any(self.can_take(keyword, after) for after in self.readings(at + 1))
        return keyword if decided else name
