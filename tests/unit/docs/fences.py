"""The examples of a page: fenced blocks, sessions of the terminal, and hidden set-ups.

A block is known by the first word after its fence: ``sql`` is run, ``ksql`` is a session whose
answers are compared, ``http`` with ``json`` behind it a request and its answer, ``python`` a file
of user functions. A comment before the block changes that: ``<!-- parsed -->`` checks the grammar
only. ``<!-- setup .. -->`` holds statements that readers need not see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
_PARTS = re.compile(
    r"^(?:<!-- setup\n(?P<setup>.*?)\n-->|"
    r"(?P<parsed><!-- parsed -->\n)?"
    r"(?P<fence>```+)(?P<kind>[a-z]*)[^\n]*\n(?P<text>.*?)^(?P=fence)$)",
    re.MULTILINE | re.DOTALL,
)
PROMPT = "ksql> "


@dataclass(frozen=True)
class Block:
    """One example and the line on which it begins."""

    kind: str
    text: str
    line: int
    at: int


def blocks(page: str) -> list[Block]:
    """The examples of a page, in order."""
    fences = []
    for part in _PARTS.finditer(page):
        line = page.count("\n", 0, part.start()) + 1
        if part["setup"] is not None:
            fences.append(Block("setup", part["setup"], line, part.start("setup")))
        else:
            kind = "parsed" if part["parsed"] else part["kind"]
            fences.append(Block(kind, part["text"], line, part.start("text")))
    return fences


def replaced(page: str, shown: list[tuple[Block, str]]) -> str:
    """The page with other texts in its examples, where they differ in more than their layout."""
    for block, text in reversed(shown):
        if plain(text) != plain(block.text):
            page = page[: block.at] + text + page[block.at + len(block.text) :]
    return page


def exchanges(session: str) -> list[tuple[str, str]]:
    """What is typed in a session and what is answered."""
    pairs: list[tuple[list[str], list[str]]] = []
    for line in session.splitlines():
        if line.startswith(PROMPT):
            pairs.append(([line.removeprefix(PROMPT)], []))
        elif line.startswith(">") and not pairs[-1][1]:
            pairs[-1][0].append(line.removeprefix(">"))
        else:
            pairs[-1][1].append(line)
    return [("\n".join(typed), "\n".join(answer)) for typed, answer in pairs]


def session_text(pairs: list[tuple[str, str]]) -> str:
    """The opposite of ``exchanges``."""
    lines = []
    for typed, answer in pairs:
        first, *rest = typed.split("\n")
        lines += [PROMPT + first, *(f">{line}" for line in rest), *answer.rstrip().splitlines()]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def plain(text: str) -> str:
    """A text without its widths, its line breaks, and the numbers of a switch."""
    text = re.sub(r"gap [0-9.]+ m?s", "gap", re.sub(r"after batch \d+", "after batch", text))
    return " ".join(re.sub(r"-{2,}", "--", text).split())
