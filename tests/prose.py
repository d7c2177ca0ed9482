"""Finds what slows a reader down in docstrings, comments, messages and documents.

``python -m tests.prose [FILE..]`` prints file, line, phrase and a suggestion, and exits with 1 if
there is any; called by ``make lint``. It looks for the phrases below, for sentences of more than 25
words in docstrings and documents, for sentences of documents without a verb, for hints that do
not begin with what to do, and for a later paragraph of a module's docstring that is a noun phrase.
Text between backquotes and in blocks of code is spared.

What is left stands in ``prose_left.toml`` with its number for each file. The numbers may only
shrink: ``python -m tests.prose --shrink`` writes the smaller ones.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from tests import sentences
from tests.sentences import LONGEST, Sentence, has_verb, is_noun_phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PLACES = ("ksql", "server", "qtt", "migrations", "docs", "tests", "README.md", "CONTRIBUTING.md")
LEFT = ROOT / "tests" / "prose_left.toml"
# they name the phrases to avoid
SPARED = ("tests/prose.py", "tests/unit/test_prose.py", "tests/unit/test_sentences.py")
# the bold words that begin a paragraph
_LEAD = re.compile(r"\*\*[^*]+\*\*( \(.*\))?\.")
# descriptions of functions are noun phrases
NOUNS = ("docs/functions.md",)
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
# the docstring of a module names the thing, or says what it does
_NO_THING = _phrase(
    "Where|Whether|Up to|Of which|Before|After|How|When|With|From|If|On|In|At",
    "a noun (The columns ..) or what it does (Writes ..)",
    opening=True,
)
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
    Phrase(re.compile(r"(?<!\.)\b[Aa]new\b"), "again, newly; restart, recreate, rebuild"),
    _phrase("in charge", "the leader; runs, serves"),
    _phrase("shuts? out", "fence, refuse"),
    _phrase("[Aa]s a rule", "usually"),
    _phrase("no less", "also, just as much"),
    _phrase("(takes?|taking|took) part", "join, belong to"),
    _phrase("(is|are|was|were) to (?!the|an?|its?|be|that|this|each)[a-z]+", "must, should, will"),
    _phrase("luggage", "bundle, settings"),
    _phrase("st(?:and|ands|ood|anding)(?! (?:for|in for|alone))", "is, lies, follows"),
    Phrase(
        re.compile(r"(?<=[.:;]\s)(?:Who|What|Whoever|One that|Others)\b(?![^.]*\?)"),
        "name the thing",
    ),
    Phrase(re.compile(r"\b(?:lets?|of|by|to|for|from)\s+others\b"), "name them: other servers"),
    _phrase("[Cc]op(?:y|ies) of (?:tables?|views?|partitions?|stores?)", "replica"),
    Phrase(
        re.compile(
            r"(?<!left )(?<!leave )(?<!leaves )(?<!is )(?<!are )(?<!was )(?<!were )(?<!far )"
            r"(?<!records )(?<!offsets )(?<!lag )\bbehind\s+(?:its?|them|that|this|each|every|"
            r"which|their|the\s+(?:end|rows|answer|batch|commit|command|one))\b"
        ),
        "after",
    ),
)


@dataclass(frozen=True)
class Passage:
    """A piece of prose and the line on which it begins."""

    line: int
    text: str
    docstring: bool = False
    verb_first: bool = False
    module: bool = False


@dataclass(frozen=True)
class Finding:
    """A phrase or sentence, with what would be better."""

    line: int
    phrase: str
    instead: str


def findings(name: str, source: str) -> list[Finding]:
    """List what should be better in a Python or Markdown file, by line."""
    if name.endswith(".md"):
        passages = [*_markdown(source)]
        others = [*_sentences(sentences.of_markdown(source), verbs=name not in NOUNS)]
    else:
        passages = [*_python(source, verb_first=name.startswith(VERB_FIRST))]
        others = [
            *_sentences(_documented_sentences(passages)),
            *_hints(source),
            *_orphans(passages),
        ]
    phrases = [finding for passage in passages for finding in _check(passage)]
    return sorted([*phrases, *others], key=lambda finding: finding.line)


def _documented_sentences(passages: list[Passage]) -> Iterator[Sentence]:
    for passage in passages:
        if passage.docstring:
            yield from sentences.of_docstring(passage.text, passage.line)


def _orphans(passages: list[Passage]) -> Iterator[Finding]:
    """Find later paragraphs of a module's docstring that are a second summary: a noun phrase."""
    for passage in passages:
        if passage.module:
            line = passage.line
            for number, paragraph in enumerate(passage.text.split("\n\n")):
                if number and paragraph[:1].isalpha() and not paragraph.startswith("Source"):
                    yield from _orphan(paragraph, line)
                line += paragraph.count("\n") + 2


