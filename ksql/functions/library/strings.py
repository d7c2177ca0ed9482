"""Strings: case, length, parts, joining. BYTES have the same functions where that makes sense."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from typing import AnyStr

from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import (
    JAVA_SPACES,
    LONGEST_RESULT,
    EvaluationError,
    ResultTooLong,
    from_units,
    in_units,
    length,
)

_WORD = re.compile(r"[^\s]+\s*", re.ASCII)
_ESCAPE = re.compile(r"\\(u+\+?[0-9a-fA-F]{4}|[0-3]?[0-7]{1,2}|.|\Z)", re.DOTALL)
_CONTROL = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


class TooFewArguments(EvaluationError):
    """CONCAT_WS without anything to join."""

    def __init__(self) -> None:
        super().__init__("CONCAT_WS expects at least two arguments")


class BadEscape(EvaluationError):
    """An escape that Java does not know."""

    def __init__(self, text: str) -> None:
        super().__init__(f"cannot read the unicode escape in {text!r}")


def initcap(text: str) -> str:
    """Return each word with a capital first letter and small others; leading white space is lost.

    Source: docs/functions.md.
    """
    words = _WORD.findall(text.lower())
    return "".join(word[:1].upper() + word[1:] for word in words)


def _start(size: int, position: int) -> int:
    if position < 0:
        return max(size + position, 0)
    return min(max(position - 1, 0), size)


def substring(text: AnyStr, position: int, count: int | None = None) -> AnyStr:
    """Return the part from the 1-based position on (from the end if negative)."""
    start = _start(len(text), position)
    return text[start:] if count is None else text[start : max(start + count, start)]


def left_pad(text: AnyStr, size: int, padding: AnyStr) -> AnyStr | None:
    """Return the text brought to that length by padding on the left, or by cutting on the right."""
    filling = _filling(text, size, padding)
    return None if filling is None else (filling + text)[:size]


def right_pad(text: AnyStr, size: int, padding: AnyStr) -> AnyStr | None:
    """Return the text brought to that length by padding or cutting on the right."""
    filling = _filling(text, size, padding)
    return None if filling is None else (text + filling)[:size]


def _filling(text: AnyStr, size: int, padding: AnyStr) -> AnyStr | None:
    if size < 0 or not padding:
        return None
    missing = max(size - len(text), 0)
    if missing > LONGEST_RESULT:
        raise ResultTooLong("padding", size)
    return (padding * (missing // len(padding) + 1))[:missing]


def instr(text: str | None, part: str | None, position: int = 1, occurrence: int = 1) -> int:
    """Return where the n-th occurrence starts, counted from 1; 0 if there is none.

    A negative position starts there from the end and searches backwards.
    """
    if text is None or part is None or position is None or occurrence is None:
        return 0
    if abs(position) > len(text) or occurrence < 1:
        return 0
    index = (
        _backwards(text[: len(text) + position + 1], part, occurrence)
        if position < 0
        else _forwards(text, part, max(position - 1, 0), occurrence)
    )
    return index + 1


def _forwards(text: str, part: str, start: int, occurrence: int) -> int:
    for _ in range(occurrence):
        index = text.find(part, start)
        if index < 0:
            return -1
        start = index + 1
    return start - 1


def _backwards(text: str, part: str, occurrence: int) -> int:
    end = len(text) + len(part)
    index = -1
    for _ in range(occurrence):
        index = text.rfind(part, 0, end)
        if index < 0:
            return -1
        end = index + len(part) - 1
    return index


def replaced(text: str, old: str, new: str) -> str:
    """Return the text with every occurrence replaced.

    Raises: ResultTooLong.
    """
    if (len(text) + 1) * len(new) > LONGEST_RESULT:
        size = len(text) + text.count(old) * (len(new) - len(old))
        if size > LONGEST_RESULT:
            raise ResultTooLong("REPLACE", size)
    return text.replace(old, new)


def concat_ws(separator: AnyStr | None, *parts: AnyStr | None) -> AnyStr | None:
    """Return the parts that are not NULL with the separator between them."""
    if not parts:
        raise TooFewArguments
    if separator is None:
        return None
    return separator.join([part for part in parts if part is not None])


def element(position: int, *options: str | None) -> str | None:
    """Return the option at the 1-based position."""
    return options[position - 1] if 1 <= position <= len(options) else None


def field(text: str | None, *options: str | None) -> int:
    """Return the 1-based position of the first option that equals ``text``, or 0."""
    return options.index(text) + 1 if text is not None and text in options else 0


def _letters(text: str) -> list[str]:
    return list(text) or [""]


def split_text(text: str, delimiter: str) -> list[str]:
    """Return the parts between delimiters; the characters if the delimiter is empty."""
    return text.split(delimiter) if delimiter else _letters(text)


def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    """Return the parts between delimiters; the single bytes if the delimiter is empty."""
    if delimiter:
        return value.split(delimiter)
    return [value[i : i + 1] for i in range(len(value))] or [b""]


def chr_of_number(code: int) -> str | None:
    """Return the character of a code point; NULL if there is no such code point."""
    return from_units(chr(code)) if 0 <= code <= 0x10FFFF else None


def chr_of_escape(escape: str) -> str | None:
    r"""Return the text of Java escapes such as ``\u004b``; NULL if it does not start like one."""
    if len(escape) < 6 or not escape.startswith("\\u"):
        return None
    return from_units(_ESCAPE.sub(lambda match: _unescape(match[1], escape), escape))


def _unescape(body: str, text: str) -> str:
    if not body:  # a backslash at the end
        return ""
    if body[0] == "u":
        if len(body) < 5:
            raise BadEscape(text)
        return chr(int(body.lstrip("u+"), 16))
    if body[0] in "01234567":
        return chr(int(body, 8))
    return _CONTROL.get(body, body)


def md5(text: str) -> str:
    """Return the MD5 digest of the UTF-8 form, in small hexadecimal letters."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def uuid_of(value: bytes | None) -> str | None:
    """Return the UUID that sixteen bytes spell; NULL for any other number of bytes."""
    return str(uuid.UUID(bytes=value)) if value is not None and len(value) == 16 else None


