"""Translates a Java regular expression into one of the engines' dialects."""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from ksql.core import excerpt
from ksql.java.regex import dialect as charset
from ksql.java.values import EvaluationError

if TYPE_CHECKING:
    from ksql.java.regex.dialect import Dialect, Ranges

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_LONGEST_PATTERN = 20_000
_FEW_STEPS = 1_000_000
_MOST_PIECES = 20_000  # the engines write repetitions out
_MOST_OPTIONAL = 5_000  # pieces that may be absent: RE2 writes a{1,9} one in another
_MOST_RANGES = 20_000  # of all large sets together: the engines write those out, too
_SMALL_SET = 10
_LOOKS = ("?=", "?!", "?<=", "?<!")
_GROUP_HEADS = ("?:", *_LOOKS, "?>")
_UNBOUNDED_LOOK_BEHIND = "Look-behind group does not have an obvious maximum length"
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\?([idmsuxU]*)(?:-([idmsuxU]+))?([:)])")
_HEX = re.compile(r"x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{\^?([\w=]+)\}|(\w))")
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,9})(,?)(\d{0,9})\}")


class BadRegex(EvaluationError):
    """A pattern that Java refuses, or that has no counterpart here."""

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(f"Invalid regular expression pattern: {shown(pattern)}: {why}")


def shown(pattern: str) -> str:
    """Return the pattern in a message."""
    return repr(excerpt(pattern))


def translate(pattern: str, dialect: Dialect) -> Translated:
    """Return the pattern in that dialect; groups keep their numbers.

    Raises: BadRegex; NotLinear if the dialect cannot say it.
    """
    if len(pattern) > _LONGEST_PATTERN:
        raise BadRegex(pattern, f"longer than {_LONGEST_PATTERN} characters")
    try:
        return _Translator(pattern, dialect).whole()
    except RecursionError as error:
        raise BadRegex(pattern, "nested too deeply") from error


class Translated(NamedTuple):
    """A pattern in a dialect, and up to which length of a text backtracking is no matter."""

    source: str
    harmless: int


class _Piece(NamedTuple):
    """Part of a pattern: its text, whether it may match nothing, and how many pieces it is of."""

    code: str
    empty: bool = False
    size: int = 1
    captures: bool = False
    endless: bool = False
    ways: float = 1  # how often choices multiply what backtracking has to try
    loops: int = 0  # how many repetitions without end follow one another
    shy: bool = False  # whether it may rather match nothing, or less, than what it could


_NOTHING = _Piece("", empty=True, size=0)


def _harmless(ways: float, loops: int) -> int:
    """Return how long a text may be for at most a million steps of backtracking."""
    return int((_FEW_STEPS * math.factorial(loops + 1) / ways) ** (1 / (loops + 1)))


