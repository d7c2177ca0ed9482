"""The processing log: what happened to a record that could not be handled, as a record of its own.

Source: docs/operations.md#records-that-could-not-be-handled.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import orjson

from ksql.core import quote, string_literal
from ksql.core.types import Array, Column, Field, Struct, model

if TYPE_CHECKING:
    from ksql.core import BadRecord, Row
    from ksql.core.types import Side
    from ksql.formats import DecodeError, EncodeError

Message = Mapping[str, object]

STREAM: Final = "KSQL_PROCESSING_LOG"
SINK: Final = "sink"
"""The operator that hands records to Kafka."""

_CAUSE: Final = Field("CAUSE", Array(model.STRING))
_CAUSE_TOPIC: Final = (_CAUSE, Field("TOPIC", model.STRING))


def _texts(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, model.STRING) for name in names)


COLUMNS: Final = (
    Column("LOGGER", model.STRING),
    Column("LEVEL", model.STRING),
    Column("TIME", model.BIGINT),
    Column(
        "MESSAGE",
        Struct(
            (
                Field("TYPE", model.INTEGER),
                Field(
                    "DESERIALIZATIONERROR",
                    Struct(
                        (*_texts("TARGET", "ERRORMESSAGE", "RECORDB64"), _CAUSE, *_texts("TOPIC"))
                    ),
                ),
                Field(
                    "RECORDPROCESSINGERROR",
                    Struct((*_texts("ERRORMESSAGE", "RECORD"), _CAUSE)),
                ),
                Field("PRODUCTIONERROR", Struct(_texts("ERRORMESSAGE"))),
                Field(
                    "SERIALIZATIONERROR",
                    Struct((*_texts("TARGET", "ERRORMESSAGE", "RECORD"), *_CAUSE_TOPIC)),
                ),
                Field(
                    "KAFKASTREAMSTHREADERROR",
                    Struct((*_texts("ERRORMESSAGE", "THREADNAME"), _CAUSE)),
                ),
            )
        ),
    ),
)
"""The columns of the stream over the log; the JSON names match them in upper case."""

_KINDS: Final = (
    "deserializationError",
    "recordProcessingError",
    "productionError",
    "serializationError",
    "kafkaStreamsThreadError",
)
_PATH: Final = ", path: "
WARNING: Final = "WARN"
"""The level of an entry that left no record out."""
_THREAD_ERROR: Final = _KINDS.index("kafkaStreamsThreadError")


def topic_name(service_id: str, configured: str | None = None) -> str:
    """Return the log's topic.

    ``ksql.logging.processing.topic.name``, else made from the service id.
    """
    return configured or f"{service_id}ksql_processing_log"


def stream_statement(topic: str, stream: str = STREAM) -> str:
    """Return the statement that puts a stream over the log."""
    columns = ", ".join(map(str, COLUMNS))
    return (
        f"CREATE STREAM {quote(stream)} ({columns}) "
        f"WITH (KAFKA_TOPIC={string_literal(topic)}, VALUE_FORMAT='JSON', KEY_FORMAT='KAFKA');"
    )


def logger_name(query_id: str, *operators: str) -> str:
    """Return the logger of a step of a query, such as ``processing.CSAS_X_1.Project``."""
    return ".".join(("processing", query_id, *operators))


def entry(logger: str, time_ms: int, message: Message, level: str = "ERROR") -> bytes:
    """Return the bytes of one record of the log."""
    return orjson.dumps(
        {"level": level, "logger": logger, "time": time_ms, "message": message}, default=_printable
    )


def deserialization_error(bad: BadRecord, error: DecodeError, *, rows: bool = False) -> Message:
    """Return a record whose key or value did not decode; with its bytes only if ``rows``.

    Where a value of JSON is wrong, the causes name it from each of the values around it.
    """
    shown = base64.b64encode(bad.data).decode() if rows and bad.data is not None else None
    lenient = bad.format == "JSON"
    text = (
        f"Failed to deserialize {bad.target} from topic: {bad.topic}. {error.message}"
        if lenient
        else f"Error deserializing message from topic: {bad.topic}"
    )
    return _message(
        0,
        target=bad.target,
        errorMessage=text,
        recordB64=shown,
        cause=[error.message, *(_inner(error.message) if lenient else ()), *error.cause],
        topic=bad.topic,
    )


def _inner(message: str) -> list[str]:
    """Return the message as it was at each value on the way in, the innermost last.

    Example: behind ``.., path: $.A.B`` come ``.., path: .A.B``, ``.., path: .B`` and ``..``.
    """
    said, mark, path = message.rpartition(_PATH)
    if not mark:
        return []
    starts = [index for index, sign in enumerate(path) if sign in ".["]
    return [*(f"{said}{mark}{path[start:]}" for start in starts), said]


def record_processing_error(
    message: str, row: object = None, cause: tuple[str, ...] = (), *, rows: bool = False
) -> Message:
    """Return an expression or an operator that failed on a row; with the row only if ``rows``."""
    return _message(1, errorMessage=message, record=_shown(row, rows=rows), cause=list(cause))


def production_error(message: str) -> Message:
    """Return a record that Kafka did not take."""
    return _message(2, errorMessage=message)


def serialization_error(
    side: Side, error: EncodeError, topic: str, row: Row | None, *, rows: bool = False
) -> Message:
    """Return a row that the sink's format cannot write."""
    return _message(
        3,
        target=side,
        errorMessage=f"Error serializing message to topic: {topic}",
        record=_shown(row, rows=rows),
        cause=[error.message],
        topic=topic,
    )


def thread_error(message: str, thread: str, cause: tuple[str, ...] = ()) -> Message:
    """Return a query that ended with an error."""
    return _message(_THREAD_ERROR, errorMessage=message, threadName=thread, cause=list(cause))


def _message(type_: int, **fields: object) -> Message:
    """Put all kinds into every message, null but for the one that happened."""
    kinds: dict[str, object] = dict.fromkeys(_KINDS)
    kinds[_KINDS[type_]] = fields
    return {"type": type_, **kinds}


def _shown(row: object, *, rows: bool) -> str | None:
    if not rows or row is None:
        return None
    return orjson.dumps(row, default=_printable, option=orjson.OPT_NON_STR_KEYS).decode()


def _printable(value: object) -> object:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return orjson.Fragment(format(value, "f"))
        case _:
            return str(value)
