"""Lark's LALR tables for our grammar, and a parse in progress.

The words are cut and named by `ksql.syntax.lexer`; Lark is driven one token at a time, so that the state
of the parse can tell what the next word may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from lark import Lark, UnexpectedToken
from lark.lexer import Lexer as LarkLexer
from lark.parsers.lalr_analysis import Shift

from ksql.base.ident import RESERVED
from ksql.syntax import build_expr, build_leaves, build_query, build_statement
from ksql.syntax.build import BUILDERS, Part
from ksql.syntax.expr import NOWHERE
from ksql.syntax.lexer import Lexer, Token, is_keyword, opens_lambda

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ksql.syntax.lexer import Context, Word

BUILDER_MODULES = (build_leaves, build_expr, build_query, build_statement)
"""The modules that fill `BUILDERS` when they are imported."""

FILES = ("ksql", "query", "expr", "tokens")
STARTS = ("statement_text", "expression_text", "type_text")


class Unexpected(Exception):  # noqa: N818  an event of the machine, caught by the parser
    """The word at ``at`` (or the end of the text) does not fit; the machine stands before it."""

    def __init__(self, machine: Machine, at: int) -> None:
        super().__init__(at)
        self.machine = machine
        self.at = at


class _NoLexer(LarkLexer):
    """Lark gets its tokens from us; so it need not build a lexer of its own."""

    def __init__(self, conf: Any) -> None:
        """Takes Lark's configuration and leaves it."""

    def lex(self, *_: Any) -> Iterator[Any]:
        """Never called."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tables and the lexer; made once, used by all threads."""

    lark: Lark
    lexer: Lexer


@cache
def grammar() -> Grammar:
    """Builds the tables, at the first text that is parsed."""
    folder = resources.files("grammar")
    text = "\n".join(folder.joinpath(f"{name}.lark").read_text("utf-8") for name in FILES)
    lark = Lark(
        text,
        parser="lalr",
        lexer=_NoLexer,
        start=list(STARTS),
        transformer=BUILDERS,
        keep_all_tokens=True,
        maybe_placeholders=True,
    )
    return Grammar(lark, Lexer(lark.terminals, lark.ignore_tokens))


class Machine:
    """One parse: takes words from left to right and gives the value of the start rule."""

    def __init__(self, start: str, words: Sequence[Word], context: Context) -> None:
        self.lexer = grammar().lexer
        self.words = words
        self._context = context
        self._state = grammar().lark.parse_interactive(start=start).parser_state
        self._table = self._state.parse_conf.states

    def run(self) -> Any:
        """Takes all words.

        Raises: Unexpected at the first that does not fit; ParseError from the builders.
        """
        for at, word in enumerate(self.words):
            token = Token(self._terminal(at), word.text, word.span, self._context)
            self._feed(token, at)
        end = Token("$END", "", NOWHERE, self._context)
        value = self._feed(end, len(self.words))
        return value.value if value.__class__ is Part else value

    @property
    def position(self) -> int:
        """The number of the state that the parse is in."""
        return self._state.position

    def accepted(self) -> set[str]:
        """The terminals that fit here."""
        choices = self._table[self._state.position]
        return {name for name in choices if name.isupper() and self.can_take(name)}

    def can_take(self, *terminals: str) -> bool:
        """Whether the terminals fit here one after another."""
        stack = list(self._state.state_stack)
        return all(self._shift(stack, terminal) for terminal in terminals)

    def readings(self, at: int) -> tuple[str, ...]:
        """The terminals that the word at ``at`` may be, wherever it stands."""
        if at >= len(self.words):
            return ("$END",)
        word = self.words[at]
        if word.kind != "NAME":
            return (self.lexer.signs.get(word.kind, word.kind),)
        keyword = self.lexer.keywords.get(word.key)
        if word.key in RESERVED:
            return (keyword or "RESERVED",)
        return (keyword, "NAME") if keyword else ("NAME",)

    def _feed(self, token: Token, at: int) -> Any:
        try:
            return self._state.feed_token(token, token.type == "$END")  # type: ignore[arg-type]
        except UnexpectedToken:
            raise Unexpected(self, at) from None

    def _shift(self, stack: list[int], terminal: str) -> bool:
        """Does to the stack of states what taking the terminal would do."""
        while True:
            action = self._table[stack[-1]].get(terminal)
            if action is None:
                return False
            kind, target = action
            if kind is Shift:
                stack.append(target)
                return True
            if target.expansion:
                del stack[-len(target.expansion) :]
            stack.append(self._table[stack[-1]][target.origin.name][1])
            if terminal == "$END" and stack[-1] == self._state.parse_conf.end_state:
                return True

    def _terminal(self, at: int) -> str:
        """The terminal that the word is at this place."""
        readings = self.readings(at)
        choices = self._table[self._state.position]
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
