"""The answers of statements: one frozen class per kind of response entity.

Each class names its ``@type``; field names are snake case here and camel case on the wire. A field
whose metadata has ``omit_none`` is left out when it is None. Keys of mappings stay as they are.

Source: ksqlDB developer guide, REST API, endpoint /ksql.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from ksql.control.engine.ports import CommandStatus
from ksql.control.statements.upgradereport import UpgradeDescription, UpgradeInfo, UpgradeReport
from ksql.core.types import Column, Role, SqlType

OMIT_NONE: Mapping[str, Any] = {"omit_none": True}

QueryType = Literal["PERSISTENT", "PUSH", "CREATE_SOURCE"]
SourceType = Literal["STREAM", "TABLE"]


@dataclass(frozen=True, slots=True)
class EntityWarning:
    """Something worth saying about a statement that was executed."""

    message: str


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One column: KEY, HEADER, or (None) a value."""

    name: str
    schema: SqlType
    type: Literal["KEY", "HEADER"] | None = field(default=None, metadata=OMIT_NONE)
    header_key: str | None = field(default=None, metadata=OMIT_NONE)

    @classmethod
    def of(cls, column: Column) -> FieldInfo:
        """Return the wire's view of a column."""
        kinds: dict[Role, Literal["KEY", "HEADER"]] = {Role.KEY: "KEY", Role.HEADERS: "HEADER"}
        return cls(column.name, column.type, kinds.get(column.role), column.header_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyInfo:
    """One configuration property and where its value comes from."""

    name: str
    scope: str
    value: str | None
    editable: bool = True
    level: str = "SERVER"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """One line of SHOW STREAMS or SHOW TABLES."""

    type: SourceType
    name: str
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryInfo:
    """One line of SHOW QUERIES; ``warnings`` are the troubles of a query that runs."""

    query_string: str
    sinks: tuple[str, ...]
    sink_kafka_topics: tuple[str, ...]
    id: str
    status_count: Mapping[str, int]
    query_type: QueryType
    state: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """How far a query has read one partition."""

    partition: int
    log_start_offset: int
    log_end_offset: int
    consumer_offset: int


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """How far a query has read one topic."""

    kafka_topic: str
    offsets: tuple[PartitionOffset, ...]


@dataclass(frozen=True, slots=True)
class QueryOffsetSummary:
    """How far a query has read its topics."""

    group_id: str
    topic_summaries: tuple[TopicOffsets, ...]


@dataclass(frozen=True, slots=True)
class HostStatistic:
    """One statistic of a source, as one server counts it."""

    host: str
    name: str
    value: float
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDescription:
    """All that is known about a stream or table."""

    name: str
    type: SourceType
    fields: tuple[FieldInfo, ...]
    key_format: str
    value_format: str
    topic: str
    window_type: str | None = None
    read_queries: tuple[QueryInfo, ...] = ()
    write_queries: tuple[QueryInfo, ...] = ()
    timestamp: str = ""
    statistics: str = ""
    error_stats: str = ""
    extended: bool = False
    partitions: int = 0
    replication: int = 0
    statement: str = ""
    query_offset_summaries: tuple[QueryOffsetSummary, ...] = ()
    source_constraints: tuple[str, ...] = ()
    cluster_statistics: tuple[HostStatistic, ...] = ()
    cluster_error_stats: tuple[HostStatistic, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryErrorInfo:
    """One error of a running query, and whose doing it is."""

    timestamp: int
    error_message: str
    type: Literal["USER", "SYSTEM", "UNKNOWN"]


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition by its topic's name and its number."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TaskTopicOffset:
    """How far a task has read one of its partitions."""

    topic_partition_entity: TopicPartition
    end_offset: int
    committed_offset: int


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """One task of a running query."""

    task_id: str
    topic_offsets: tuple[TaskTopicOffset, ...]
    time_current_idling_started: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDescription:
    """A query, its plan and how it does; ``upgrade`` is its last one, or that of a dry run.

    ``plan_offset`` is the offset of the command that gave it its plan; None if it does not run.
    """

    id: str
    statement_text: str
    fields: tuple[FieldInfo, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    topology: str
    execution_plan: str
    window_type: str | None = None
    overridden_properties: Mapping[str, str] = field(default_factory=dict)
    ksql_host_query_status: Mapping[str, str] = field(default_factory=dict)
    query_type: QueryType = "PERSISTENT"
    query_errors: tuple[QueryErrorInfo, ...] = ()
    tasks_metadata: tuple[TaskMetadata, ...] = ()
    consumer_group_id: str | None = None
    state: str | None = None
    upgrade: UpgradeReport | None = field(default=None, metadata=OMIT_NONE)
    plan_offset: int | None = field(default=None, metadata=OMIT_NONE)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic; ``replica_info`` holds the number of replicas of each partition."""

    name: str
    replica_info: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicInfoExtended:
    """One topic and who consumes it."""

    name: str
    replica_info: tuple[int, ...]
    consumer_count: int
    consumer_group_count: int


@dataclass(frozen=True, slots=True)
class ArgumentInfo:
    """One argument of a function."""

    name: str
    type: str
    description: str = ""
    is_variadic: bool = False


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """One overload of a function."""

    arguments: tuple[ArgumentInfo, ...]
    return_type: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class FunctionName:
    """One line of SHOW FUNCTIONS."""

    name: str
    type: Literal["SCALAR", "AGGREGATE", "TABLE"]
    category: str = ""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the session."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Entity:
    """The fields of every answer: the statement's text and warnings."""

    type_name: ClassVar[str]

    statement_text: str
    warnings: tuple[EntityWarning, ...] = ()


def warned(entity: Entity, message: str) -> Entity:
    """Return the answer with one more warning."""
    return replace(entity, warnings=(*entity.warnings, EntityWarning(message)))


@dataclass(frozen=True, kw_only=True)
class CurrentStatus(Entity):
    """The answer to a distributed statement; ``upgrade`` when it replaced a running query."""

    type_name = "currentStatus"
    command_id: str  # type/entity/action
    command_status: CommandStatus
    command_sequence_number: int = -1
    upgrade: UpgradeReport | None = field(default=None, metadata=OMIT_NONE)


@dataclass(frozen=True, kw_only=True)
class WarningEntity(Entity):
    """A statement that had nothing to do: IF NOT EXISTS, UNDEFINE of an unknown name."""

    type_name = "warning_entity"
    message: str


@dataclass(frozen=True, kw_only=True)
class Properties(Entity):
    """SHOW PROPERTIES."""

    type_name = "properties"
    properties: tuple[PropertyInfo, ...]
    overwritten_properties: tuple[str, ...] = ()
    default_properties: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Streams(Entity):
    """SHOW STREAMS."""

    type_name = "streams"
    streams: tuple[SourceInfo, ...]


@dataclass(frozen=True, kw_only=True)
class Tables(Entity):
    """SHOW TABLES."""

    type_name = "tables"
    tables: tuple[SourceInfo, ...]


@dataclass(frozen=True, kw_only=True)
class SourceDescriptions(Entity):
    """SHOW STREAMS EXTENDED, DESCRIBE STREAMS and their like."""

    type_name = "source_descriptions"
    source_descriptions: tuple[SourceDescription, ...]


@dataclass(frozen=True, kw_only=True)
class SourceDescriptionEntity(Entity):
    """DESCRIBE of one source."""

    type_name = "sourceDescription"
    source_description: SourceDescription


@dataclass(frozen=True, kw_only=True)
class Queries(Entity):
    """SHOW QUERIES."""

    type_name = "queries"
    queries: tuple[QueryInfo, ...]


@dataclass(frozen=True, kw_only=True)
class Upgrades(Entity):
    """SHOW UPGRADES, the newest first."""

    type_name = "upgrades"
    upgrades: tuple[UpgradeInfo, ...]


@dataclass(frozen=True, kw_only=True)
class UpgradeDescriptionEntity(Entity):
    """DESCRIBE UPGRADE."""

    type_name = "upgradeDescription"
    upgrade_description: UpgradeDescription


@dataclass(frozen=True, kw_only=True)
class QueryDescriptions(Entity):
    """SHOW QUERIES EXTENDED."""

    type_name = "query_descriptions"
    query_descriptions: tuple[QueryDescription, ...]


@dataclass(frozen=True, kw_only=True)
class QueryDescriptionEntity(Entity):
    """EXPLAIN."""

    type_name = "queryDescription"
    query_description: QueryDescription


@dataclass(frozen=True, kw_only=True)
class TopicList(Entity):
    """SHOW TOPICS."""

    type_name = "kafka_topics"
    topics: tuple[TopicInfo, ...]


@dataclass(frozen=True, kw_only=True)
class TopicListExtended(Entity):
    """SHOW TOPICS EXTENDED."""

    type_name = "kafka_topics_extended"
    topics: tuple[TopicInfoExtended, ...]


@dataclass(frozen=True, kw_only=True)
class DescribeFunction(Entity):
    """DESCRIBE FUNCTION."""

    type_name = "describe_function"
    name: str
    type: Literal["SCALAR", "AGGREGATE", "TABLE"]
    functions: tuple[FunctionInfo, ...]
    description: str = ""
    author: str = ""
    version: str = ""
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class FunctionNames(Entity):
    """SHOW FUNCTIONS."""

    type_name = "function_names"
    functions: tuple[FunctionName, ...]


@dataclass(frozen=True, kw_only=True)
class TypeList(Entity):
    """SHOW TYPES."""

    type_name = "type_list"
    types: Mapping[str, SqlType]


@dataclass(frozen=True, kw_only=True)
class Variables(Entity):
    """SHOW VARIABLES."""

    type_name = "variables"
    variables: tuple[Variable, ...]


@dataclass(frozen=True, kw_only=True)
class TerminateQuery(Entity):
    """TERMINATE of a push query."""

    type_name = "terminate_query"
    query_id: str
    was_terminated: bool


@dataclass(frozen=True, kw_only=True)
class AssertTopic(Entity):
    """ASSERT [NOT EXISTS] TOPIC that came true."""

    type_name = "assert_topic"
    topic_name: str
    exists: bool


@dataclass(frozen=True, kw_only=True)
class AssertSchema(Entity):
    """ASSERT [NOT EXISTS] SCHEMA that came true."""

    type_name = "assert_schema"
    subject: str | None
    id: int | None
    exists: bool


@dataclass(frozen=True, kw_only=True)
class ConsistencyToken(Entity):
    """The token of the records of a request's INSERT VALUES, and of what a token before named.

    A request that is about tokens gets one, after the answers of its statements.
    """

    type_name = "consistencyToken"
    consistency_token: str
