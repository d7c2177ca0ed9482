"""How many records a query could not handle, counted from the processing log."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from ksql.topics.client import Reader
from ksql.topics.kafka_errors import OffsetsGone
from ksql.topics.processing_log import skipping_query

if TYPE_CHECKING:
    from ksql.topics.admin import Admin
    from ksql.topics.settings import KafkaSettings


class SkippedRecords:
    """Counts per query since this server began; the log is read on when somebody asks."""

    def __init__(self, kafka: KafkaSettings, admin: Admin, topic: str) -> None:
        self._kafka = kafka
        self._admin = admin
        self._topic = topic
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._positions = admin.end_offsets([topic]) if admin.exists(topic) else {}

    def count(self, query_id: str) -> int:
        """The query's records."""
        with self._lock:
            if self._positions and self._grown():
                self._read_on()
            return self._counts[query_id]

    def _grown(self) -> bool:
        return self._admin.end_offsets([self._topic]) != self._positions

    def _read_on(self) -> None:
        with Reader(self._kafka) as reader:
            reader.assign(self._positions)
            try:
                for batch in reader.read_to_end():
                    self._counts.update(skipping_query(record.value or b"") for record in batch)
            except OffsetsGone:  # the log's retention was faster
                reader.assign(self._admin.begin_offsets([self._topic]))
            self._positions = reader.positions
