"""Keys as a topic has them: by these bytes Kafka Streams orders groups and finds partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ksql.core import Row
from ksql.core.types import Column, Role, capabilities
from ksql.exec.operators.keys import pack, unpack
from ksql.formats import EncodeError, serde_for
from ksql.sql.binder import type_of

if TYPE_CHECKING:
    from ksql.core.types import Format
    from ksql.exec.operators.base import KeyOrder
    from ksql.formats import Registry
    from ksql.sql.plan import Aggregate, Sink


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """The first ``width`` values of keys as bytes.

    Without ``encode``, and of a key that the format cannot hold, those are the packed ones.
    """

    width: int
    encode: Callable[[Sequence[Row]], list[bytes | None]] | None

    def __call__(self, packed: bytes) -> bytes:
        (key,) = self.of([tuple(unpack(packed)[: self.width])])
        return key

    def of(self, rows: Sequence[Row]) -> list[bytes]:
        if self.encode is None:
            return list(map(pack, rows))
        try:
            return [key or b"" for key in self.encode(rows)]
        except EncodeError:  # the sink reports it
            return [pack(rows[0])] if len(rows) == 1 else [self.of([row])[0] for row in rows]


def key_bytes(
    format_: Format, columns: Sequence[Column], registry: Registry | None = None
) -> KeyBytes:
    """Return what gives the keys with those columns their bytes in a format.

    A format with registered schemas needs a ``registry``: without one its keys stay packed.

    Raises: StatementError for columns that the format cannot hold.
    """
    width = len(columns)
    if registry is None and capabilities(format_.name).infers:
        return KeyBytes(width, None)
    serde = serde_for(format_, tuple(columns), "key", registry, "key")
    return KeyBytes(width, serde.encode_many)


def key_order(node: Aggregate, sink: Sink) -> KeyOrder:
    """Return what turns packed groups into their keys in the result's format.

    Where that needs a registered schema, or there is none, they are ordered as they are packed.
    """
    if sink.topic is None or not sink.key:
        return bytes
    return key_bytes(sink.key_format, group_columns(node))


def group_columns(node: Aggregate) -> tuple[Column, ...]:
    """Return the columns of an aggregate's groups."""
    return tuple(Column(key.name, type_of(key.expr), Role.KEY) for key in node.group)
