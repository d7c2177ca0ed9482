"""Translates a Java regular expression to one of Python's ``re``."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ksql.functions.errors import EvaluationError
from ksql.functions.javaregex import charset

if TYPE_CHECKING:
    from ksql.functions.javaregex.charset import Ranges

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"
_LINE_START = r"(?:\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?!\n|\Z))"
_LINE_END = r"(?=\r\n|[\r\x85\u2028\u2029]|(?<!\r)\n|\Z)"
_NOT_LINE_END = charset.as_regex(charset.complement(charset.LINE_ENDS))
_GROUP_HEADS = ("?:", "?=", "?!", "?<=", "?<!", "?>")
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS = re.compile(r"\?([idmsuxU]*)(?:-([idmsuxU]+))?([:)])")
_HEX = re.compile(r"x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{\^?([\w=]+)\}|(\w))")
_QUANTIFIER = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")


class BadRegex(EvaluationError):
    """A pattern that Java refuses, or that has no counterpart here."""

    def __init__(self, pattern: str, why: str) -> None:
        super().__init__(f"Invalid regular expression pattern: {pattern!r}: {why}")


@functools.lru_cache(maxsize=512)
def compile_java(pattern: str) -> re.Pattern[str]:
    """The compiled counterpart of a Java pattern; groups keep their numbers.

    Raises: BadRegex.
    Source: java.util.regex.Pattern.
    """
    translated = _Translator(pattern).whole()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadRegex(pattern, str(error)) from error


class _Translator:
    """One pass over a pattern; ``flags`` are those in force at this place."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.flags: frozenset[str] = frozenset()

    def whole(self) -> str:
        body = self.alternatives()
        if self.place < len(self.pattern):
            raise BadRegex(self.pattern, "Unmatched closing ')'")
        return body

    def peek(self, size: int = 1) -> str:
        return self.pattern[self.place : self.place + size]

    def alternatives(self) -> str:
        """Up to the end of the group; flags set inside end with it."""
        outer = self.flags
        branches = []
        while True:
            branches.append(self.branch())
            if self.peek() != "|":
                break
            self.place += 1
        self.flags = outer
        return "|".join(branches)

    def branch(self) -> str:
        """A sequence; case-insensitivity that begins within it is a group around the rest."""
        started = "i" in self.flags and self.place > 0
        pieces = ["(?i:" if started else ""]
        depth = int(started)
        while self.place < len(self.pattern) and self.peek() not in "|)":
            before = "i" in self.flags
            piece = self.item()
            now = "i" in self.flags
            if now != before:
                pieces.append("(?i:" if now else "(?-i:")
                depth += 1
            pieces.append(piece)
        return "".join(pieces) + ")" * depth

    def item(self) -> str:
        atom = self.atom()
        if not atom:
            return ""
        found = _QUANTIFIER.match(self.pattern, self.place)
        if not found:
            return atom
        self.place = found.end()
        suffix = self.peek() if self.peek() and self.peek() in "?+" else ""
        self.place += len(suffix)
        return f"{atom}{found[0]}{suffix}"

    def atom(self) -> str:
        character = self.peek()
        self.place += 1
        match character:
            case "\\":
                return self.escape()
            case "[":
                return charset.as_regex(self.char_class())
            case "(":
                return self.group()
            case ".":
                return r"[\s\S]" if "s" in self.flags else self.not_line_end()
            case "^":
                return _LINE_START if "m" in self.flags else r"\A"
            case "$":
                return _LINE_END if "m" in self.flags else _END
            case "*" | "+" | "?":
                raise BadRegex(self.pattern, f"Dangling meta character '{character}'")
            case "{":
                raise BadRegex(self.pattern, "Illegal repetition")
            case "#" if "x" in self.flags:
                end = self.pattern.find("\n", self.place)
                self.place = len(self.pattern) if end < 0 else end + 1
                return ""
            case _ if character.isspace() and "x" in self.flags:
                return ""
            case _:
                return re.escape(character)

    def not_line_end(self) -> str:
        return r"[^\n]" if "d" in self.flags else _NOT_LINE_END

    def group(self) -> str:
        rest = self.pattern[self.place :]
        if not rest.startswith("?"):
            return self.enclosed("(")
        if found := _NAME.match(rest):
            self.place += found.end()
            return self.enclosed(f"(?P<{found[1]}>")
        for head in _GROUP_HEADS:
            if rest.startswith(head):
                self.place += len(head)
                return self.enclosed("(" + head)
        if found := _FLAGS.match(rest):
            self.place += found.end()
            return self.flag_group(found)
        raise BadRegex(self.pattern, "Unknown inline modifier or group")

    def flag_group(self, found: re.Match[str]) -> str:
        changed = (self.flags | set(found[1])) - set(found[2] or "")
        if "U" in changed:
            raise BadRegex(self.pattern, "the flag U is not supported yet")
        if found[3] == ")":
            self.flags = changed
            return ""
        outer, self.flags = self.flags, changed
        opened = "(?i:" if "i" in changed else "(?-i:"
        body = self.enclosed(opened)
        self.flags = outer
        return body

    def enclosed(self, opened: str) -> str:
        body = self.alternatives()
        if self.peek() != ")":
            raise BadRegex(self.pattern, "Unclosed group")
        self.place += 1
        return f"{opened}{body})"

    def escape(self) -> str:
        character = self.peek()
        match character:
            case "Q":
                return self.quoted()
            case "k":
                return self.named_reference()
            case "A" | "b" | "B":
                self.place += 1
                return "\\" + character
            case "z":
                self.place += 1
                return r"\Z"
            case "Z":
                self.place += 1
                return _END
            case "R":
                self.place += 1
                return rf"(?:\r\n|{charset.as_regex(charset.VERTICAL)})"
            case _ if character.isdigit() and character != "0":
                return self.numbered_reference()
            case _:
                found = self.escaped_set()
                single = len(found) == 1 and found[0][0] == found[0][1]
                return re.escape(chr(found[0][0])) if single else charset.as_regex(found)

    def quoted(self) -> str:
        end = self.pattern.find(r"\E", self.place)
        text = self.pattern[self.place + 1 : end if end >= 0 else None]
        self.place = end + 2 if end >= 0 else len(self.pattern)
        return f"(?:{re.escape(text)})" if len(text) > 1 else re.escape(text)

    def named_reference(self) -> str:
        found = re.match(r"k<([a-zA-Z][a-zA-Z0-9]*)>", self.pattern[self.place :])
        if not found:
            raise BadRegex(self.pattern, r"\k is not followed by '<' for named capturing group")
        self.place += found.end()
        return f"(?P={found[1]})"

    def numbered_reference(self) -> str:
        """As many digits as name a group that is there."""
        groups = len(re.findall(r"(?<!\\)\((?!\?)|\(\?<[a-zA-Z]", self.pattern))
        digits = self.peek()
        while (more := self.pattern[self.place + len(digits) :][:1]).isdigit():
            if int(digits + more) > groups:
                break
            digits += more
        self.place += len(digits)
        return f"(?:\\{digits})"

    def escaped_set(self) -> Ranges:
        """What follows a backslash, in or outside a class, as a set of characters."""
        rest = self.pattern[self.place :]
        if not rest:
            raise BadRegex(self.pattern, "Unexpected internal error: ends with a backslash")
        character = rest[0]
        if found := _HEX.match(rest):
            self.place += found.end()
            code = int(found[1] or found[2] or found[3], 16)
            return ((code, code),)
        if found := _OCTAL.match(rest):
            self.place += found.end()
            return ((int(found[1], 8),) * 2,)
        if found := _PROPERTY.match(rest):
            return self.property(found)
        self.place += 1
        if character == "c" and len(rest) > 1:
            self.place += 1
            return ((ord(rest[1]) ^ 64,) * 2,)
        if character.lower() in charset.PREDEFINED:
            ranges = charset.PREDEFINED[character.lower()]
            return ranges if character.islower() else charset.complement(ranges)
        if character in _CONTROLS:
            return charset.of_characters(_CONTROLS[character])
        if character.isascii() and character.isalnum():
            raise BadRegex(self.pattern, f"Illegal/unsupported escape sequence \\{character}")
        return charset.of_characters(character)

    def property(self, found: re.Match[str]) -> Ranges:
        self.place += found.end()
        name = found[1] or found[2]
        ranges = charset.of_property(name)
        if ranges is None:
            raise BadRegex(self.pattern, f"the character property {name} is not supported yet")
        return charset.complement(ranges) if found[0][0] == "P" else ranges

    def char_class(self) -> Ranges:
        """The set between brackets: unions, nested classes, intersections (&&)."""
        negated = self.peek() == "^"
        self.place += negated
        whole: Ranges | None = None
        part: Ranges = ()
        first = True
        while True:
            if self.place >= len(self.pattern):
                raise BadRegex(self.pattern, "Unclosed character class")
            if self.peek() == "]" and not first:
                self.place += 1
                break
            if self.peek(2) == "&&":
                self.place += 2
                whole = part if whole is None else charset.intersection(whole, part)
                part = ()
            else:
                part = charset.union(part, self.class_item())
            first = False
        whole = part if whole is None else charset.intersection(whole, part)
        return charset.complement(whole) if negated else whole

    def class_item(self) -> Ranges:
        if self.peek() == "[":
            self.place += 1
            return self.char_class()
        if self.peek(2) == r"\Q":
            self.place += 1
            end = self.pattern.find(r"\E", self.place)
            text = self.pattern[self.place + 1 : end if end >= 0 else None]
            self.place = end + 2 if end >= 0 else len(self.pattern)
            return charset.of_characters(text)
        low = self.class_character()
        if self.peek() != "-" or self.peek(2) in ("-]", "-[", "-&") or len(self.peek(2)) < 2:
            return low
        self.place += 1
        high = self.class_character()
        if low[0][0] > high[0][0]:
            raise BadRegex(self.pattern, "Illegal character range")
        return ((low[0][0], high[0][0]),)

    def class_character(self) -> Ranges:
        character = self.peek()
        self.place += 1
        return self.escaped_set() if character == "\\" else charset.of_characters(character)
