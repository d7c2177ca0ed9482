"""PRINT: raw records of a topic, with the formats guessed from their bytes.

Source: docs/sql/reading.md#print.

Names and their order are ksqlDB's: a key may be one of a window, and what is UTF-8 may be a text.
Unlike there, letters are never shown as a number: a text of four or eight of them is a text.

Source: docs/sql/reading.md#print.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

from ksql.core import KsqlError
from ksql.core.types import Format, WindowedKeys, times
from ksql.formats import FORMAT_OF, MAGIC, PREFIX_BYTES, RegisteredReader, serde_for
from ksql.serving.feed import released

if TYPE_CHECKING:
    from ksql.core import RawRecord
    from ksql.formats import Registry
    from ksql.serving.feed import Feed


class PrintQuery:
    """PRINT's lines; see ``TextStream``."""

    kind: Literal["print"] = "print"
    query_id: str | None = None

    def __init__(
        self,
        feed: Feed,
        *,
        interval: int,
        limit: int | None,
        registry: Registry | None = None,
    ) -> None:
        self._feed = feed
        self._interval = interval
        self._limit = limit
        self._formats: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        written = None if registry is None else RegisteredReader(registry)
        self._keys, self._values = DetectedFormats(written, keys=True), DetectedFormats(written)

    def lines(self) -> Iterator[list[str]]:
        """Yield lines as records come; first the guessed formats."""
        seen = sent = 0
        with released(self._feed):
            while self._feed.open and (self._limit is None or sent < self._limit):
                out: list[str] = []
                records = self._feed.poll()
                if records and self._formats is None:
                    self._formats = (
                        self._keys.fitting([r.key for r in records]),
                        self._values.fitting([r.value for r in records]),
                    )
                    keys, values = map(" or ".join, self._formats)
                    out += [f"Key format: {keys}", f"Value format: {values}"]
                for record in records:
                    seen += 1
                    if (seen - 1) % self._interval == 0 and (
                        self._limit is None or sent < self._limit
                    ):
                        out.append(self._line(record))
                        sent += 1
                yield out

    def _line(self, record: RawRecord) -> str:
        keys, values = self._formats or ((), ())
        time = _time(record.timestamp)
        key, value = self._keys.shown(record.key, keys), self._values.shown(record.value, values)
        return f"rowtime: {time}, key: {key}, value: {value}, partition: {record.partition}"

    def close(self) -> None:
        self._feed.close()


def _time(millis: int) -> str:
    """Print a record's time, which its writer chose: it may lie beyond every calendar."""
    days, clock = divmod(millis, times.DAY_MS)
    seconds, fraction = divmod(clock, 1000)
    date = times.format_date(days)
    date = date[0] + date[1:].replace("-", "/")
    return (
        f"{date} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d} Z"
    )


NOTHING: Final = "¯\\_(ツ)_/¯ - no data processed"
UNKNOWN: Final = "UNRECOGNISED_BYTES"
MIXED: Final = "MIXED"
_TEXT: Final = "KAFKA_STRING"
_TAGGED: Final = " or ".join(reversed(FORMAT_OF.values()))

_LATEST_WINDOW_MS: Final = 1 << 43
"""No window begins or ends later, in the year 2248; texts taken for times are later by far."""
_HOPPING: Final = WindowedKeys(0)
_SESSION: Final = WindowedKeys(None)

_ESCAPED: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))},
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
_BETWEEN_TOKENS: Final = re.compile(r"[\n\r\t]\s*")
_STRING_OR_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[:,]')

Show = Callable[[bytes], str | None]
"""Shows bytes as a format has them; None if they are not of it."""


def one_line(data: bytes) -> str:
    """Return the bytes as text in one line; controls and what is no text are escaped."""
    return data.decode(errors="backslashreplace").translate(_ESCAPED)


