"""The order in which Kafka Streams would have the groups of a query: by their keys' bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.analysis.bound import type_of
from ksql.formats.schemas import topic_serde
from ksql.formats.table import EncodeError
from ksql.processors.keys import unpack
from ksql.types.format import capabilities
from ksql.types.schema import Column, Role

if TYPE_CHECKING:
    from ksql.plan.nodes import Aggregate, Sink
    from ksql.processors.final import KeyOrder


def key_order(node: Aggregate, sink: Sink) -> KeyOrder:
    """Packed groups to their keys in the result's format.

    Where that needs a registered schema, or there is none, they are ordered as they are packed.
    """
    if sink.topic is None or not sink.key or capabilities(sink.key_format.name).infers:
        return bytes
    columns = tuple(Column(key.name, type_of(key.expr), Role.KEY) for key in node.group)
    encode = topic_serde(sink.key_format, columns, "key", sink.topic, None).encode_many

    def order(key: bytes) -> bytes:
        try:
            (found,) = encode([tuple(unpack(key))])
        except EncodeError:  # the sink reports it
            return key
        return found or b""

    return order
