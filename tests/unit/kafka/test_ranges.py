"""Ranges of offsets, read from the client library's own mock of a broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition

from ksql.kafka import ranges
from ksql.kafka.ranges import READING, Range, RangeReader, ReadFailed, RecordsGone, range_reader
from ksql.kafka.settings import KafkaSettings

COUNT = 25_000


@pytest.fixture(scope="module")
def bootstrap():
    """A broker with two topics of one partition: many records, and a few of all kinds."""
    producer = Producer({"bootstrap.servers": "mock:1", "test.mock.num.brokers": 1, "log_level": 0})
    brokers = producer.list_topics(timeout=10).brokers.values()
    for n in range(COUNT):
        producer.produce("many", b"v%d" % n, partition=0, timestamp=n + 1)
    odd = [
        (b"k", b"v", [("h", b"x"), ("n", None), ("h", b"")]),
        (None, b"v", None),
        (b"k", None, None),
        (b"", b"", [("h", b"\xff\x00")]),
        (b"\xff", b"\x00", None),
    ]
    for n, (key, value, headers) in enumerate(odd):
        producer.produce("odd", value, key, partition=0, timestamp=100 - n, headers=headers or [])
    assert producer.flush(30) == 0
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del producer  # the broker goes with it


def config(bootstrap, **more):
    settings = KafkaSettings(bootstrap).consumer(**READING)
    return {name: str(value) for name, value in settings.items()} | more


@pytest.fixture(scope="module")
def reader(bootstrap):
    reader = RangeReader(config(bootstrap))
    yield reader
    reader.close()


def offsets(blocks):
    return [offset for block in blocks for offset in block.offsets]


@pytest.mark.parametrize(
    ("start", "end"), [(0, COUNT), (0, 1), (COUNT - 1, COUNT), (17, 18), (5_000, 17_003)]
)
def test_all_of_a_range_is_read_and_nothing_else(reader, start, end):
    blocks = list(reader.read(Range("many", 0, start, end), pytest.fail))
    assert offsets(blocks) == list(range(start, end))
    assert [time for block in blocks for time in block.timestamps] == [*range(start + 1, end + 1)]
    assert [value for block in blocks for value in block.values] == [
        b"v%d" % n for n in range(start, end)
    ]
    assert all(block.headers is None for block in blocks)


def test_a_range_of_nothing_asks_for_nothing(reader):
    assert list(reader.read(Range("no such topic", 0, 7, 7), pytest.fail)) == []


def test_records_have_all_that_was_written(reader):
    blocks = list(reader.read(Range("odd", 0, 0, 5), pytest.fail))
    assert [key for block in blocks for key in block.keys] == [b"k", None, b"k", b"", b"\xff"]
    assert [value for block in blocks for value in block.values] == [b"v", b"v", None, b"", b"\x00"]
    assert [time for block in blocks for time in block.timestamps] == [100, 99, 98, 97, 96]
    headers = [each for block in blocks for each in block.headers or [None] * len(block.keys)]
    assert headers == [
        [("h", b"x"), ("n", None), ("h", b"")],
        None,
        None,
        [("h", b"\xff\x00")],
        None,
    ]


def test_a_range_may_be_left_in_its_middle_and_read_again(reader):
    whole = Range("many", 0, 0, COUNT)
    some = next(reader.read(whole, pytest.fail))
    assert list(some.offsets) == list(range(len(some.offsets)))
    assert offsets(reader.read(Range("odd", 0, 1, 4), pytest.fail)) == [1, 2, 3]
    assert offsets(reader.read(whole, pytest.fail)) == list(range(COUNT))


@pytest.mark.parametrize("start", [COUNT + 5, COUNT - 2])
def test_a_log_that_ends_before_its_range_has_lost_records(reader, monkeypatch, start):
    monkeypatch.setattr(ranges, "_SHRUNK_S", 0.2)
    with pytest.raises(RecordsGone, match=r"may have been lost. Reason: Cannot fetch offset 2500."):
        list(reader.read(Range("many", 0, start, COUNT + 10), pytest.fail))


def test_lost_records_are_skipped_on_request(reader, monkeypatch):
    monkeypatch.setattr(ranges, "_SHRUNK_S", 0.2)
    notes: list[str] = []
    blocks = list(
        reader.read(Range("many", 0, COUNT - 2, COUNT + 10), notes.append, all_records=False)
    )
    assert offsets(blocks) == [COUNT - 2, COUNT - 1]
    assert notes == [
        f"the records of many-0 from offset {COUNT} to {COUNT + 10} are gone: "
        f"the broker has the offsets from 0 to {COUNT}"
    ]


def test_a_broker_that_does_not_answer_is_waited_for_and_then_an_error(monkeypatch):
    monkeypatch.setattr(ranges, "_PATIENCE_S", 0.3)
    monkeypatch.setattr(ranges, "_POLL_S", 0.1)
    monkeypatch.setattr(ranges, "_ASK_S", 0.1)
    away = RangeReader(config("127.0.0.1:1"))
    with pytest.raises(ReadFailed, match=r"t-3 cannot be read at offset 4: .*onnect"):
        list(away.read(Range("t", 3, 4, 9), pytest.fail))
    away.close()


def test_time_that_the_reader_of_blocks_takes_is_no_idle_time(bootstrap):
    now = [0.0]
    reader = RangeReader(config(bootstrap), clock=lambda: now[0])
    offsets: list[int] = []
    for block in reader.read(Range("many", 0, 0, COUNT), pytest.fail):
        offsets += block.offsets
        now[0] += 1_000.0
    assert offsets == list(range(COUNT))
    reader.close()


def message(offset, error=None, partition=0):
    """What the client hands over: a record, or the error of that number."""
    problem = None if error is None else KafkaError(error)
    return Message(topic="t", partition=partition, offset=offset, value=b"v", error=problem)


class Consumer:
    """Hands over what a test has thought of, in portions; ``ends`` are what it says of the log."""

    def __init__(self, portions, ends=(0, 100)):
        self.portions, self.ends, self.assigned = list(portions), ends, []
        self.polls = 0

    def assign(self, places: list[TopicPartition]):
        self.assigned.append(places[0].offset)

    def unassign(self):
        self.assigned.append(None)

    def poll(self, _timeout):
        self.now = self.portions.pop(0)
        return self.now.pop(0) if self.now else None

    def consume(self, _most, _timeout):
        return self.now

    def close(self):
        """Nothing is open."""

    def list_topics(self, *_):
        self.polls += not self.assigned

    def get_watermark_offsets(self, *_):
        return self.ends


class Scripted:
    """Makes readers whose consumer hands over these portions; ``consumer`` is the last one's."""

    def __init__(self, bootstrap, monkeypatch):
        self._bootstrap = bootstrap
        monkeypatch.setattr(ranges, "_PAUSE_S", 0.0)
        monkeypatch.setattr(ranges, "Consumer", lambda _config, logger: self.consumer)

    def __call__(self, *portions, ends=(0, 100)):
        self.consumer = Consumer(portions, ends)
        return RangeReader(config(self._bootstrap))


