"""The properties that are read while a statement is prepared or answered."""

from __future__ import annotations

from typing import Final

from ksql.base.properties.model import Property

_WAIT_MS: Final = 24 * 3_600_000

DEFAULTS: Final = (
    Property(
        name="ksql.persistence.default.format.key",
        kind="text",
        default="KAFKA",
        part_of="statement",
        doc="Key format where a statement names none.",
    ),
    Property(
        name="ksql.persistence.default.format.value",
        kind="text",
        default="",
        part_of="statement",
        doc="Value format where a statement names none.",
    ),
    Property(
        name="ksql.persistence.wrap.single.values",
        kind="text",
        default="",
        part_of="statement",
        doc="Default of WRAP_SINGLE_VALUE, `true` or `false`; if empty, the format's own.",
    ),
    Property(
        name="ksql.output.topic.name.prefix",
        kind="text",
        default="",
        part_of="statement",
        doc="Prefix of the names of topics that CREATE .. AS SELECT makes.",
    ),
    Property(
        name="ksql.create.topic.inherit.source.replicas.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Give a result's topic as many replicas as its source has.",
    ),
    Property(
        name="ksql.new.query.planner.enabled",
        kind="bool",
        default="false",
        part_of="statement",
        doc="Put the key columns of a result where SELECT names them.",
    ),
    Property(
        name="ksql.explain.generated.code",
        kind="bool",
        default="false",
        part_of="statement",
        doc="Show in EXPLAIN the Python code that is generated for the query.",
    ),
    Property(
        name="ksql.assert.topic.default.timeout.ms",
        kind="int",
        default="1000",
        high=_WAIT_MS,
        part_of="statement",
        doc="How long ASSERT TOPIC waits where it names no timeout.",
    ),
    Property(
        name="ksql.assert.schema.default.timeout.ms",
        kind="int",
        default="1000",
        high=_WAIT_MS,
        part_of="statement",
        doc="How long ASSERT SCHEMA waits where it names no timeout.",
    ),
)

ALLOWED: Final = (
    Property(
        name="ksql.create.or.replace.enabled",
        kind="bool",
        default="true",
        doc="Allow CREATE OR REPLACE.",
    ),
    Property(
        name="ksql.source.table.materialization.enabled",
        kind="bool",
        default="true",
        doc="Allow CREATE SOURCE STREAM and CREATE SOURCE TABLE.",
    ),
    Property(
        name="ksql.insert.into.values.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow INSERT VALUES.",
    ),
    Property(
        name="ksql.pull.queries.enable",
        kind="bool",
        default="true",
        doc="Allow pull queries.",
    ),
    Property(
        name="ksql.query.pull.table.scan.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow pull queries without a key.",
    ),
    Property(
        name="ksql.query.pull.range.scan.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow pull queries over a range of the key where scans of the table are not allowed.",
    ),
    Property(
        name="ksql.query.pull.stream.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow pull queries over streams.",
    ),
    Property(
        name="ksql.query.pull.limit.clause.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow LIMIT in pull queries.",
    ),
    Property(
        name="ksql.query.push.v2.enabled",
        kind="bool",
        default="false",
        part_of="statement",
        doc="Call push queries over one query's result scalable, and leave out "
        "their records without a key.",
    ),
    Property(
        name="ksql.variable.substitution.enable",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Replace `${name}` in statements by the variable's value.",
    ),
    Property(
        name="ksql.suppress.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow EMIT FINAL.",
        effect=False,
    ),
    Property(
        name="ksql.headers.columns.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow columns of record headers.",
    ),
    Property(
        name="ksql.lambdas.enabled",
        kind="bool",
        default="true",
        part_of="statement",
        doc="Allow lambda functions.",
    ),
)
