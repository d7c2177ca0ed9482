"""Finds phrases that slow a reader down in docstrings, comments, messages and documents.

``python -m tests.prose [FILE..]`` prints file, line, phrase and a suggestion, and exits with 1 if
there is any; called by ``make lint``. Text between backquotes and in blocks of code is spared.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PLACES = ("ksql", "server", "qtt", "migrations", "docs", "README.md", "CONTRIBUTING.md")
# where the text has not been gone over yet; a place that has become clean is taken from the list
NOT_YET: tuple[str, ...] = ()
# messages whose words the documents and test files pin
PINNED: tuple[str, ...] = (
    "plan goes on unchanged",
    "query goes on unchanged",
    "SHOW TOPICS; tells",
)


@dataclass(frozen=True)
class Phrase:
    """A phrase to avoid; ``opening`` phrases count only where a docstring begins."""

    pattern: re.Pattern[str]
    instead: str
    opening: bool = False


def _phrase(pattern: str, instead: str, *, opening: bool = False) -> Phrase:
    spaced = pattern.replace(" ", r"\s+")
    return Phrase(re.compile(rf"\b(?:{spaced})\b"), instead, opening)


# where the docstring of a function, unless it is a property, begins with a verb
VERB_FIRST = ("ksql/", "server/")
# first words of sentences and of names of things, and what is no word: lower case, capitals, marks
_NO_VERB = _phrase(
    "A|An|The|This|That|These|Those|It|Its|Our|We|One|Two|All|Both|Each|Every|Some|Many|Another|"
    "No|Nobody|Nothing|Something|Everything|Never|Once|Only|There|As|If|When|Where|Whether|Which|"
    "Why|How|True|False",
    "a verb (Return .., Write ..)",
    opening=True,
)
_NO_WORD = Phrase(re.compile(r"[^A-Z\s]\S*|[A-Z]{2}\S*"), _NO_VERB.instead, opening=True)

PHRASES = (
    _phrase("What|Who|Whom|Whoever", "a verb (Return ..) or a noun (The columns ..)", opening=True),
    _phrase("[Tt]old|[Tt]ell(?:s|ing)?(?!( \\w+)? apart)", "log, report, show, list"),
    _phrase("(is|are|was|were|be|been|not) said|says? so|said so", "is stated, logged, shown"),
    _phrase("[Tt]hat which|[Tt]hose who", "name the thing: the record, the callers"),
    _phrase("[Bb]y whom|[Ww]hom ever|[Ww]ho ever|[Ww]hoever|[Ww]homever", "name the caller"),
    _phrase("(is|are) none more", "does not count as one"),
    _phrase("in vain", "pointless, without effect"),
    _phrase("towards Kafka", "in Kafka"),
    _phrase("([Gg]o|[Gg]oes|[Gg]oing|[Ww]ent) on(?! (?:to|top|disk))", "continue"),
    _phrase("[Bb]eside", "alongside, next to, besides"),
    _phrase("he|his|him", "name the user, the client, the process"),
    _phrase("[Tt]hereof|[Tt]herein", "of it, in it"),
)


@dataclass(frozen=True)
class Passage:
    """A piece of prose and the line on which it begins."""

    line: int
    text: str
    docstring: bool = False
    verb_first: bool = False


@dataclass(frozen=True)
class Finding:
    """A phrase found in a file."""

    line: int
    phrase: str
    instead: str


def findings(name: str, source: str) -> list[Finding]:
    """List the phrases to avoid in a Python or Markdown file, by line."""
    verb_first = name.startswith(VERB_FIRST)
    passages = _markdown(source) if name.endswith(".md") else _python(source, verb_first=verb_first)
    return sorted(
        (finding for passage in passages for finding in _check(passage)),
        key=lambda finding: finding.line,
    )


def _check(passage: Passage) -> Iterator[Finding]:
    text = _without_code(passage.text)
    openings = (_NO_VERB, _NO_WORD) if passage.verb_first else ()
    for phrase in (*PHRASES, *openings):
        if phrase.opening:
            opening = phrase.pattern.match(passage.text.lstrip())
            matches = [opening] if opening and passage.docstring else []
        else:
            matches = list(phrase.pattern.finditer(text))
        for match in matches:
            line = passage.line + (0 if phrase.opening else text.count("\n", 0, match.start()))
            yield Finding(line, " ".join(match.group().split()), phrase.instead)


def _without_code(text: str) -> str:
    """Blank what stands between backquotes, and quoted words; lines stay where they are."""
    quoted = r'(`+)[^`]+\1|"[^"\n]*"'
    return re.sub(quoted, lambda match: "x" + "\n" * match.group().count("\n"), text)


def _python(source: str, *, verb_first: bool) -> Iterator[Passage]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        yield from _docstring(node, verb_first=verb_first and _does(node))
    yield from _texts(tree)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(token.start[0], token.string)


def _documented(node: Any) -> TypeGuard[ast.Module | ast.ClassDef | ast.FunctionDef]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def _docstring(node: ast.AST, *, verb_first: bool) -> Iterator[Passage]:
    if _documented(node):
        text = ast.get_docstring(node, clean=False) or ""
        yield Passage(node.body[0].lineno, text, docstring=True, verb_first=verb_first)


def _does(node: ast.AST) -> bool:
    """Return whether it is a function or method that does something, not a property."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    names = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
    return not names & {"property", "cached_property", "setter"}


def _texts(tree: ast.AST) -> Iterator[Passage]:
    """The texts of several words that are no docstrings: messages, help, notes on constants."""
    documents = {
        id(constant)
        for node in ast.walk(tree)
        if _documented(node)
        for constant in ast.walk(node.body[0])
    }
    for part in ast.walk(tree):
        if not isinstance(part, ast.Constant) or not isinstance(part.value, str):
            continue
        pinned = any(each in part.value for each in PINNED)
        if " " in part.value and not pinned and id(part) not in documents:
            yield Passage(part.lineno, part.value)


def _markdown(source: str) -> Iterator[Passage]:
    """The paragraphs outside blocks of code."""
    lines, fenced = [], False
    for line in source.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced = fenced != fence
        lines.append("" if fenced or fence else line)
    yield Passage(1, "\n".join(lines))


def _files(places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        paths = path.rglob("*") if path.is_dir() else [path]
        yield from sorted(file for file in paths if file.suffix in {".py", ".md"})


def _place_of(name: str) -> str:
    """The entry of ``NOT_YET`` that covers a file; empty if none does."""
    return next((place for place in NOT_YET if name == place or name.startswith(f"{place}/")), "")


def main(names: list[str]) -> int:
    """Print the findings; return 1 if there are any, or if a place in ``NOT_YET`` has none left."""
    wrong, open_places = [], set()
    for file in [Path(name).resolve() for name in names] or list(_files(PLACES)):
        name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
        findings_ = findings(name, file.read_text(encoding="utf-8"))
        place = _place_of(name)
        if findings_ and place:
            open_places.add(place)
        elif not place:
            wrong += [f'{name}:{at.line}: "{at.phrase}": better: {at.instead}' for at in findings_]
    if not names:
        stale = sorted(set(NOT_YET) - open_places)
        wrong += [f"{place}: clean by now: take it from NOT_YET" for place in stale]
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
