"""The state directory of a small service with the records of its topics, as files.

``python -m tests.stored.directory DIRECTORY`` makes one with the code of today: it starts a service
with its own broker and Spark (a JVM each), runs ``SCRIPT``, feeds ``BEFORE`` and stops in order. A
directory that is there already is never written over: a released one is frozen.

``restore`` gives the topics back to another broker, every record at its old offset: a gap behind a
record was the marker of its transaction, so it is written in one.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ksql.app.service import KsqlService
from ksql.control.statements.execute import run
from ksql.core.config import Settings
from tests.stored.lines import read_lines, write_lines

SERVICE_ID: Final = "kept_"
PROPERTIES: Final = {
    "ksql.service.id": SERVICE_ID,
    "ksql.schema.registry.topic": f"_schemas_{SERVICE_ID}",
}
SESSION: Final = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": "0",
    "ksql.query.shuffle.partitions": "1",
}
SCRIPT: Final = """
CREATE TYPE KEPT_PLACE AS STRUCT<CITY STRING, ZIP INT>;
CREATE STREAM KEPT_CLICKS (WHO STRING KEY, N INT, PLACE KEPT_PLACE)
  WITH (KAFKA_TOPIC='kept_clicks', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE KEPT_NAMES (WHO STRING PRIMARY KEY, NAME STRING)
  WITH (KAFKA_TOPIC='kept_names', PARTITIONS=1, VALUE_FORMAT='JSON');
CREATE TABLE KEPT_COUNTS AS
  SELECT WHO, COUNT(*) AS C, SUM(N) AS TOTAL, LATEST_BY_OFFSET(PLACE->CITY, 2) AS CITIES
  FROM KEPT_CLICKS GROUP BY WHO;
CREATE TABLE KEPT_HOURS AS SELECT WHO, COUNT(*) AS C FROM KEPT_CLICKS
  WINDOW TUMBLING (SIZE 1 HOUR, RETENTION 36500 DAYS) GROUP BY WHO;
CREATE STREAM KEPT_NAMED AS SELECT C.WHO, C.N, M.NAME FROM KEPT_CLICKS C
  LEFT JOIN KEPT_NAMES M ON C.WHO = M.WHO;
"""
BEGIN_MS: Final = 1_700_000_000_000
NAMES: Final = [("ann", {"NAME": "Ann"}), ("bob", {"NAME": "Bob"}), ("ann", {"NAME": "Anna"})]
BEFORE: Final = [
    (who, {"N": n, "PLACE": {"CITY": f"c{n}", "ZIP": n}})
    for n, who in enumerate(["ann", "bob", "ann", "cyd", "ann", "bob"], 1)
]
_LEFT: Final = (
    "service.lock", "lease.json", "registry.port", "ledger.db*", "broker", "spark", "logs",
    "LOG", "LOCK", "OPTIONS-*", "*.log",
)  # fmt: skip
"""What a start makes anew, what another service brings, and what RocksDB writes for people."""


class Record(NamedTuple):
    """A record of a topic's only partition; ``size`` is how many offsets it takes up."""

    topic: str
    offset: int
    size: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def write(bootstrap: str, topic: str, records: list[tuple[str, Any]], begin_ms: int) -> None:
    """Write records that are a minute apart."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number, (key, value) in enumerate(records):
        producer.produce(topic, json.dumps(value), key, 0, timestamp=begin_ms + 60_000 * number)
    assert producer.flush(60) == 0


def make(target: Path) -> None:
    """Make the directory.

    Raises: FileExistsError.
    """
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "state"
        service = KsqlService(Settings({**PROPERTIES, "ksql.state.dir": str(root)}))
        service.start()
        try:
            run(SCRIPT, service.node.services, service.node.settings, SESSION, {})
            bootstrap = service.node.kafka.bootstrap
            write(bootstrap, "kept_names", NAMES, BEGIN_MS - 3_600_000)
            _await(service, "KEPT_NAMED", "kept_names", len(NAMES))
            write(bootstrap, "kept_clicks", BEFORE, BEGIN_MS)
            for sink in ("KEPT_COUNTS", "KEPT_HOURS", "KEPT_NAMED"):
                _await(service, sink, "kept_clicks", len(BEFORE))
            records = list(_records(bootstrap))
        finally:
            service.stop()
        shutil.copytree(root, target / "state", ignore=shutil.ignore_patterns(*_LEFT))
    write_lines(target / "topics.jsonl", map(_plain, records))


def _await(service: KsqlService, sink: str, topic: str, end: int) -> None:
    queries = service.node.engine.catalog.queries.values()
    version = next(query.version for query in queries if query.sink == sink)
    assert service.node.runner.running[version].await_idle({topic: {0: end}}, 120), version


def _records(bootstrap: str) -> Iterator[Record]:
    config = {"bootstrap.servers": bootstrap, "group.id": "kept", "enable.partition.eof": True}
    consumer = Consumer({**config, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    for topic in sorted(consumer.list_topics(timeout=30).topics):
        if topic.startswith("__") or topic.endswith("_server_claims"):
            continue
        consumer.assign([TopicPartition(topic, 0, 0)])
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
        entries: list[Any] = []
        while (message := consumer.poll(60)) is not None and message.error() is None:
            entries.append(message)
        ends = [*(message.offset() for message in entries[1:]), end][: len(entries)]
        for message, behind in zip(entries, ends, strict=True):
            _, timestamp = message.timestamp()
            at = message.offset()
            yield Record(topic, at, behind - at, message.key(), message.value(), timestamp)
    consumer.close()


def _plain(record: Record) -> dict[str, Any]:
    return {**record._asdict(), "key": _text(record.key), "value": _text(record.value)}


def _text(data: bytes | None) -> Any:
    """Text as it is; other bytes as base64, in a list to tell them apart."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return [base64.b64encode(data or b"").decode()]


def _bytes(text: Any) -> bytes | None:
    if isinstance(text, list):
        return base64.b64decode(text[0])
    return None if text is None else str(text).encode()


def stored_records(directory: Path) -> list[Record]:
    """The records of the directory's topics."""
    return [
        Record(**{**line, "key": _bytes(line["key"]), "value": _bytes(line["value"])})
        for line in read_lines(directory / "topics.jsonl")
    ]


def restore(directory: Path, bootstrap: str) -> None:
    """Make the topics anew, each record at its offset."""
    records = stored_records(directory)
    names = sorted({record.topic for record in records})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    futures = admin.create_topics([NewTopic(name, 1, 1, config=_config(name)) for name in names])
    for each in futures.values():
        each.result(60)
    for name in names:
        _fill(bootstrap, [record for record in records if record.topic == name])


def _config(topic: str) -> dict[str, str]:
    policy = "compact" if topic.startswith("_schemas") else "delete"
    return {"retention.ms": "-1", "cleanup.policy": policy}


def _fill(bootstrap: str, records: list[Record]) -> None:
    topic = records[0].topic
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"restore-{topic}"})
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.init_transactions(60)
    for record in records:
        writer = plain if record.size == 1 else producer
        if record.size > 1:
            assert record.size == 2, record
            producer.begin_transaction()
        landed: list[int] = []
        writer.produce(
            topic,
            record.value,
            record.key,
            0,
            timestamp=record.timestamp,
            on_delivery=lambda _, message, landed=landed: landed.append(message.offset()),
        )
        assert writer.flush(60) == 0
        if record.size > 1:
            producer.commit_transaction(60)
        assert landed == [record.offset], (topic, landed, record.offset)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
