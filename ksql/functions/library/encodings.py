"""Bytes: their text forms, and the numbers that they spell."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Callable
from typing import Any

from ksql.functions.build import family
from ksql.functions.spec import Scalar
from ksql.java import EvaluationError

_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
_ORDERS = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}


class UnknownEncoding(EvaluationError):
    """An encoding that is none of the four, or a pair that is no change."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unsupported encoding: {name}; there are HEX, UTF8, ASCII and BASE64")


class BadEncoding(EvaluationError):
    """A text that is not in the encoding that it should be in."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(f"{text!r} is not in the encoding {name}")


class WrongSize(EvaluationError):
    """The number of bytes is not the type's."""

    def __init__(self, size: int, expected: int) -> None:
        super().__init__(f"{expected} bytes are needed, not {size}")


class UnknownByteOrder(EvaluationError):
    """A byte order that is neither."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the byte order must be BIG_ENDIAN or LITTLE_ENDIAN, not {name}")


def _from_hex(text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError as error:
        raise BadEncoding(text, "HEX") from error


def _from_marked_hex(text: str) -> bytes:
    """Read hexadecimal digits, also as ``0x..`` (a missing first digit is 0) or ``X'..'``."""
    if text.startswith("0x"):
        digits = text[2:]
        return _from_hex("0" * (len(digits) % 2) + digits)
    if text[:2] in ("X'", "x'") and text.endswith("'") and len(text) > 2:
        return _from_hex(text[2:-1])
    return _from_hex(text)


def _from_ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


def _from_base64(text: str) -> bytes:
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except binascii.Error as error:
        raise BadEncoding(text, "BASE64") from error


def _from_any_base64(text: str) -> bytes:
    """Decode a text in either alphabet, skipping other characters."""
    digits = _NOT_BASE64.sub("", text.partition("=")[0].replace("-", "+").replace("_", "/"))
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


def _to_utf8(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _to_ascii(value: bytes) -> str:
    return value.decode("ascii", "replace")


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


_READ: dict[str, Callable[[str], bytes]] = {
    "HEX": _from_hex,
    "UTF8": str.encode,
    "ASCII": _from_ascii,
    "BASE64": _from_base64,
}
_WRITE: dict[str, Callable[[bytes], str]] = {
    "HEX": lambda value: value.hex().upper(),
    "UTF8": _to_utf8,
    "ASCII": _to_ascii,
    "BASE64": _to_base64,
}
_ENCODE_READ = {**_READ, "HEX": _from_marked_hex, "BASE64": _from_any_base64}
_ENCODE_WRITE: dict[str, Callable[[bytes], str]] = {**_WRITE, "HEX": bytes.hex}


def _of(table: dict[str, Callable[[Any], Any]], name: str) -> Callable[[Any], Any]:
    codec = table.get(name.upper())
    if codec is None:
        raise UnknownEncoding(name)
    return codec


def encode(text: str, source: str, target: str) -> str:
    """Return the text of one encoding in another one."""
    read, write = _of(_ENCODE_READ, source), _of(_ENCODE_WRITE, target)
    if source.upper() == target.upper():
        raise UnknownEncoding(f"{source} to {target}")
    result: str = write(read(text))
    return result


def to_bytes(text: str, encoding: str) -> bytes:
    """Return the bytes that the text stands for."""
    result: bytes = _of(_READ, encoding)(text)
    return result


def from_bytes(value: bytes, encoding: str) -> str:
    """Return the text form of the bytes."""
    result: str = _of(_WRITE, encoding)(value)
    return result


def _number(letter: str) -> Callable[..., int | float]:
    size = struct.calcsize(">" + letter)

    def read(value: bytes, order: str = "BIG_ENDIAN") -> int | float:
        mark = _ORDERS.get(order.upper())
        if mark is None:
            raise UnknownByteOrder(order)
        if len(value) != size:
            raise WrongSize(len(value), size)
        number: int | float = struct.unpack(mark + letter, value)[0]
        return number

    return read


def _numbers(kind: str, letter: str) -> tuple[Scalar, Scalar]:
    row = _number(letter)
    return (
        Scalar(("BYTES value",), kind, row),
        Scalar(("BYTES value", "STRING byteOrder"), kind, row),
    )


ENCODINGS = family(
    "STRING",
    {
        "encode": (
            "The text in another encoding: hex, utf8, ascii or base64.",
            Scalar(
                ("STRING str", "STRING inputEncoding", "STRING outputEncoding"), "STRING", encode
            ),
        ),
        "to_bytes": (
            "The bytes that a text in hex, utf8, ascii or base64 stands for.",
            Scalar(("STRING value", "STRING encoding"), "BYTES", to_bytes),
        ),
        "from_bytes": (
            "Bytes as text: hex, utf8, ascii or base64.",
            Scalar(("BYTES value", "STRING encoding"), "STRING", from_bytes),
        ),
        "int_from_bytes": ("The INT that four bytes spell.", *_numbers("INT", "i")),
        "bigint_from_bytes": ("The BIGINT that eight bytes spell.", *_numbers("BIGINT", "q")),
        "double_from_bytes": ("The DOUBLE that eight bytes spell.", *_numbers("DOUBLE", "d")),
    },
)