@pytest.fixture
def scripted(bootstrap, monkeypatch):
    return Scripted(bootstrap, monkeypatch)


def read(reader, range_, note=pytest.fail, *, all_records=True):
    """The offsets of each block."""
    return [list(block.offsets) for block in reader.read(range_, note, all_records=all_records)]


EOF = KafkaError._PARTITION_EOF
RESET = KafkaError._AUTO_OFFSET_RESET


def test_a_range_ends_where_the_log_continues_behind_it(scripted):
    """Its last offsets are those of control records, or were compacted away."""
    reader = scripted([message(1), message(2), message(9)])
    assert read(reader, Range("t", 0, 1, 5)) == [[1, 2]]
    assert scripted.consumer.assigned == [1, None]


def test_the_client_connects_before_its_first_range_only(scripted):
    reader = scripted([message(1)], [message(2)])
    assert scripted.consumer.polls == 0
    for start in (1, 2):
        assert read(reader, Range("t", 0, start, start + 1)) == [[start]]
        assert scripted.consumer.polls == 1
        scripted.consumer.assigned.clear()


def test_a_range_ends_where_the_log_ends(scripted):
    reader = scripted([message(1), message(2)], [message(5, EOF)])
    assert read(reader, Range("t", 0, 1, 5)) == [[1, 2]]


