"""Checks the catalog after a case. Source: qtt/README.md#a-case."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ksql.core.types import Column, Role
from ksql.formats import Side, serde_features
from ksql.sql.syntax import ast, parse_one, split
from qtt import tokens
from qtt.model import Mismatch, QueryTestCase

if TYPE_CHECKING:
    from ksql.core.types import Format
    from ksql.sql.catalog import DataSource
    from qtt.driver import Driver


_INTERNAL: Final = re.compile(r"-(repartition|changelog)\Z")
_DEFAULT_PARTITIONS: Final = "4"  # where nobody says how many
_SIDES: Final[tuple[Side, ...]] = ("key", "value")


def check_post(case: QueryTestCase, driver: Driver, partitions: int) -> None:
    """Check ``post.sources`` and ``post.topics``.

    ``partitions`` is how many a topic has here for which nobody says how many.

    Raises: Mismatch.
    """
    catalog = driver.catalog
    for expected in case.post.get("sources") or ():
        if not any(_fits(expected, source) for source in catalog.sources.values()):
            shown = "; ".join(_shown(source) for source in catalog.sources.values())
            raise Mismatch(f"no source is like {expected}; there are {shown}")
    topics: Mapping[str, Any] = case.post.get("topics") or {}
    _check_topics(topics.get("topics") or (), driver, partitions)
    pattern = topics.get("blacklist")
    if pattern:
        known = {source.topic for source in catalog.sources.values()}
        leftovers = [name for name in known if re.search(pattern, name)]
        if leftovers:
            raise Mismatch(f"topics {leftovers} should not be there")


def _check_topics(
    expectations: Sequence[Mapping[str, Any]], driver: Driver, partitions: int
) -> None:
    sources = {source.topic: source for source in driver.catalog.sources.values()}
    inner = []
    for expectation in expectations:
        source = sources.get(expectation["name"])
        if source is None:
            if _INTERNAL.search(expectation["name"]):
                inner.append(expectation["name"])  # the others are still worth a look
                continue
            raise Mismatch(f"there is no topic {expectation['name']}")
        actual = _topic_facts(source, driver)
        if source.partitions == partitions:
            actual["partitions"] = _DEFAULT_PARTITIONS
        for fact, current in actual.items():
            expected = expectation.get(fact)
            given = expected is not None or fact.endswith(("Format", "Id"))
            if given and _comparable(expected) != _comparable(current):
                raise Mismatch(f"topic {source.topic}: {fact} {expected} expected, {current} found")
    if inner:
        raise Mismatch(f"no state is in topics of Kafka Streams: {', '.join(inner)}")


def _topic_facts(source: DataSource, driver: Driver) -> dict[str, Any]:
    """Return the facts about a topic, in the words of the test files."""
    facts: dict[str, Any] = {"partitions": str(source.partitions)}
    for side in _SIDES:
        format_ = source.key_format if side == "key" else source.value_format
        columns = source.schema.key if side == "key" else source.schema.value
        facts[f"{side}Format"] = _format_facts(format_, serde_features(format_, columns, side))
        facts[f"{side}SchemaId"] = None if format_.schema_id is None else str(format_.schema_id)
        latest = driver.latest(source.topic, side)
        facts[f"{side}Schema"] = None if latest is None else latest.schema.text
    window = source.window
    if window is not None:
        size = {} if window.size_ms is None else {"size": str(window.size_ms)}
        facts["keyFormat"]["windowInfo"] = {"type": window.kind, **size}
    return facts


_ALWAYS: Final[dict[str, dict[str, str]]] = {"PROTOBUF": {"unwrapPrimitives": "true"}}
"""Properties that ksqlDB shows although no statement gives them."""


def _format_facts(format_: Format, features: tuple[str, ...]) -> dict[str, Any]:
    properties: dict[str, str] = {}
    if format_.schema_full_name is not None:
        properties["fullSchemaName"] = format_.schema_full_name
    properties |= _ALWAYS.get(format_.name, {})
    if format_.nullable_representation is not None:
        properties["nullableRepresentation"] = format_.nullable_representation.lower()
    if "delimiter" in format_.stated:
        properties["delimiter"] = format_.delimiter
    facts: dict[str, Any] = {"format": format_.name}
    if properties:
        facts["properties"] = properties
    if features:
        facts["features"] = list(features)
    return facts


def _comparable(fact: Any) -> Any:
    """Schemas as what they mean: Connect's remarks in them do not count, nor does white space."""
    if isinstance(fact, str) and fact.startswith(("{", "[", '"')):
        try:
            return _comparable(tokens.parse(fact))
        except ValueError:
            pass
    if isinstance(fact, Mapping):
        return {
            name: _comparable(member)
            for name, member in fact.items()
            if not name.startswith("connect.")
        }
    if isinstance(fact, list):
        return [_comparable(member) for member in fact]
    return None if fact is None else " ".join(str(fact).split())


def _shown(source: DataSource) -> str:
    return f"{source.kind} {source.name} ({source.schema})"


def _fits(expected: Mapping[str, Any], source: DataSource) -> bool:
    return (
        expected["name"] == source.name
        and expected["type"].upper() == source.kind
        and _schema_fits(expected.get("schema"), source)
        and _key_format_fits(expected.get("keyFormat"), source)
        and _value_format_fits(expected.get("valueFormat"), source)
        and _features_fit(expected.get("keyFeatures"), source, "key")
        and _features_fit(expected.get("valueFeatures"), source, "value")
        and expected.get("isSource", source.read_only) == source.read_only
    )


def _schema_fits(text: str | None, source: DataSource) -> bool:
    if text is None:
        return True
    return columns_of(text) == [c for c in source.schema.columns if c.role is not Role.HEADERS]


def columns_of(text: str) -> list[Column]:
    """A schema's text as columns."""
    kind = "TABLE" if "PRIMARY KEY" in text else "STREAM"
    statement = parse_one(split(f"CREATE {kind} S ({text}) WITH (KAFKA_TOPIC='s');")[0]).statement
    assert isinstance(statement, ast.CreateSource)  # noqa: S101 - just written so
    return [
        Column(c.name, c.type, Role.KEY if "KEY" in c.mark else Role.VALUE)
        for c in statement.columns
    ]


def _key_format_fits(expected: Mapping[str, Any] | None, source: DataSource) -> bool:
    if expected is None:
        return True
    window = source.window
    size = expected.get("windowSize")
    return (
        expected.get("format", source.key_format.name) == source.key_format.name
        and expected.get("windowType") == (window.kind if window else None)
        and (None if size is None else int(size)) == (window.size_ms if window else None)
    )


def _value_format_fits(expected: Any, source: DataSource) -> bool:
    if expected is None:
        return True
    name = expected.get("format") if isinstance(expected, Mapping) else expected
    return name is None or name == source.value_format.name


def _features_fit(expected: list[str] | None, source: DataSource, side: str) -> bool:
    if expected is None:
        return True
    format_ = source.key_format if side == "key" else source.value_format
    columns = source.schema.key if side == "key" else source.schema.value
    return set(expected) == set(serde_features(format_, columns, side))  # type: ignore[arg-type]
