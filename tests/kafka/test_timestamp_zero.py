from __future__ import annotations

import threading

import pytest

from ksql.core.records import OutRecord
from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
from ksql.kafka.admin import Admin
from ksql.kafka.errors import WriteFailed
from ksql.kafka.producers import timestamp_zero
from ksql.kafka.producers.sender import Sender
from ksql.kafka.producers.worker_producer import WorkerProducer
from ksql.kafka.reader import Reader
from ksql.kafka.settings import KafkaSettings
from ksql.sql.catalog.model import Topic
from tests.kafka.network_outage import broker_with_a_way

# kafka-python reads its schemas by a function that Python 3.11 and 3.12 advise against
pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def _closed():
    yield
    timestamp_zero.close()


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", b"v", None),
        (b"k", None, [("a", b"1"), ("b", b""), ("a", b"2")]),
        (None, b"v", []),
        (None, None, None),
    ],
)
def test_any_legal_record_can_be_written_at_timestamp_zero(broker, request, key, value, headers):
    kafka = KafkaSettings.from_properties({"bootstrap.servers": broker.bootstrap})
    topic = f"epoch-{abs(hash(request.node.name))}"
    Admin(kafka).create(Topic(topic, 1))
    sender = Sender(kafka)
    sender.send(topic, key, value, timestamp=0, headers=headers)
    sender.flush()
    with Reader(kafka) as reader:
        reader.assign_topics([topic])
        (record,) = [r for batch in reader.read_to_end() for r in batch]
    assert (record.key, record.value, record.timestamp) == (key, value, 0)
    assert list(record.headers or []) == (headers or [])


def test_a_header_without_value_is_empty_at_the_epoch(broker):
    kafka = KafkaSettings.from_properties({"bootstrap.servers": broker.bootstrap})
    Admin(kafka).create(Topic("epoch-header", 1))
    sender = Sender(kafka)
    sender.send("epoch-header", b"k", b"v", timestamp=0, headers=[("a", None)])
    with Reader(kafka) as reader:
        reader.assign_topics(["epoch-header"])
        (record,) = [r for batch in reader.read_to_end() for r in batch]
    assert list(record.headers or []) == [("a", b"")]


def test_too_large_record_is_reported_and_skipped(broker):
    kafka = KafkaSettings.from_properties({"bootstrap.servers": broker.bootstrap})
    Admin(kafka).create(Topic("epoch-large", 1, configs={"max.message.bytes": "2000"}))
    producer = WorkerProducer({k: str(v) for k, v in kafka.producer().items()})
    notes: list[str] = []
    records = [(None, b"x" * 5000, 0, None), (None, b"a", 0, None), (None, b"b", 1, None)]
    assert producer.send("epoch-large", records, notes.append) == 2
    producer.flush(notes.append)
    assert notes == ["Broker: Message size too large"]


def last_copies(records):
    """Leave out earlier copies: what is under way next to a refused record may be repeated."""
    return list(reversed(dict.fromkeys(reversed(records))))


def test_records_around_the_epoch_keep_their_order_and_lack_only_what_is_too_large(broker):
    kafka = KafkaSettings.from_properties({"bootstrap.servers": broker.bootstrap})
    Admin(kafka).create(Topic("epoch-order", 2, configs={"max.message.bytes": "20000"}))
    producer = WorkerProducer({k: str(v) for k, v in kafka.producer().items()})
    notes: list[str] = []
    large = {40, 41, 3000}
    sent = [
        (b"k%d" % (n % 7), b"%d" % n + b"x" * (30_000 * (n in large)), n % 10 and n, None)
        for n in range(1, 5000)
    ]
    assert producer.send("epoch-order", sent, notes.append) == len(sent) - len(large)
    producer.flush(notes.append)
    assert notes == ["Broker: Message size too large"] * 3
    with Reader(kafka) as reader:
        reader.assign_topics(["epoch-order"])
        records_read = [r for batch in reader.read_to_end() for r in batch]
    for key in {key for key, *_ in sent}:
        expected = [(v, t) for k, v, t, _ in sent if k == key and len(v) < 30_000]
        written = [(r.value, r.timestamp) for r in records_read if r.key == key]
        assert last_copies(written) == expected
    assert len({(r.key, r.partition) for r in records_read}) == 7


def far(one, other):
    """Whether they go to different partitions of four."""
    return len(set(partitions_of([one, other], 4))) == 2


def test_too_large_record_is_the_only_one_reported(broker):
    kafka = KafkaSettings.from_properties({"bootstrap.servers": broker.bootstrap})
    Admin(kafka).create(Topic("epoch-mixed", 4, configs={"max.message.bytes": "20000"}))
    values = [b"%d" % n + b"x" * 2000 for n in range(400)]
    values[200] = b"large" + b"x" * 30_000  # the client does not know the topic's limit
    first, second = b"k0", next(k for k in (b"k1", b"k2", b"k3", b"k4") if far(k, b"k0"))
    # many batches of one partition wait when the broker refuses the first one of another
    keys = [first] * 200 + [second] * 200
    records: list[OutRecord] = [(k, v, 0, None) for k, v in zip(keys, values, strict=True)]
    refused = timestamp_zero.send_from_epoch(kafka.producer(), "epoch-mixed", records)
    assert [
        n for n, each in enumerate(refused) if isinstance(each, timestamp_zero.EpochTooLarge)
    ] == [200]
    with Reader(kafka) as reader:
        reader.assign_topics(["epoch-mixed"])
        kept = {r.value for batch in reader.read_to_end() for r in batch}
    assert kept == set(values) - {values[200]}


@pytest.mark.proof
def test_records_failed_by_an_outage_are_not_written_later(tmp_path):
    with broker_with_a_way(tmp_path) as (bootstrap, by_the_way, way):
        Admin(KafkaSettings(bootstrap)).create(Topic("t", 4))
        config = KafkaSettings(by_the_way).producer(**{"delivery.timeout.ms": 2000})
        timestamp_zero.send_at_epoch(config, "t", None, b"before", None)
        way.cut()
        with pytest.raises(WriteFailed):  # more than a batch takes
            timestamp_zero.send_from_epoch(
                config, "t", [(b"%d" % n, b"lost" * 1000, 0, None) for n in range(200)]
            )
        assert not [t for t in threading.enumerate() if "producer" in t.name]
        way.mend()
        timestamp_zero.send_at_epoch(config, "t", None, b"after", None)
        with Reader(KafkaSettings(bootstrap)) as reader:
            reader.assign_topics(["t"])
            values = [r.value for batch in reader.read_to_end() for r in batch]
    assert len(values) == 2
    assert set(values) == {b"before", b"after"}
