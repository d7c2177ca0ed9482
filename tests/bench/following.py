"""What it costs to follow a table's topic into its stores: Kafka's client included.

A broker of its own has the records of a count, so many changes; a materializer fills stores of each
type from it, in a process of its own.
"""

from __future__ import annotations

import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.admin import Admin
from ksql.kafka.embedded.broker import EmbeddedBroker
from ksql.kafka.producers.sender import Sender
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from ksql.views.stores.store_types import StoreType
from ksql.views.view_maintainer import ViewMaintainer
from tests.tables import await_table
from tests.unit.world import World

PARTITIONS = 4
_PATIENCE_S = 300.0
_SQL = """
CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=4);
CREATE TABLE T WITH (KAFKA_TOPIC='{topic}') AS SELECT K, COUNT(*) N FROM S GROUP BY K;
"""


@dataclass(frozen=True)
class Followed:
    """Time until all was read, and CPU of a record in the process that read it."""

    seconds: float
    cpu_us: float


def written(bootstrap: str, topic: str, rows: int, keys: int) -> None:
    """Write the records of a table: values of 100 bytes, keys in no order."""
    kafka = KafkaSettings.from_properties({"bootstrap.servers": bootstrap})
    Admin(kafka).create(Topic(topic, PARTITIONS, 1, {}))
    blob, sender = Random(1).randbytes(1 << 16), Sender(kafka, **{"linger.ms": 50})
    for number in range(rows):
        key = b"key%010d" % (number * 7_919 % keys)
        at = number * 31 % (len(blob) - 100)
        sender.send(topic, key, blob[at : at + 100], timestamp=number + 1)
    sender.flush(_PATIENCE_S)
    sender.close()


def followed(kind: StoreType, bootstrap: str, topic: str, rows: int) -> Followed:
    """Fill stores of that type from the topic.

    Raises: TimeoutError.
    """
    world = World(_SQL.format(topic=topic))
    source = world.catalog.sources["T"].queryable()
    assert source is not None
    kafka = KafkaSettings.from_properties({"bootstrap.servers": bootstrap})
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        running = ViewMaintainer(
            kafka,
            place / "stores",
            Trash(place / "aside", lambda: 0),
            Settings({"default.dsl.store": kind}),
        )
        running.follow(world.catalog)
        cpu, start = _cpu_s(), time.perf_counter()
        running.start()
        table = await_table(running, source, {}, _PATIENCE_S)
        seconds, cpu = time.perf_counter() - start, _cpu_s() - cpu
        running.close()
        if table is None:
            raise TimeoutError(f"{running.missing(source)} records are still to be read")
    return Followed(seconds, cpu / rows * 1e6)


class Topics:
    """A broker with the topics of a table, for the length of a block."""

    def __init__(self, rows: int, few_keys: int) -> None:
        self._keys = {"every_key": rows, "few_keys": few_keys}
        self._rows = rows
        self._directory = tempfile.TemporaryDirectory()
        self._broker = EmbeddedBroker(Path(self._directory.name))

    def __enter__(self) -> dict[str, tuple[str, int]]:
        """Return the topics: the broker's address, and how many keys there are."""
        bootstrap = self._broker.start()
        for topic, keys in self._keys.items():
            written(bootstrap, topic, self._rows, keys)
        return {topic: (bootstrap, keys) for topic, keys in self._keys.items()}

    def __exit__(self, *_: object) -> None:
        """End the broker."""
        self._broker.stop()
        self._directory.cleanup()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