class _Translator:
    """One pass over a pattern; ``flags`` are those in force at this place."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.position = 0
        self.flags: frozenset[str] = frozenset()
        self.names: set[str] = set()
        self.ranges = 0
        self.optional = 0

    def whole(self) -> Translated:
        body = self.alternatives()
        if self.position < len(self.pattern):
            raise BadRegex(self.pattern, "Unmatched closing ')'")
        return Translated(body.code, _harmless(body.ways, body.loops))

    @functools.cached_property
    def groups(self) -> int:
        """How many groups the pattern opens."""
        return len(re.findall(r"(?<!\\)\((?!\?)|\(\?<[a-zA-Z]", self.pattern))

    def counted(self, ranges: Ranges) -> Ranges:
        """Return the set, its size added to that of all sets so far if it is not small.

        Raises: BadRegex.
        """
        self.ranges += len(ranges) if len(ranges) > _SMALL_SET else 0
        if self.ranges > _MOST_RANGES:
            raise BadRegex(
                self.pattern, f"its sets of characters have more than {_MOST_RANGES} ranges"
            )
        return ranges

    def peek(self, size: int = 1) -> str:
        return self.pattern[self.position : self.position + size]

    def alternatives(self) -> _Piece:
        """Translate up to the end of the group; flags set inside end with it."""
        outer = self.flags
        branches = []
        while True:
            branches.append(self.branch())
            if self.peek() != "|":
                break
            self.position += 1
        self.flags = outer
        return self.of(branches, "|", any(branch.empty for branch in branches))

    def branch(self) -> _Piece:
        items = []
        while self.position < len(self.pattern) and self.peek() not in "|)":
            items.append(self.item())
        return self.of(items, "", all(item.empty for item in items))

    def of(self, parts: list[_Piece], between: str, empty: bool) -> _Piece:
        size = sum(part.size for part in parts)
        if size > _MOST_PIECES:
            raise BadRegex(self.pattern, f"with its repetitions, more than {_MOST_PIECES} pieces")
        return _Piece(
            between.join(part.code for part in parts),
            empty,
            size,
            any(part.captures for part in parts),
            any(part.endless for part in parts),
            sum(part.ways for part in parts) if between else math.prod(p.ways for p in parts),
            max(part.loops for part in parts) if between else sum(part.loops for part in parts),
            any(part.shy for part in parts)
            or (bool(between) and any(part.empty for part in parts[:-1])),
        )

    def item(self) -> _Piece:
        atom = self.atom()
        if not atom.code:
            return atom
        quantifier = _QUANTIFIER.match(self.pattern, self.position)
        if not quantifier:
            return atom
        self.position = quantifier.end()
        suffix = self.peek() if self.peek() and self.peek() in "?+" else ""
        self.position += len(suffix)
        # of these RE2 reports other groups; Java repeats no more once it has matched nothing
        shy = atom.shy and quantifier[0] != "?"
        if suffix == "+" or (atom.empty and (atom.captures or shy)):
            self.dialect.beyond()
        least = int(quantifier[1] or quantifier[0] == "+")
        most = 1 if quantifier[0] == "?" else int(quantifier[3] or quantifier[1] or 0)
        endless = quantifier[0] in "*+" or bool(quantifier[2] and not quantifier[3])
        self.optional += atom.size * max(most - max(least, 1), 0)
        if self.optional > _MOST_OPTIONAL:
            why = f"more than {_MOST_OPTIONAL} pieces that may be absent"
            raise BadRegex(self.pattern, why)
        simple = atom.ways == 1 and not atom.loops and not atom.empty
        if quantifier[0] == "?":
            ways: float = atom.ways + 1
        else:
            ways = (1 if endless else max(most - least + 1, 1)) if simple else math.inf
        return _Piece(
            f"{atom.code}{quantifier[0]}{suffix}",
            atom.empty or not least,
            atom.size * max(least, most, 1),
            atom.captures,
            atom.endless or endless,
            ways,
            atom.loops + endless,
            atom.shy or suffix == "?",
        )

    def atom(self) -> _Piece:
        character = self.peek()
        self.position += 1
        match character:
            case "\\":
                return self.escape()
            case "[":
                return self.set_of(self.char_class())
            case "(":
                return self.group()
            case ".":
                return self.set_of(self.dot())
            case "^":
                start = self.dialect.line_start() if "m" in self.flags else r"\A"
                return _Piece(start, empty=True)
            case "$":
                lines = "m" in self.flags
                end = self.dialect.line_end() if lines else self.dialect.text_end()
                return _Piece(end, empty=True)
            case "*" | "+" | "?":
                raise BadRegex(self.pattern, f"Dangling meta character '{character}'")
            case "{":
                raise BadRegex(self.pattern, "Illegal repetition")
            case "#" if "x" in self.flags:
                end_of_line = self.pattern.find("\n", self.position)
                self.position = len(self.pattern) if end_of_line < 0 else end_of_line + 1
                return _NOTHING
            case _ if character.isspace() and "x" in self.flags:
                return _NOTHING
            case _:
                return _Piece(self.literal(character))

    def set_of(self, ranges: Ranges) -> _Piece:
        """Return a piece for one character of the set."""
        return _Piece(self.dialect.characters(self.counted(ranges)))

    def literal(self, character: str) -> str:
        if "i" in self.flags and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return re.escape(character)

    def dot(self) -> Ranges:
        if "s" in self.flags:
            return charset.ALL
        ends = charset.of_characters("\n") if "d" in self.flags else charset.LINE_ENDS
        return charset.complement(ends)

    def group(self) -> _Piece:
        rest = self.pattern[self.position :]
        if not rest.startswith("?"):
            return self.enclosed("(")._replace(captures=True)
        if match := _NAME.match(rest):
            return self.named(match)
        for head in _GROUP_HEADS:
            if rest.startswith(head):
                return self.special(head)
        if match := _FLAGS.match(rest):
            self.position += match.end()
            return self.flag_group(match)
        raise BadRegex(self.pattern, "Unknown inline modifier or group")

    def named(self, match: re.Match[str]) -> _Piece:
        if match[1] in self.names:
            raise BadRegex(self.pattern, f"Named capturing group <{match[1]}> is already defined")
        self.names.add(match[1])
        self.position += match.end()
        return self.enclosed(f"(?P<{match[1]}>")._replace(captures=True)

    def special(self, head: str) -> _Piece:
        if head != "?:":
            self.dialect.beyond()
        self.position += len(head)
        body = self.enclosed("(" + head)
        if head in ("?<=", "?<!") and body.endless:
            raise BadRegex(self.pattern, _UNBOUNDED_LOOK_BEHIND)
        return body._replace(empty=True, endless=False) if head in _LOOKS else body

    def flag_group(self, match: re.Match[str]) -> _Piece:
        changed = (self.flags | set(match[1])) - set(match[2] or "")
        if "U" in changed:
            raise BadRegex(self.pattern, "the flag U is not supported yet")
        if match[3] == ")":
            self.flags = changed
            return _NOTHING
        outer, self.flags = self.flags, changed
        body = self.enclosed("(?:")
        self.flags = outer
        return body

    def enclosed(self, opened: str) -> _Piece:
        body = self.alternatives()
        if self.peek() != ")":
            raise BadRegex(self.pattern, "Unclosed group")
        self.position += 1
        return body._replace(code=f"{opened}{body.code})")

    def escape(self) -> _Piece:
        character = self.peek()
        match character:
            case "Q":
                return self.quoted()
            case "k":
                return self.named_reference()
            case "A" | "b" | "B":
                self.position += 1
                return _Piece("\\" + character, empty=True)
            case "z":
                self.position += 1
                return _Piece(self.dialect.end, empty=True)
            case "Z":
                self.position += 1
                return _Piece(self.dialect.text_end(), empty=True)
            case "R":
                self.position += 1
                return _Piece(rf"(?:\r\n|{self.dialect.characters(charset.VERTICAL)})")
            case _ if character.isdigit() and character != "0":
                return self.numbered_reference()
            case _:
                return self.set_of(self.escaped_set())

    def quoted(self) -> _Piece:
        end = self.pattern.find(r"\E", self.position)
        text = self.pattern[self.position + 1 : end if end >= 0 else None]
        self.position = end + 2 if end >= 0 else len(self.pattern)
        code = "".join(map(self.literal, text))
        return _Piece(f"(?:{code})" if len(text) > 1 else code, not text, len(text))

    def named_reference(self) -> _Piece:
        match = re.match(r"k<([a-zA-Z][a-zA-Z0-9]*)>", self.pattern[self.position :])
        if not match:
            raise BadRegex(self.pattern, r"\k is not followed by '<' for named capturing group")
        if match[1] not in self.names:
            raise BadRegex(self.pattern, f"named capturing group <{match[1]}> does not exist")
        self.position += match.end()
        return self.reference(f"(?P={match[1]})")

    def reference(self, code: str) -> _Piece:
        self.dialect.beyond()
        return _Piece(f"({'?i:' if 'i' in self.flags else '?:'}{code})", empty=True)

    def numbered_reference(self) -> _Piece:
        """Translate as many digits as name a group that is there."""
        digits = self.peek()
        while (more := self.pattern[self.position + len(digits) :][:1]).isdigit():
            if int(digits + more) > self.groups:
                break
            digits += more
        self.position += len(digits)
        return self.reference(f"\\{digits}")

    def escaped_set(self) -> Ranges:
        """Read the escape after a backslash, in or outside a class, as a set of characters."""
        return self.cased(self.escaped())

    def cased(self, ranges: Ranges) -> Ranges:
        return charset.either_case(ranges) if "i" in self.flags else ranges

    def escaped(self) -> Ranges:
        rest = self.pattern[self.position :]
        if not rest:
            raise BadRegex(self.pattern, "Unexpected internal error: ends with a backslash")
        character = rest[0]
        if match := _HEX.match(rest):
            self.position += match.end()
            code = int(match[1] or match[2] or match[3], 16)
            return ((code, code),)
        if match := _OCTAL.match(rest):
            self.position += match.end()
            return ((int(match[1], 8),) * 2,)
        if match := _PROPERTY.match(rest):
            return self.property(match)
        self.position += 1
        if character == "c" and len(rest) > 1:
            self.position += 1
            return ((ord(rest[1]) ^ 64,) * 2,)
        if character.lower() in charset.PREDEFINED:
            ranges = charset.PREDEFINED[character.lower()]
            return ranges if character.islower() else charset.complement(ranges)
        if character in _CONTROLS:
            return charset.of_characters(_CONTROLS[character])
        if character.isascii() and character.isalnum():
            raise BadRegex(self.pattern, f"Illegal/unsupported escape sequence \\{character}")
        return charset.of_characters(character)

    def property(self, match: re.Match[str]) -> Ranges:
        self.position += match.end()
        name = match[1] or match[2]
        ranges = charset.of_property(name)
        if ranges is None:
            raise BadRegex(self.pattern, f"the character property {name} is not supported yet")
        return charset.complement(ranges) if match[0][0] == "P" else ranges

    def char_class(self) -> Ranges:
        """Return the set between brackets: unions, nested classes, intersections (&&)."""
        negated = self.peek() == "^"
        self.position += negated
        whole: Ranges | None = None
        parts: list[Ranges] = []
        first = True
        while True:
            if self.position >= len(self.pattern):
                raise BadRegex(self.pattern, "Unclosed character class")
            if self.peek() == "]" and not first:
                self.position += 1
                break
            if self.peek(2) == "&&":
                self.position += 2
                whole = self.within(whole, parts)
                parts = []
            else:
                parts.append(self.counted(self.class_item()))
            first = False
        whole = self.within(whole, parts)
        return charset.complement(whole) if negated else whole

    def within(self, whole: Ranges | None, parts: list[Ranges]) -> Ranges:
        """Return what is in one of the parts and in the whole, where there is one."""
        part = charset.union(*parts)
        return part if whole is None else charset.intersection(self.counted(whole), part)

    def class_item(self) -> Ranges:
        if self.peek() == "[":
            self.position += 1
            return self.char_class()
        if self.peek(2) == r"\Q":
            self.position += 1
            end = self.pattern.find(r"\E", self.position)
            text = self.pattern[self.position + 1 : end if end >= 0 else None]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            return self.cased(charset.of_characters(text))
        low = self.class_character()
        if self.peek() != "-" or self.peek(2) in ("-]", "-[", "-&") or len(self.peek(2)) < 2:
            return self.cased(low)
        self.position += 1
        high = self.class_character()
        if low[0][0] > high[0][0]:
            raise BadRegex(self.pattern, "Illegal character range")
        return self.cased(((low[0][0], high[0][0]),))

    def class_character(self) -> Ranges:
        character = self.peek()
        self.position += 1
        return self.escaped() if character == "\\" else charset.of_characters(character)
