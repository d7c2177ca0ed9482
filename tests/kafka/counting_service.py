"""A service that counts, on a directory and a topic of its own."""

from __future__ import annotations

import time

from tests.kafka.records import create_topic, produce, read_all, unique
from tests.kafka.servers import EARLIEST, hosted
from tests.waits import await_true


class Scene:
    """A service that counts what is in a topic of its own."""

    def __init__(self, bootstrap, runtime, folder):
        self.bootstrap, self.runtime, self.folder = bootstrap, runtime, folder
        self.service_id = unique("identity") + "_"
        self.src, self.dst = unique("src").upper(), unique("dst").upper()
        self.sent = 0
        create_topic(bootstrap, self.src)

    def served(self, state="state", bootstrap=None, **properties):
        return hosted(
            bootstrap or self.bootstrap,
            self.runtime,
            self.folder / state,
            self.service_id,
            **properties,
        )

    def declare(self, http, properties=None):
        http.ksql(
            f"CREATE STREAM {self.src} (K STRING KEY, N INT) "
            f"WITH (KAFKA_TOPIC='{self.src}', VALUE_FORMAT='JSON');"
            f"CREATE TABLE {self.dst} AS SELECT K, COUNT(*) AS C FROM {self.src} GROUP BY K;",
            EARLIEST | (properties or {}),
        )

    def count(self):
        """One more record, and the count that it makes.

        A result has the time of its record. So an older one that a batch writes again, as one does
        after a stop before its commit or from a restored checkpoint, is not taken for it.
        """
        since_ms = int(time.time() * 1000)
        produce(self.bootstrap, self.src, [("k", {"N": self.sent})])
        self.sent += 1

        def counts():
            return [row for row in read_all(self.bootstrap, self.dst) if row.timestamp >= since_ms]

        return await_true("a count", counts)[-1].value["C"]

    def checkpoints(self, state="state"):
        return sorted(p.name for p in (self.folder / state / self.service_id / "queries").iterdir())

    @property
    def command_topic(self):
        return f"_confluent-ksql-{self.service_id}_command_topic"
