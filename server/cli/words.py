"""The language's words, for completion and colours: the grammar's own, and lists of the rest.

The terminal knows no parser, so the grammar is read as text; a test compares all words with the
parser's.

Source: docs/sql/types.md#names.
"""

from __future__ import annotations

import re
from importlib import resources

_RULE = re.compile(r"^\??(\w+): *(.*(?:\n +\|.*)*)", re.M)
_COMMENT = re.compile(r"//.*")
_WORD = re.compile(r'"([A-Z]+)"')
_FIRST = re.compile(r'[\s(]*(?:"([A-Z]+)"|(\w+))')


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of a text, one by one."""
    return tuple(text.split())


def _grammar() -> dict[str, str]:
    folder = resources.files("grammar")
    texts = (
        folder.joinpath(f"{name}.lark").read_text("utf-8") for name in ("ksql", "query", "expr")
    )
    return dict(_RULE.findall(_COMMENT.sub("", "\n".join(texts))))


def _first_of(rule: str) -> set[str]:
    """Return the words that a text of this rule may start with."""
    words: set[str] = set()
    for word, inner in (
        match.groups() for match in map(_FIRST.match, _RULES[rule].split("|")) if match
    ):
        words |= {word} if word else _first_of(inner)
    return words


_RULES = _grammar()

KEYWORDS = frozenset(word for body in _RULES.values() for word in _WORD.findall(body))
"""The words that a rule of the grammar names."""

RESERVED = frozenset(
    words_in(
        """
    SELECT FROM WHERE WITHIN WINDOW GROUP BY HAVING LIMIT AS ALL DISTINCT AT OR AND IN NOT EXISTS
    BETWEEN LIKE IS NULL TRUE FALSE MILLISECOND YEARS MONTHS DAYS HOURS MINUTES SECONDS MILLISECONDS
    TUMBLING HOPPING SIZE ADVANCE RETENTION CASE WHEN THEN ELSE END JOIN FULL OUTER INNER LEFT RIGHT
    ON WITH VALUES CREATE TABLE TOPIC STREAM STREAMS INSERT DELETE INTO DESCRIBE EXTENDED PRINT CAST
    LIST TOPICS QUERY QUERIES TERMINATE PAUSE RESUME LOAD DROP TO RENAME SAMPLE EXPORT CATALOG
    PROPERTIES BEGINNING UNSET RUN SCRIPT DECIMAL CONNECTOR CONNECTORS NAMESPACE MATERIALIZED VIEW
    """
    )
)
"""The words that must be quoted to be a name."""

TYPES = words_in(
    """
    ARRAY BIGINT BOOLEAN BYTES DATE DECIMAL DOUBLE INT INTEGER MAP STRING STRUCT TIME TIMESTAMP
    VARCHAR
    """
)

FIRST = tuple(sorted(_first_of("statement") - {"RUN"}))
"""The words that a statement starts with; RUN SCRIPT is a command of the terminal."""

_SHOWN = (
    *("STREAMS", "TABLES", "QUERIES", "TOPICS", "ALL", "FUNCTIONS", "PROPERTIES", "TYPES"),
    *("VARIABLES", "CONNECTORS", "CONNECTOR", "SOURCE", "SINK", "UPGRADES"),
)
NEXT: dict[str, tuple[str, ...]] = {
    "SHOW": _SHOWN,
    "LIST": _SHOWN,
    "SHOW ALL": ("TOPICS",),
    "SHOW UPGRADES": ("FOR",),
    "LIST UPGRADES": ("FOR",),
    "ABORT": ("UPGRADE",),
    "ROLLBACK": ("UPGRADE",),
    "ABORT UPGRADE": ("OF",),
    "ROLLBACK UPGRADE": ("OF",),
    "CREATE": ("STREAM", "TABLE", "TYPE", "OR", "SOURCE", "SINK"),
    "CREATE OR": ("REPLACE",),
    "CREATE OR REPLACE": ("STREAM", "TABLE", "SOURCE", "QUERY"),
    "DROP": ("STREAM", "TABLE", "TYPE", "CONNECTOR"),
    "ALTER": ("STREAM", "TABLE", "SYSTEM"),
    "INSERT": ("INTO",),
    "DELETE": ("FROM",),
    "EMIT": ("CHANGES", "FINAL"),
    "GROUP": ("BY",),
    "PARTITION": ("BY",),
    "ORDER": ("BY",),
    "NULLS": ("FIRST", "LAST"),
    "LEFT": ("JOIN", "OUTER"),
    "RIGHT": ("JOIN", "OUTER"),
    "FULL": ("JOIN", "OUTER"),
    "INNER": ("JOIN",),
    "OUTER": ("JOIN",),
    "GRACE": ("PERIOD",),
    "PRIMARY": ("KEY",),
}
"""All that may follow these words; the longest that fits counts."""

CLAUSES = (
    *("FROM", "INNER", "LEFT", "RIGHT", "FULL", "JOIN", "WITHIN", "ON", "WINDOW", "WHERE"),
    *("GROUP", "PARTITION", "HAVING", "ORDER", "EMIT", "LIMIT", "OFFSET"),
)
"""The words that begin the clauses of a query, in their order."""

OPERANDS = ("ARRAY", "CASE", "CAST", "FALSE", "MAP", "NOT", "NULL", "STRUCT", "TRUE")
"""The words that an expression may start with."""

FORMATS = ("AVRO", "DELIMITED", "JSON", "JSON_SR", "KAFKA", "NONE", "PROTOBUF", "PROTOBUF_NOSR")

WITH_PROPERTIES = words_in(
    """
    CLEANUP_POLICY FORMAT KAFKA_TOPIC KEY_DELIMITER KEY_FORMAT KEY_PROTOBUF_NULLABLE_REPRESENTATION
    KEY_SCHEMA_FULL_NAME KEY_SCHEMA_ID PARTITIONS REPLICAS RETENTION_MS SOURCED_BY_CONNECTOR
    SOURCE_CONNECTOR STORE_TYPE TIMESTAMP TIMESTAMP_FORMAT VALUE_AVRO_SCHEMA_FULL_NAME
    VALUE_DELIMITER VALUE_FORMAT VALUE_PROTOBUF_NULLABLE_REPRESENTATION VALUE_SCHEMA_FULL_NAME
    VALUE_SCHEMA_ID WINDOW_SIZE WINDOW_TYPE WRAP_SINGLE_VALUE
    """
)
"""What WITH (..) of a stream or table may state."""
