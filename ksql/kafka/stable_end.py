"""The end of a partition after the marks of all transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ksql.core.errors import ServerError

if TYPE_CHECKING:
    from ksql.kafka.admin import Admin, Partition

_SETTLE_S: Final = 0.005


class OpenTransaction(ServerError):
    """A transaction that neither commits nor aborts hides what comes after it."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"a transaction on the topic {topic} stays open",
            hint="Its writer may hang; Kafka aborts it after its transaction.timeout.ms.",
        )


def settled_end(admin: Admin, partition: Partition, timeout_s: float) -> int:
    """Return the partition's end, once the markers of all transactions are there.

    The broker writes them after it has answered; until then the records are not readable, and the
    next offset is not known.

    Raises: OpenTransaction when one stays open for longer.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        readable = admin.end_offsets([partition[0]])[partition]
        if readable == admin.end_offsets([partition[0]], committed=False)[partition]:
            return readable
        if time.monotonic() > deadline:
            raise OpenTransaction(partition[0])
        time.sleep(_SETTLE_S)
