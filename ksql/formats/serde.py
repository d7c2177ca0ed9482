"""The common part of all formats: the shape of a serde, its errors, values read as Java does."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, Final, NoReturn

from ksql.core import KsqlError, Row
from ksql.core.types import DAY_MS, INT_MAX, INT_MIN, LONG_MAX, LONG_MIN

Value = Any
"""A value of a SQL type at run time; see ``ksql.core.types.model``."""

Failed = Callable[[int, "DecodeError"], None]
"""Called for a record of a batch that does not decode."""


class DecodeError(KsqlError):
    """Bytes that are not a row of the declared columns; ``path`` is where, e.g. ``$.A.B[0]``."""

    def __init__(self, message: str, path: str = "", cause: tuple[str, ...] = ()) -> None:
        super().__init__(f"{message}, path: {path}" if path else message)
        self.path = path
        self.cause = cause


class EncodeError(KsqlError):
    """A row that a format cannot write; ``index`` is its place in the batch."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class NullKey(EncodeError):
    """A map with NULL among its keys, for a format whose maps have no such key."""

    def __init__(self, name: str) -> None:
        super().__init__(f'Invalid key: null used as a key of the map "{name}"')


def no_key(name: str) -> NoReturn:
    """Refuse the key of an entry of that field's map.

    Raises: NullKey.
    """
    raise NullKey(name)


class Skip:
    """The type of ``SKIP``: what ``decode_many`` gives for a record that does not decode."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP: Final = Skip()


@dataclass(frozen=True, slots=True)
class Printing:
    """How a loop that is generated elsewhere writes rows without making them.

    ``document`` gives, for the local variables of a row's columns, statements and the code of what
    ``finish`` then prints, for all rows at once. ``names`` are known to both.
    """

    document: Callable[[Sequence[str]], tuple[list[str], str]]
    names: Mapping[str, Any]
    finish: Callable[[list[Any]], Sequence[bytes | None]]


@dataclass(frozen=True, slots=True)
class Serde:
    """How the keys or values of a topic are read and written.

    Rows are tuples in column order; null bytes are None and the other way round.
    ``decode`` raises DecodeError and nothing else; ``encode``, ``encode_many`` raise EncodeError.
    ``decode_many`` calls ``failed(index, error)`` for a record that does not decode and puts
    ``SKIP`` in its place; what ``failed`` raises goes through.

    ``keeps``: whether all these bytes decode, to rows without NULL, and would be encoded the same
    again; None: nobody knows. ``plain`` is the code of the only column's value in such bytes, where
    that is simple. ``texts`` says that the column is a text and the bytes its UTF-8.
    ``integer_bytes`` says that it is a whole number of so many bytes, the highest first.
    ``printing`` means the same as ``encode_many``, where there is one.
    """

    decode: Callable[[bytes | None], Row | None]
    encode: Callable[[Row | None], bytes | None]
    decode_many: Callable[[Sequence[bytes | None], Failed], list[Row | Skip | None]]
    encode_many: Callable[[Sequence[Row | None]], list[bytes | None]]
    keeps: Callable[[Sequence[bytes]], bool] | None = None
    printing: Printing | None = None
    plain: str | None = None
    texts: bool = False
    integer_bytes: int = 0


def serde_of(
    decode: Callable[[bytes], Row | None],
    encode: Callable[[Row], bytes | None],
    keeps: Callable[[Sequence[bytes]], bool] | None = None,
    plain: str | None = None,
    *,
    texts: bool = False,
    integer_bytes: int = 0,
) -> Serde:
    """Make a serde of two functions that know nothing of nulls and batches."""

    def decode_many(items: Sequence[bytes | None], failed: Failed) -> list[Row | Skip | None]:
        out: list[Row | Skip | None] = []
        for data in items:
            try:
                out.append(None if data is None else decode(data))
            except DecodeError as error:
                failed(len(out), error)
                out.append(SKIP)
        return out

    def encode_many(rows: Sequence[Row | None]) -> list[bytes | None]:
        out: list[bytes | None] = []
        for index, row in enumerate(rows):
            try:
                out.append(None if row is None else encode(row))
            except EncodeError as error:
                error.index = index
                raise
        return out

    return Serde(
        decode=lambda data: None if data is None else decode(data),
        encode=lambda row: None if row is None else encode(row),
        decode_many=decode_many,
        encode_many=encode_many,
        keeps=keeps,
        plain=plain,
        texts=texts,
        integer_bytes=integer_bytes,
    )


NOTHING: Final = Serde(
    decode=lambda _data: (),
    encode=lambda _row: None,
    decode_many=lambda items, _failed: [()] * len(items),
    encode_many=lambda rows: [None] * len(rows),
)
"""The serde of no columns: whatever the bytes are, the row is empty."""


class UnreadableValue(Exception):
    """A value that cannot be read as its declared type; the path grows while it travels up."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def under(self, prefix: str) -> UnreadableValue:
        """Return the same, seen from the container."""
        self.path = prefix + self.path
        return self