class DetectedFormats:
    """The formats of a topic's keys, or of its values, by their names."""

    def __init__(self, written: RegisteredReader | None = None, *, keys: bool = False) -> None:
        """Take ``written``, which knows the schemas of the registry, if there is one."""
        self._written = written
        plain = _formats(written)
        self._formats = dict(_windowed(plain) if keys else plain)

    def fitting(self, samples: Sequence[bytes | None]) -> tuple[str, ...]:
        """Return the formats that fit all samples, or one word in their place."""
        present = [sample for sample in samples if sample is not None]
        if not present:
            return (NOTHING,)
        if len({_registered(sample, self._written) for sample in present}) > 1:
            return (MIXED,)
        formats = tuple(
            name
            for name, show in self._formats.items()
            if all(show(sample) is not None for sample in present)
        )
        if set(formats) <= {_TEXT} and all(_is_tagged(sample, self._written) for sample in present):
            return (_TAGGED, *formats)
        return formats or (UNKNOWN,)

    def shown(self, data: bytes | None, formats: Sequence[str]) -> str:
        """Return the bytes as the first of the formats that fits them has them, else as text.

        The formats were guessed of earlier records: if of none, or of too many, any may fit.
        """
        if data is None:
            return "<null>"
        names = [name for name in formats if name in self._formats] or tuple(self._formats)
        shown = (self._formats[name](data) for name in names)
        return next((text for text in shown if text is not None), None) or one_line(data)


def _formats(written: RegisteredReader | None) -> Iterator[tuple[str, Show]]:
    for name in FORMAT_OF.values() if written is not None else ():
        yield name, _Written(written, name)
    yield "JSON", _json
    yield "KAFKA_INT", lambda data: _number(data, ">i")
    yield "KAFKA_BIGINT", lambda data: _number(data, ">q")
    yield "KAFKA_DOUBLE", lambda data: _number(data, ">d")
    yield _TEXT, _text


def _windowed(plain: Iterator[tuple[str, Show]]) -> Iterator[tuple[str, Show]]:
    for name, show in plain:
        yield f"SESSION({name})", _Windowed(show, _SESSION)
        yield f"HOPPING({name})", _Windowed(show, _HOPPING)
        yield f"TUMBLING({name})", _Windowed(show, _HOPPING)
        yield name, show


class _Windowed:
    """A key with the bounds of its window after it."""

    def __init__(self, show: Show, keys: WindowedKeys) -> None:
        self._show = show
        self._keys = keys

    def __call__(self, data: bytes) -> str | None:
        if len(data) <= self._keys.suffix_bytes:
            return None
        key, (start, end) = self._keys.split(data)
        if not 0 <= start <= end < _LATEST_WINDOW_MS:
            return None
        text = self._show(key)
        if text is None:
            return None
        return f"[{text}@{start}/{'-' if self._keys.size_ms is not None else end}]"


class _Written:
    """Bytes that begin with the id of a schema, as that one has them."""

    def __init__(self, written: RegisteredReader | None, format_: str) -> None:
        self._written = written
        self._format = format_

    def __call__(self, data: bytes) -> str | None:
        if self._written is None or _registered(data, self._written) != self._format:
            return None
        try:
            shape, row = self._written.read(data)
            plain = Format("JSON", wrap=False if shape.alone else None)
            encoded = serde_for(plain, shape.columns, "value").encode(row)
        except KsqlError:  # broken, or of a kind that has no columns
            return None
        text = "null" if encoded is None else encoded.decode().translate(_ESCAPED)
        return _spaced(text) if self._format == "AVRO" else text


def _spaced(text: str) -> str:
    """Return JSON with the blanks with which AVRO's own text has it: ``{"A": 1, "B": 2}``."""
    return _STRING_OR_MARK.sub(lambda m: m[0] + " " if m[0] in ":," else m[0], text)


def _registered(data: bytes, written: RegisteredReader | None) -> str | None:
    """Return the format of the schema that the record begins with, if it begins with one."""
    if written is None or len(data) <= PREFIX_BYTES or data[:1] != MAGIC:
        return None
    try:
        return written.kind(data)
    except KsqlError:  # no such id, or nobody to ask: then it is looked at as plain bytes
        return None


def _is_tagged(data: bytes, written: RegisteredReader | None) -> bool:
    """Return whether they begin like bytes with a schema, but there is none to ask for."""
    is_long = len(data) > PREFIX_BYTES
    return is_long and data[:1] == MAGIC and _registered(data, written) is None


def _json(data: bytes) -> str | None:
    try:
        text = data.decode()
        is_json = isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):  # nested too deeply is shown as text
        return None
    return _BETWEEN_TOKENS.sub(" ", text).translate(_ESCAPED) if is_json else None


def _number(data: bytes, code: str) -> str | None:
    if len(data) != struct.calcsize(code) or _is_letters(data):
        return None
    return str(struct.unpack(code, data)[0])


def _is_letters(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _text(data: bytes) -> str | None:
    try:
        return data.decode().translate(_ESCAPED)
    except UnicodeDecodeError:
        return None
