"""The rows of a store on their way between servers: a stream of frames with a visible end.

A frame has a kind (one byte), a length (4 bytes, big-endian) and so many bytes. ``ROWS`` holds rows
one after the other: time (8 bytes, signed, milliseconds), lengths of key and value (4 bytes each),
key, value. If a requested key has no row, the length of its value is 2^32 - 1. ``HEAD``, ``END``
and ``FAILED`` hold JSON. The last frame is ``END``, which may be empty, or ``FAILED``: a stream
without it was cut off.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import orjson

from ksql.core import ServerError
from ksql.views.stores import HiddenWindows, Stored, StoredRow

HEAD: Final = 0
ROWS: Final = 1
END: Final = 2
FAILED: Final = 3
_FRAME: Final = struct.Struct(">BI")
_ROW: Final = struct.Struct(">qII")
_ABSENT: Final = 2**32 - 1
PIECE_BYTES: Final = 65_536
_LONGEST: Final = 2**31


class BrokenFrames(ServerError):
    """A stream of frames that ended early, or that is none."""

    def __init__(self, why: str) -> None:
        super().__init__("another server's answer cannot be read", detail=why)


class PeerFailed(ServerError):
    """Another server could not read its store to the end."""

    def __init__(self, reason: str) -> None:
        super().__init__("another server could not read its store", detail=reason)


def frame(kind: int, data: bytes = b"") -> bytes:
    """Return one frame."""
    return _FRAME.pack(kind, len(data)) + data


def head(fields: Mapping[str, object]) -> bytes:
    """Return the frame of an answer's beginning."""
    return frame(HEAD, orjson.dumps(fields))


def failed(reason: str) -> bytes:
    """Return the last frame of a stream that could not be read to its end."""
    return frame(FAILED, orjson.dumps({"reason": reason}))


class End(NamedTuple):
    """The end of a whole answer.

    ``seen`` is an offset after all that is in it, None of a server that does not say it. ``hidden``
    are the windows that a retention has hidden from it, as far as they are known.
    """

    seen: int | None = None
    hidden: HiddenWindows | None = None


def end(seen: int | None, hidden: HiddenWindows | None = None) -> bytes:
    """Return the last frame of a whole answer; servers of before read the offset alone."""
    if seen is None:
        return frame(END)
    windows = {} if hidden is None else {"hidden": list(hidden)}
    return frame(END, orjson.dumps({"seen": seen, **windows}))


def end_of(data: bytes) -> End:
    """Return what the last frame says.

    Raises: BrokenFrames.
    """
    if not data:
        return End()
    try:
        fields = orjson.loads(data)
        windows = fields.get("hidden")
        return End(int(fields["seen"]), windows and HiddenWindows(*map(int, windows)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenFrames(f"its end cannot be read: {error}") from error


def rows(stored: Iterable[StoredRow]) -> Iterator[bytes]:
    """Yield rows as frames, each of about so many bytes or one row."""
    parts: list[bytes] = []
    size = 0
    for key, value, timestamp in stored:
        parts += (_ROW.pack(timestamp, len(key), len(value)), key, value)
        size += _ROW.size + len(key) + len(value)
        if size >= PIECE_BYTES:
            yield frame(ROWS, b"".join(parts))
            parts, size = [], 0
    if parts:
        yield frame(ROWS, b"".join(parts))


def answers(stored: Iterable[Stored | None]) -> Iterator[bytes]:
    """Yield the answers to keys, in their order, without the keys."""
    parts: list[bytes] = []
    size = 0
    for answer in stored:
        if answer is None:
            parts.append(_ROW.pack(0, 0, _ABSENT))
            size += _ROW.size
        else:
            parts += (_ROW.pack(answer.timestamp, 0, len(answer.value)), answer.value)
            size += _ROW.size + len(answer.value)
        if size >= PIECE_BYTES:
            yield frame(ROWS, b"".join(parts))
            parts, size = [], 0
    if parts:
        yield frame(ROWS, b"".join(parts))


def frames(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the frames of a stream, ``END`` as its last one.

    Raises: BrokenFrames for one that ends early, PeerFailed for one that ends with a failure.
    """
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        at = 0
        while len(buffer) - at >= _FRAME.size:
            kind, length = _FRAME.unpack_from(buffer, at)
            if kind > FAILED or length > _LONGEST:
                raise BrokenFrames(f"a frame of kind {kind} and {length} bytes")
            begin = at + _FRAME.size
            if len(buffer) - begin < length:
                break
            data = bytes(buffer[begin : begin + length])
            at = begin + length
            if kind == FAILED:
                raise PeerFailed(str(orjson.loads(data)["reason"]))
            yield kind, data
            if kind == END:
                return
        del buffer[:at]
    raise BrokenFrames("it ended before its last frame")


def stored_rows(data: bytes) -> list[StoredRow]:
    """Return the rows of a frame.

    Raises: BrokenFrames.
    """
    rows_: list[StoredRow] = []
    at, size, unpack = 0, _ROW.size, _ROW.unpack_from
    try:
        while at < len(data):
            timestamp, key_bytes, value_bytes = unpack(data, at)
            middle = at + size + key_bytes
            end = middle + value_bytes
            if end > len(data):
                raise BrokenFrames("a row is longer than its frame")
            rows_.append(StoredRow(data[at + size : middle], data[middle:end], timestamp))
            at = end
    except struct.error as error:
        raise BrokenFrames(str(error)) from error
    return rows_


def stored_answers(data: bytes) -> list[Stored | None]:
    """Return the answers to keys of a frame.

    Raises: BrokenFrames.
    """
    answers_: list[Stored | None] = []
    at = 0
    try:
        while at < len(data):
            timestamp, _, length = _ROW.unpack_from(data, at)
            at += _ROW.size
            if length == _ABSENT:
                answers_.append(None)
                continue
            if at + length > len(data):
                raise BrokenFrames("a value is longer than its frame")
            answers_.append(Stored(data[at : at + length], timestamp))
            at += length
    except struct.error as error:
        raise BrokenFrames(str(error)) from error
    return answers_
