"""Colours for what is being typed."""

from __future__ import annotations

import re
from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer

from server.cli.words import KEYWORDS

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>'(?:[^']|'')*'?)"
    r"|(?P<name>`(?:[^`]|``)*`?|\"(?:[^\"]|\"\")*\"?)"
    r"|(?P<variable>\$\{[^}\s]*\}?)"
    r"|(?P<number>\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b)"
    r"|(?P<word>[A-Za-z_][\w@]*)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_STYLES = {
    "comment": "ansibrightblack italic",
    "string": "ansigreen",
    "name": "ansiyellow",
    "variable": "ansimagenta",
    "number": "ansicyan",
}


class SqlColours(Lexer):
    """Keywords, texts, numbers and comments, each in its colour."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return rich text per line, for the prompt."""
        fragments: StyleAndTextTuples = [
            (_style(token), token[0]) for token in _TOKEN.finditer(document.text)
        ]
        lines = list(split_lines(fragments))
        return lambda number: lines[number] if number < len(lines) else []


def _style(token: re.Match[str]) -> str:
    if token.lastgroup == "word":
        return "bold ansiblue" if token[0].upper() in KEYWORDS else ""
    return _STYLES.get(token.lastgroup or "", "")