class BadText(ValueError):
    """A text that Java's parser of the wanted type refuses."""


_INTEGER = re.compile(r"[+-]?\d+\Z")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_HEX_DOUBLE = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+\Z"
)
_NAMED_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity)\Z")
_JAVA_BLANKS = "".join(map(chr, range(33)))
_LONGEST_NUMBER = 1000  # digits; Python and Java's JSON reader both refuse numbers without bound


def _integer(text: str, low: int, high: int) -> int:
    if len(text) > _LONGEST_NUMBER or not _INTEGER.match(text):
        raise BadText(f'For input string: "{text}"')
    value = int(text)
    if not low <= value <= high:
        raise BadText(f'For input string: "{text}"')
    return value


def parse_int(text: str) -> int:
    """Read an INTEGER as Java's ``Integer.parseInt``."""
    return _integer(text, INT_MIN, INT_MAX)


def parse_long(text: str) -> int:
    """Read a BIGINT as Java's ``Long.parseLong``."""
    return _integer(text, LONG_MIN, LONG_MAX)


def parse_double(text: str) -> float:
    """Read a DOUBLE as Java's ``Double.parseDouble``: with blanks, suffixes, hexadecimals."""
    bare = text.strip(_JAVA_BLANKS)
    if _NAMED_DOUBLE.match(bare):
        return float(bare)
    if bare[-1:] in ("d", "D", "f", "F"):
        bare = bare[:-1]
    if _DOUBLE.match(bare):
        return float(bare)
    if _HEX_DOUBLE.match(bare):
        try:
            return float.fromhex(bare)
        except OverflowError:
            return float("-inf" if bare.startswith("-") else "inf")
    raise BadText(f'For input string: "{text}"')


def parse_decimal(text: str) -> Decimal:
    """Read a DECIMAL as Java's ``new BigDecimal``."""
    if len(text) > _LONGEST_NUMBER or not _DOUBLE.match(text):
        raise BadText(f'For input string: "{text}"')
    try:
        return Decimal(text)
    except InvalidOperation as error:  # an exponent beyond what either language holds
        raise BadText(f'For input string: "{text}"') from error


def parse_base64(text: str) -> bytes:
    """Return the bytes of a Base64 text; blanks in it do not count."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(f"Illegal base64 content: {error}") from error


def check_time(millis: int) -> int:
    """Return the millisecond of a day, checked."""
    if not 0 <= millis <= DAY_MS:
        raise BadText(
            "Time values must use number of milliseconds greater than 0 and less than 86400000."
        )
    return millis


def fitting(precision: int, scale: int) -> Callable[[Decimal], Decimal]:
    """Return a function that gives a number the scale of DECIMAL(precision, scale).

    It never rounds.

    Raises: BadText where the number does not fit.
    """
    unit = Decimal(1).scaleb(-scale, Context(Emin=-999_999, Emax=999_999, prec=1))
    exact = Context(prec=max(precision, 1), traps=[Inexact, InvalidOperation])
    zero = Decimal(0).quantize(unit)

    def fit(value: Decimal) -> Decimal:
        try:
            return value.quantize(unit, context=exact) if value else zero  # no negative zero
        except DecimalException as error:
            raise BadText(_does_not_fit(value, precision, scale)) from error

    return fit


def _does_not_fit(value: Decimal, precision: int, scale: int) -> str:
    integers = precision - scale
    text = format(value, "f") if abs(value.adjusted()) < _LONGEST_NUMBER else str(value)
    if value.adjusted() >= integers:
        return (
            f"Numeric field overflow: A field with precision {precision} and scale {scale} "
            f"must round to an absolute value less than 10^{integers}. Got {text}"
        )
    exponent = value.as_tuple().exponent
    needed = -exponent if isinstance(exponent, int) else 0
    digits = max(len(value.as_tuple().digits), needed)
    return (
        f"Cannot fit decimal '{text}' into DECIMAL({precision}, {scale}) without rounding. "
        f"(Requires {digits},{needed})"
    )