def _orphan(paragraph: str, line: int) -> Iterator[Finding]:
    parts = list(sentences.of_docstring(paragraph, line))
    if len(parts) == 1 and parts[0].text.endswith(".") and is_noun_phrase(parts[0].text):
        better = "a sentence with a subject and a verb, or a part of the first line"
        yield Finding(line, " ".join(paragraph.split()), better)


def _sentences(parts: Iterator[Sentence], *, verbs: bool = False) -> Iterator[Finding]:
    for sentence in parts:
        begin = " ".join(sentence.text.split()[:6])
        if sentence.words > LONGEST:
            yield Finding(sentence.line, f"{begin} ..", f"{sentence.words} words: cut it in two")
        full = sentence.text.endswith(".") and not _LEAD.fullmatch(sentence.text)
        if verbs and full and sentence.paragraph and not has_verb(sentence):
            yield Finding(sentence.line, sentence.text, "a sentence with a verb")


def _hints(source: str) -> Iterator[Finding]:
    """Look at the first words of hints: they say what to do."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.keyword) or node.arg != "hint":
            continue
        for part in ast.walk(node.value):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                opening = _NO_VERB.pattern.match(part.value)
                if opening and opening.group() not in {"If", "When"}:
                    yield Finding(part.lineno, opening.group(), "a hint begins with what to do")
                break


def _check(passage: Passage) -> Iterator[Finding]:
    text = _without_code(passage.text)
    verbs = (_NO_VERB, _NO_WORD) if passage.verb_first else ()
    openings = (*verbs, _NO_THING) if passage.module else verbs
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
        module = isinstance(node, ast.Module)
        yield Passage(node.body[0].lineno, text, True, verb_first, module)


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


def _left() -> dict[str, int]:
    return tomllib.loads(LEFT.read_text("utf-8")) if LEFT.exists() else {}


def _compared(counts: dict[str, list[Finding]], left: dict[str, int]) -> Iterator[str]:
    """Yield a line for what is new, and for what is listed and gone."""
    for name, phrases in counts.items():
        if len(phrases) > left.get(name, 0):
            yield from (f'{name}:{at.line}: "{at.phrase}": better: {at.instead}' for at in phrases)
    for name, number in left.items():
        if name not in counts or len(counts[name]) < number:
            yield f"{name}: less is left than listed: run python -m tests.prose --shrink"


def _shrunk(counts: dict[str, list[Finding]], left: dict[str, int]) -> str:
    kept = {name: min(number, len(counts.get(name, ()))) for name, number in left.items()}
    lines = [f'"{name}" = {number}\n' for name, number in sorted(kept.items()) if number]
    return "".join(["# findings of tests/prose.py that are left in each file\n", *lines])


def main(arguments: list[str]) -> int:
    """Print the findings; return 1 if there are more or less of them in a file than listed."""
    names = [name for name in arguments if name != "--shrink"]
    counts = {}
    for file in [Path(name).resolve() for name in names] or list(_files(PLACES)):
        name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
        if name not in SPARED:
            counts[name] = findings(name, file.read_text(encoding="utf-8"))
    left = _left()
    if "--shrink" in arguments:
        LEFT.write_text(_shrunk(counts, left), "utf-8")
        left = _left()
    wrong = list(_compared(counts, {} if names else left))
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
