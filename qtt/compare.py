"""Expected and actual records, topic by topic. Source: qtt/README.md#a-case."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, NamedTuple

from ksql.formats import RegisteredReader
from qtt import tokens, wire
from qtt.model import CaseRecord, Mismatch, QueryTestCase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksql.formats import Registry
    from ksql.sql.catalog import DataSource


class Actual(NamedTuple):
    """A record as it was found in a topic."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0


def check_topic(
    case: QueryTestCase,
    source: DataSource,
    expected: Sequence[CaseRecord],
    actual: Sequence[Actual],
    registry: Registry | None = None,
) -> None:
    """Compare one topic's log, record by record.

    Raises: Mismatch that says the first difference, and has all others.
    """
    written = None if registry is None else RegisteredReader(registry)
    actual = _by_expected_keys(source, expected, actual, written)
    problems = []
    for index, (want, got) in enumerate(zip(expected, actual, strict=False)):
        where = f"topic {source.topic}, record {index}"
        try:
            _check_record(where, case, source, want, got, written)
        except Mismatch as problem:
            problems.append(str(problem))
    if len(expected) != len(actual):
        problems.append(
            f"topic {source.topic}: {len(expected)} records expected, {len(actual)} found"
            + _rest(source, expected, actual)
        )
    if problems:
        raise Mismatch(problems[0], *problems[1:])


def _by_expected_keys(
    source: DataSource,
    expected: Sequence[CaseRecord],
    actual: Sequence[Actual],
    written: RegisteredReader | None,
) -> Sequence[Actual]:
    """Order records of several partitions as their keys are expected.

    Only records of one partition have an order; those of a key lie in one partition.
    """
    if len({got.partition for got in actual}) < 2:
        return actual
    keys = [
        wire.decode(
            wire.split_window(got.key, source)[0],
            source.key_format,
            source.schema.key,
            "key",
            written,
        )
        for got in actual
    ]
    left, ordered = list(range(len(actual))), []
    for want in expected:
        index = next((i for i in left if same(want.key, keys[i], exact=False)), None)
        if index is not None:
            left.remove(index)
            ordered.append(index)
    return [actual[index] for index in (*ordered, *left)]


def _rest(source: DataSource, expected: Sequence[CaseRecord], actual: Sequence[Actual]) -> str:
    if len(actual) > len(expected):
        extra = actual[len(expected)]
        return f"; the first too many is key={extra.key!r} value={extra.value!r}"
    missing = expected[len(actual)]
    return f"; the first missing is key={missing.key!r} value={missing.value!r}"


def _check_record(
    where: str,
    case: QueryTestCase,
    source: DataSource,
    want: CaseRecord,
    got: Actual,
    written: RegisteredReader | None,
) -> None:
    schema = source.schema
    key, window = wire.split_window(got.key, source)
    if want.window != window:
        raise Mismatch(f"{where}: window {want.window} expected, {window} found")
    actual_key = wire.decode(key, source.key_format, schema.key, "key", written)
    actual_value = wire.decode(got.value, source.value_format, schema.value, "value", written)
    exact = case.exact_numbers
    if not same(want.key, actual_key, exact=exact):
        raise Mismatch(f"{where}: key {_show(want.key)} expected, {_show(actual_key)} found")
    if not same(want.value, actual_value, exact=exact):
        raise Mismatch(f"{where}: value {_show(want.value)} expected, {_show(actual_value)} found")
    checks_time = want.timestamp is not None and (
        want.timestamp != 0 or any(step.inputs for step in case.steps)
    )
    if checks_time and want.timestamp != got.timestamp:
        raise Mismatch(f"{where}: timestamp {want.timestamp} expected, {got.timestamp} found")
    if want.headers != got.headers:
        raise Mismatch(f"{where}: headers {want.headers} expected, {got.headers} found")


def _show(value: Any) -> str:
    return tokens.dump(value)


def same(want: Any, got: Any, *, exact: bool) -> bool:
    """Whether an actual value is what is expected."""
    match want, got:
        case tokens.Number(), tokens.Number():
            return _same_number(want, got, exact=exact)
        case dict(), dict():
            return len(want) == len(got) and all(
                same(value, _looked_up(got, name), exact=exact) for name, value in want.items()
            )
        case list(), list():
            return len(want) == len(got) and all(
                same(a, b, exact=exact) for a, b in zip(want, got, strict=True)
            )
        case str(), tokens.Decimal():
            return Decimal(want).as_tuple() == Decimal(got).as_tuple()
        case (tokens.Number(), _) | (_, tokens.Number()):
            return False
        case _:
            return bool(want == got and type(want) is type(got))


def _looked_up(row: dict[str, Any], name: str) -> Any:
    value = row.get(name)
    return row.get(name.upper()) if value is None else value


def _same_number(want: str, got: str, *, exact: bool) -> bool:
    try:
        a, b = Decimal(want), Decimal(got)
    except InvalidOperation:
        return want == got
    if not exact or isinstance(got, tokens.Double):
        return a == b or abs(float(want) - float(got)) < 1e-6  # two texts may be one double
    if _is_integer(got):
        return int(a) == int(b)
    if _is_integer(want):
        return a == b and int(b.as_tuple().exponent) >= 0
    return a.as_tuple() == b.as_tuple()


def _is_integer(text: str) -> bool:
    return not any(c in text for c in ".eE")
