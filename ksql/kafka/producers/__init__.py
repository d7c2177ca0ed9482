"""Writes records to Kafka: for the service, for many threads, for Spark's workers."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.kafka.producers.limits import *
    from ksql.kafka.producers.record_writer import *
    from ksql.kafka.producers.sender import *
    from ksql.kafka.producers.shared_sender import Delivered, DeliveryFuture, SharedSender
    from ksql.kafka.producers.task_transactions import TaskTransactions, begin_batch, keep
    from ksql.kafka.producers.worker_producer import (
        LARGER,
        DeliveryFailed,
        RecordRefused,
        WorkerProducer,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "limits": "BATCH_BYTES NO_LIMITS TopicLimits fitting",
            "record_writer": "CommitInDoubt hashes_as_java",
            "sender": "Sender TransactionalSender",
            "shared_sender": "Delivered DeliveryFuture SharedSender",
            "task_transactions": "TaskTransactions begin_batch keep",
            "worker_producer": "DeliveryFailed LARGER RecordRefused WorkerProducer",
        },
    )
