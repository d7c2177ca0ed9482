"""The place of the cursor: the words of the statement before it, and the sources it reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from server.cli.names import Names, Source
from server.cli.words import KEYWORDS

_TOKEN = re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|[\w@]+|->|[^\s\w]")
_NAME = re.compile(r"[\w@`\"]")


@dataclass(frozen=True, slots=True)
class Place:
    """The statement's tokens before the cursor, and all of them."""

    before: tuple[str, ...]
    whole: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The token just before the cursor's word."""
        return self.before[-1] if self.before else ""

    @property
    def after_a_name(self) -> bool:
        """Whether the last token is a name or a number."""
        return bool(_NAME.match(self.last))

    def inside(self) -> tuple[str, ...]:
        """Return the tokens up to the innermost bracket that is still open; empty if none is."""
        depth = 0
        for index in range(len(self.before) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(self.before[index], 0)
            if depth < 0:
                return self.before[:index]
        return ()


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the tokens of a text; words that are not quoted in capitals."""
    tokens = _TOKEN.findall(text)
    return tuple(token if token[0] in "`\"'" else token.upper() for token in tokens)


def sources_of(tokens: Sequence[str], names: Names) -> list[tuple[Source, str]]:
    """Return the sources that a statement reads, each with its alias or name."""
    by_name = {source.name: source for source in names.sources}
    sources = []
    for index, token in enumerate(tokens[:-1]):
        source = by_name.get(tokens[index + 1]) if token in ("FROM", "JOIN") else None
        if source is not None:
            following = [t for t in tokens[index + 2 : index + 4] if t != "AS"]
            sources.append((source, _alias(following) or source.name))
    return sources


def _alias(following: Sequence[str]) -> str:
    is_alias = following and _NAME.match(following[0]) and following[0] not in KEYWORDS
    return following[0] if is_alias else ""
