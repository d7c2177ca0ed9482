"""Cuts documents and docstrings into sentences, and counts their words.

Code counts as one word, a link as its text. Blocks of code and headings hold no sentences. Each
item of a list, each cell of a table and each paragraph ends a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 25

_CODE = re.compile(r"(`+)[^`]+\1")
# values to choose from, in a table
_CHOICES = re.compile(r"\bx(?: or x)+\b")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_COMMENT = re.compile(r"<!--.*?-->|\{[:.#][^}]*\}", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.|:|``[^`]+``\s)\s+(.*)")
_RULE = re.compile(r"[\s|:-]+")
# an ellipsis of two dots, as in CREATE .. AS SELECT, ends nothing; e.g. neither
_END = re.compile(r"(?<![.\s])(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][)\"'*_]*(?=\s|$)")
_VERB = re.compile(
    r"\b(?:am|are|be|been|can|could|did|do|had|has|have|is|may|might|must|shall|should|was|were|will|"
    r"would|cannot|began|came|chose|gave|held|kept|knew|lay|left|lost|meant|put|read|sent|set|spent|"
    r"stood|took|went|wrote|ask|add|apply|build|change|check|choose|come|copy|create|count|declare|drop|"
    r"follow|get|give|go|keep|leave|let|lie|look|lose|mean|mount|name|need|open|pass|prefer|raise|remain|"
    r"remove|restart|restore|run|see|send|shape|show|start|stay|stop|take|try|use|stand|wait|write|"
    r"know|lead|recognise|reach|begin|differ|load|\w+(?:ed|es|s))\b",
    re.IGNORECASE,
)
# words that begin a clause with a verb of its own
_CLAUSE = re.compile(
    r"\b(?:that(?! of\b)|which|who|whose|whom|where|what|when|whether|how|if|while|until|since|"
    r"because|(?<!such )(?<!same )(?<!far )(?<!long )as(?! (?:far as|long as|an?|the)\b))\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"(?:It|They|This|These|There|Each|We|You|Nobody|Nothing|Both|All)\b")
_QUESTION = re.compile(r"(?:Which|Whether|Why|How)\b")
# after these a word such as "stores" or "names" is a noun
_BEFORE_NOUN = re.compile(
    r"\b(?:the|an?|of|and|or|its|their|some|for|to|in|every|no|on|one|by|from|several|two|"
    r"this|into|at|than|own|\w+'s?)$",
    re.IGNORECASE,
)
_NO_VERB = re.compile(
    r"as|its|this|always|less|across|perhaps|besides|others|ones|times", re.IGNORECASE
)
# parts of a docstring of which each line is an entry
_SECTION = re.compile(r"^\s*(?:Args|Raises|Source|Returns|Yields|Attributes|Example)s?:.*$")


@dataclass(frozen=True)
class Sentence:
    """A sentence with the line on which it begins."""

    line: int
    text: str
    paragraph: bool = True

    @property
    def words(self) -> int:
        """The number of words; marks alone are none."""
        return len([word for word in self.text.split() if re.search(r"\w", word)])


@dataclass(frozen=True)
class _Block:
    """Lines that belong together; a paragraph unless they are an item or a cell."""

    line: int
    text: str
    paragraph: bool = True


def has_verb(sentence: Sentence) -> bool:
    """Return whether some word may be a verb; nouns in plural pass, too."""
    return bool(_VERB.search(sentence.text))


def is_noun_phrase(text: str) -> bool:
    """Return whether each verb of a text belongs to a clause that follows a noun.

    Words that may be verbs or nouns count by the word before them.
    """
    text = _CODE.sub("x", text).partition(":")[0]
    if _SUBJECT.match(text) or _QUESTION.match(text):
        return bool(_QUESTION.match(text))
    clauses = len(_CLAUSE.findall(text))
    verbs = 0
    for match in _VERB.finditer(text):
        before, after = text[: match.start()].rstrip(" ,"), text[match.end() :]
        noun = not before or _BEFORE_NOUN.search(before) or after.startswith("'")
        verbs += not noun and not _NO_VERB.fullmatch(match.group())
    opening = re.match(r"(?:If|While|When|Until|Since|As|What)\b", text)
    return verbs <= clauses - bool(opening)


def of_markdown(source: str) -> Iterator[Sentence]:
    """Yield the sentences of a page."""
    source = _COMMENT.sub(_lines_only, source)
    for block in _blocks(_unfenced(source.splitlines())):
        yield from _cut(block)


def of_docstring(text: str, line: int) -> Iterator[Sentence]:
    """Yield the sentences of a docstring that begins on a line."""
    for block in _blocks(_without_examples(text.splitlines())):
        for sentence in _cut(block):
            yield Sentence(sentence.line + line - 1, sentence.text, sentence.paragraph)


def _lines_only(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _unfenced(lines: list[str]) -> list[str]:
    """Blank the blocks of code, fenced or indented; what an item or a note indents is text."""
    kept: list[str] = []
    fenced = code = owned = False
    for line in lines:
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced = fenced != fence
        if line.strip() and not line.startswith("    "):
            owned = bool(_ITEM.fullmatch(line)) or line.startswith(("!!!", "???"))
        begins = not kept or not kept[-1].strip()
        code = line.startswith("    ") and not owned and (code or begins)
        kept.append("" if fenced or fence or code else line)
    return kept


def _without_examples(lines: list[str]) -> list[str]:
    """Blank the heads of sections, and the code after a line that ends in ``::``."""
    kept, code = [], False
    for line in lines:
        code = code and (not line.strip() or line.startswith("        "))
        kept.append("" if code or _SECTION.match(line) else line)
        code = code or line.endswith("::")
    return kept


def _blocks(lines: list[str]) -> Iterator[_Block]:
    begun: list[str] = []
    first, paragraph = 1, True
    for number, line in enumerate([*lines, ""], 1):
        item = _ITEM.fullmatch(line)
        alone = line.lstrip().startswith(("#", "|", "!!!", "???"))
        if (not line.strip() or item or alone) and begun:
            yield _Block(first, "\n".join(begun), paragraph)
            begun = []
        if line.lstrip().startswith("|") and not _RULE.fullmatch(line):
            yield from (_Block(number, cell, paragraph=False) for cell in _cells(line))
        elif line.strip() and not alone:
            first, paragraph = (first, paragraph) if begun else (number, item is None)
            begun.append(item[1] if item else line)


def _cells(line: str) -> list[str]:
    return _CODE.sub("x", line).replace(r"\|", "/").strip().strip("|").split("|")


def _cut(block: _Block) -> Iterator[Sentence]:
    text = _LINK.sub(r"\1", _CODE.sub(lambda m: "x" + _lines_only(m), block.text))
    text = _CHOICES.sub("x", text)
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        sentence = text[start:end]
        if sentence.strip():
            begins = text.count("\n", 0, start + len(sentence) - len(sentence.lstrip()))
            text_only = " ".join(sentence.split())
            yield Sentence(block.line + begins, text_only, block.paragraph)
        start = end