def test_a_log_that_ends_early_for_a_moment_continues(scripted):
    reader = scripted([message(1), message(2, EOF)], [], [message(2), message(3), message(4)])
    assert read(reader, Range("t", 0, 1, 5)) == [[1], [2, 3, 4]]


def test_rest_of_another_range_is_not_read(scripted):
    reader = scripted(
        [message(1, partition=1), message(0), message(1), message(2, EOF, 1)], [message(2)]
    )
    assert read(reader, Range("t", 0, 1, 3)) == [[1], [2]]


def test_a_hiccup_of_a_broker_is_waited_out(scripted):
    hiccup = message(0, KafkaError.NOT_LEADER_FOR_PARTITION)
    new = message(0, KafkaError._UNKNOWN_PARTITION)
    reader = scripted([hiccup], [new], [message(0)])
    assert read(reader, Range("t", 0, 0, 1)) == [[0]]


def test_a_record_that_came_damaged_is_not_left_out(scripted):
    reader = scripted([message(0), message(1, KafkaError._BAD_MSG), message(2)])
    with pytest.raises(ReadFailed, match="t-0 cannot be read at offset 1"):
        read(reader, Range("t", 0, 0, 3))
    assert scripted.consumer.assigned[-1] is None


def test_offsets_that_are_gone_are_an_error_or_left_out(scripted):
    range_ = Range("t", 0, 3, 9)
    with pytest.raises(RecordsGone, match=r"fetch offset 3 of t-0: the broker has .* 7 to 100"):
        read(scripted([message(3, RESET)], ends=(7, 100)), range_)
    notes: list[str] = []
    reader = scripted([message(3, RESET)], [message(7), message(8)], ends=(7, 100))
    assert read(reader, range_, notes.append, all_records=False) == [[7, 8]]
    assert scripted.consumer.assigned == [3, 7, None]
    assert notes == [
        "the records of t-0 from offset 3 to 7 are gone: the broker has the offsets from 7 to 100"
    ]


def test_a_whole_range_may_be_gone(scripted):
    notes: list[str] = []
    reader = scripted([message(3, RESET)], ends=(50, 100))
    assert read(reader, Range("t", 0, 3, 9), notes.append, all_records=False) == []
    assert len(notes) == 1


def test_an_offset_that_was_refused_and_is_there_is_requested_again(scripted):
    reader = scripted([message(3, RESET)], [message(3)])
    assert read(reader, Range("t", 0, 3, 4)) == [[3]]
    assert scripted.consumer.assigned == [3, 3, None]


def test_a_process_has_few_readers_and_one_for_each_configuration(bootstrap):
    configs = [tuple(sorted(config(bootstrap, **{"client.id": f"c{n}"}).items())) for n in range(6)]
    first = range_reader(configs[0])
    assert range_reader(configs[0]) is first
    others = [range_reader(each) for each in configs[1:]]
    with pytest.raises(RuntimeError, match="closed"):
        list(first.read(Range("odd", 0, 0, 1), pytest.fail))
    assert offsets(others[-1].read(Range("odd", 0, 0, 1), pytest.fail)) == [0]
    assert range_reader(configs[0]) is not first


def test_headers_that_the_client_cannot_read_are_requested_once_and_left_out(monkeypatch):
    """Its second answer has a hole that ends the process when it is looked at."""

    class Record(Message):
        headers_read = False

        def headers(self):
            assert not self.headers_read
            self.headers_read = True
            if self.offset() in (1, 2, 4):
                raise SystemError("returned a result with an exception set")
            return [("h", str(self.offset()).encode())]

    got = [Record(topic="t", partition=3, offset=n) for n in range(5)]
    monkeypatch.setattr(ranges, "Message", Record)
    noted: list[str] = []
    decoded = ranges._headers(got, noted.append)
    assert decoded == [[("h", b"0")], None, None, [("h", b"3")], None]
    assert noted == [
        f"the headers of t-3, offset {n} are left out: a name is not UTF-8" for n in (1, 2, 4)
    ]
