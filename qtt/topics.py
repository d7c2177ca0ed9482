"""Sets up a case before its first statement: its topics and their registered schemas.

Source: qtt/README.md#a-case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ksql.control.planning import With, columns_of, configured_formats, with_configured_wrap
from ksql.core import KsqlError
from ksql.core.types import Schema as Columns
from ksql.core.types import capabilities
from ksql.formats import Schema, schema_for, validate
from ksql.sql.catalog import Topic
from ksql.sql.syntax import RawStatement, ast, parse_one, split
from qtt.model import QueryTestCase, SchemaDef, TopicDef

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.core import Settings
    from ksql.core.types import Column, Format
    from ksql.formats import Side
    from qtt.driver import CaseStage

_FIRST_TABLE: Final = 16


def prepare(case: QueryTestCase, driver: CaseStage, settings: Settings, partitions: int) -> None:
    """Make the case's topics and register their schemas."""
    ids = _Ids()
    for topic in in_java_order(_all(case, settings, partitions)):
        driver.create_topic(Topic(topic.name, topic.partitions, topic.replicas))
        sides: tuple[tuple[Side, SchemaDef | None], ...] = (
            ("key", topic.key),
            ("value", topic.value),
        )
        for side, definition in sides:
            if definition is not None:
                references = tuple(
                    driver.refer(name, Schema(kind, text))
                    for name, kind, text in definition.references
                )
                schema = Schema(definition.kind, definition.text, references)
                driver.register(topic.name, side, schema, ids.of(schema, definition.id))


@dataclass
class _Ids:
    """The ids by which the case's statements know the schemas: counted, where none is given."""

    known: dict[Schema, int] = field(default_factory=dict)
    last: int = 0

    def of(self, schema: Schema, given: int | None) -> int:
        if given is not None:
            return given
        if schema not in self.known:
            self.last += 1
            self.known[schema] = self.last
        return self.known[schema]


def in_java_order(topics: Iterable[TopicDef]) -> list[TopicDef]:
    """The topics as a Java hash map gives them, the first of each name: ids are counted so."""
    first: dict[str, TopicDef] = {}
    for topic in topics:
        first.setdefault(topic.name, topic)
    size = _FIRST_TABLE
    while len(first) > size * 3 // 4:
        size *= 2
    return sorted(first.values(), key=lambda topic: _spread(topic.name) & (size - 1))


def _spread(text: str) -> int:
    """Java's hash of a string, as its hash maps use it."""
    code = 0
    data = text.encode("utf-16-be")
    for index in range(0, len(data), 2):
        code = (31 * code + int.from_bytes(data[index : index + 2], "big")) & 0xFFFFFFFF
    return code ^ (code >> 16)


def _all(case: QueryTestCase, settings: Settings, partitions: int) -> Iterator[TopicDef]:
    """Listed topics, those of CREATE statements with columns, those of inputs and outputs."""
    statements = parsed_quietly(case)
    declared = [
        definition
        for statement in statements
        if isinstance(statement, ast.CreateSource)
        and (definition := _declared(statement, settings)) is not None
    ]
    counts = {topic.name: topic.partitions for topic in declared if topic.partitions}
    for topic in case.topics:  # nothing compares a listed topic's partitions with the statement's
        yield replace(topic, partitions=counts.get(topic.name, topic.partitions))
    for topic in declared:
        yield replace(topic, partitions=topic.partitions or partitions)
    sinks = {s.name for s in statements if isinstance(s, ast.CreateAsSelect)}
    for step in case.steps:
        for record in step.inputs:
            if record.topic not in sinks:
                yield TopicDef(name=record.topic, partitions=partitions)


def parsed_quietly(case: QueryTestCase) -> list[ast.Statement]:
    """The statements that parse; errors come up when the case runs."""
    statements = []
    for raw in (
        raw for step in case.steps for statement in step.statements for raw in _raws(statement.sql)
    ):
        try:
            statements.append(parse_one(raw, variables=None).statement)
        except KsqlError:
            continue
    return statements


def _raws(sql: str) -> list[RawStatement]:
    try:
        return split(sql)
    except KsqlError:
        return []


def _declared(stmt: ast.CreateSource, settings: Settings) -> TopicDef | None:
    """A declared source's topic with the schemas that its columns give; 0 partitions: any."""
    try:
        options = With(stmt.properties, ddl=True)
        name, count = options.topic, options.number("PARTITIONS")
    except KsqlError:
        return None
    if not name or not (stmt.columns or count):
        return None
    key, value = _derived(stmt, options, settings)
    return TopicDef(name=name, partitions=count or 0, replicas=1, key=key, value=value)


def _derived(
    stmt: ast.CreateSource, options: With, settings: Settings
) -> tuple[SchemaDef | None, SchemaDef | None]:
    try:
        columns = Columns(columns_of(stmt.columns))
        key, value = configured_formats(options, settings, stmt.name, has_key=bool(columns.key))
        value = with_configured_wrap(value, len(columns.value), settings)
        return _side(key, columns.key, "key"), _side(value, columns.value, "value")
    except KsqlError:  # what is wrong with the statement comes up when it runs
        return None, None


def _side(format_: Format, columns: tuple[Column, ...], side: Side) -> SchemaDef | None:
    if not columns or not capabilities(format_.name).infers:
        return None
    validate(format_, columns, side)
    schema = schema_for(format_, columns, side)
    return SchemaDef(schema.kind, schema.text)