def _both(
    params: Sequence[str],
    text: Callable[..., object],
    raw: Callable[..., object],
    code: str | None = None,
) -> tuple[Scalar, Scalar]:
    """Return the overloads for STRING and BYTES; ``S`` stands for the type."""
    return (
        Scalar(tuple(p.replace("S ", "STRING ") for p in params), "STRING", text, code),
        Scalar(tuple(p.replace("S ", "BYTES ") for p in params), "BYTES", raw, code),
    )


STRINGS = family(
    "STRING",
    {
        "ucase": (
            "The text in capital letters.",
            Scalar(("STRING input",), "STRING", str.upper, "({0}).upper()"),
        ),
        "lcase": (
            "The text in small letters.",
            Scalar(("STRING input",), "STRING", str.lower, "({0}).lower()"),
        ),
        "initcap": (
            "Each word of the text with a capital first letter.",
            Scalar(("STRING str",), "STRING", initcap),
        ),
        "trim": (
            "The text without white space and control characters at its ends.",
            Scalar(
                ("STRING input",),
                "STRING",
                lambda text: text.strip(JAVA_SPACES),
                f"({{0}}).strip({JAVA_SPACES!r})",
            ),
        ),
        "len": (
            "The length of the text in UTF-16 units, or the number of bytes.",
            Scalar(("STRING input",), "INT", length),
            Scalar(("BYTES input",), "INT", len, "len({0})"),
        ),
        "substring": (
            "The part of a text that starts at a position (from 1, or from the end if negative).",
            *_both(("S str", "INT pos"), in_units(substring), substring),
            *_both(("S str", "INT pos", "INT length"), in_units(substring), substring),
        ),
        "lpad": (
            "The text padded on the left, or cut, to the given length.",
            *_both(("S input", "INT targetLen", "S padding"), in_units(left_pad), left_pad),
        ),
        "rpad": (
            "The text padded on the right, or cut, to the given length.",
            *_both(("S input", "INT targetLen", "S padding"), in_units(right_pad), right_pad),
        ),
        "instr": (
            "The position of a text in another one, from 1; 0 if it is not there.",
            Scalar(("STRING str", "STRING substring"), "INT", in_units(instr), nulls="pass"),
            Scalar(
                ("STRING str", "STRING substring", "INT position"),
                "INT",
                in_units(instr),
                nulls="pass",
            ),
            Scalar(
                ("STRING str", "STRING substring", "INT position", "INT occurrence"),
                "INT",
                in_units(instr),
                nulls="pass",
            ),
        ),
        "concat": (
            "All arguments one after the other; NULLs are left out.",
            Scalar(
                ("STRING... inputs",),
                "STRING",
                lambda *parts: "".join(filter(None, parts)),
                "''.join(filter(None, ({*},)))",
                "pass",
            ),
            Scalar(
                ("BYTES... inputs",),
                "BYTES",
                lambda *parts: b"".join(filter(None, parts)),
                "b''.join(filter(None, ({*},)))",
                "pass",
            ),
        ),
        "concat_ws": (
            "The arguments after the first with the first between them; NULLs are left out.",
            Scalar(("STRING separator", "STRING... inputs"), "STRING", concat_ws, nulls="pass"),
            Scalar(("BYTES separator", "BYTES... inputs"), "BYTES", concat_ws, nulls="pass"),
        ),
        "elt": (
            "The n-th of the texts that follow.",
            Scalar(("int n", "STRING... args"), "STRING", element, nulls="pass"),
        ),
        "field": (
            "The position of the first text among those that follow; 0 if it is not there.",
            Scalar(("STRING str", "STRING... args"), "INT", field, nulls="pass"),
        ),
        "replace": (
            "The text with every occurrence of one text replaced by another.",
            Scalar(
                ("STRING str", "STRING oldStr", "STRING newStr"),
                "STRING",
                replaced,
            ),
        ),
        "split": (
            "The parts of a text between delimiters.",
            Scalar(("STRING string", "STRING delimiter"), "ARRAY<STRING>", in_units(split_text)),
            Scalar(("BYTES bytes", "BYTES delimiter"), "ARRAY<BYTES>", split_bytes),
        ),
        "chr": (
            "The character with that code point, or of that Java escape.",
            Scalar(("INT decimalCode",), "STRING", chr_of_number),
            Scalar(("STRING utf16Code",), "STRING", chr_of_escape),
        ),
        "md5": (
            "The MD5 digest of the text in hexadecimal digits.",
            Scalar(("STRING s",), "STRING", md5),
        ),
        "uuid": (
            "A new random identifier, or the one that sixteen bytes spell.",
            Scalar((), "STRING", lambda: str(uuid.uuid4()), volatile=True),
            Scalar(("BYTES bytes",), "STRING", uuid_of),
        ),
    },
)
