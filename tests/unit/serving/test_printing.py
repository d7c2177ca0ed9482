from __future__ import annotations

import struct
from decimal import Decimal

import pytest

from ksql.core.records import RawRecord
from ksql.core.types import model
from ksql.core.types.format import Format
from ksql.core.types.windowed import session_key, window_key
from ksql.formats.registered_reader import RegisteredReader
from ksql.formats.schema_registry import MemoryRegistry, framed
from ksql.formats.table import serde_for
from ksql.serving.printing import DetectedFormats, PrintQuery
from tests.unit.formats import columns as c

COLUMNS = (c.value("ID", model.INTEGER), c.value("D", model.Decimal(4, 2)))
START = 1562630400000


class Polled:
    """A feed of these records, batch by batch."""

    closed = False

    def __init__(self, *batches):
        self._batches = list(batches)

    @property
    def open(self):
        return bool(self._batches)

    def poll(self):
        return self._batches.pop(0)

    def close(self):
        self._batches = []
        self.closed = True

    def end(self):
        self._batches = []


@pytest.fixture
def registry():
    return MemoryRegistry()


def data(name, registry, row=(7, None)):
    return serde_for(Format(name), COLUMNS, "value", registry, f"{name}-value").encode(row)


def guess(samples, registry=None, *, keys=False):
    written = None if registry is None else RegisteredReader(registry)
    return " or ".join(DetectedFormats(written, keys=keys).fitting(samples))


def shown(sample, registry=None, *, keys=True):
    """As a record of a topic that has only this one."""
    guesses = DetectedFormats(None if registry is None else RegisteredReader(registry), keys=keys)
    return guesses.shown(sample, guesses.fitting([sample]))


def record(key, value, time=1):
    return RawRecord("t", 0, 0, time, key, value, [])


def lines(*batches, limit=None):
    query = PrintQuery(Polled(*batches), interval=1, limit=limit)
    return [line for batch in query.lines() for line in batch]


@pytest.mark.parametrize("name", ["AVRO", "PROTOBUF", "JSON_SR"])
def test_formats_with_schemas_are_known_by_their_ids(registry, name):
    sample = data(name, registry)
    assert guess([sample, None], registry).split(" or ")[0] == name
    longer = data(name, registry, (70_000_000, Decimal("1.50")))
    assert guess([longer]).startswith("AVRO or PROTOBUF or JSON_SR")


def test_several_of_them_are_mixed(registry):
    samples = [data("AVRO", registry), data("JSON_SR", registry)]
    assert guess(samples, registry) == "MIXED"


def test_an_unknown_id_is_just_bytes(registry):
    unknown = framed(9) + b"\xff\x02"
    assert guess([unknown], registry) == "AVRO or PROTOBUF or JSON_SR"


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([b'{"a":1}', b"[]"], "JSON or KAFKA_STRING"),
        ([b"text"], "KAFKA_STRING"),
        ([b"eight888"], "KAFKA_STRING"),
        ([b"12345678", b"\0\0\0\0\0\0\0\x05"], "KAFKA_STRING"),
        ([b"\0\0\0\x05"], "KAFKA_INT or KAFKA_STRING"),
        ([b"\0\0\0\0\0\0\0\x02"], "KAFKA_BIGINT or KAFKA_DOUBLE or KAFKA_STRING"),
        ([b"\0\0\0\0\0\0\0\x02", b"\xff" * 8], "KAFKA_BIGINT or KAFKA_DOUBLE"),
        ([b"\xff\xfe\xfd"], "UNRECOGNISED_BYTES"),
        ([None], "¯\\_(ツ)_/¯ - no data processed"),
        ([b"[" * 200_000], "KAFKA_STRING"),
    ],
)
@pytest.mark.parametrize("keys", [False, True])
def test_plain_formats_have_the_names_of_the_reference(registry, samples, expected, keys):
    assert guess(samples, registry, keys=keys) == expected


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (
            [window_key(b"Die Hard", START), window_key(b"Tree of Life", START)],
            "HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)",
        ),
        ([session_key(b"51.56.119.117", START, START)], "SESSION(KAFKA_STRING)"),
        (
            [window_key(b"\0\0\0\0\0\0\0\x02", START)],
            "HOPPING(KAFKA_BIGINT) or TUMBLING(KAFKA_BIGINT) or HOPPING(KAFKA_DOUBLE) or "
            "TUMBLING(KAFKA_DOUBLE) or HOPPING(KAFKA_STRING) or TUMBLING(KAFKA_STRING)",
        ),
        (
            [session_key(b"\0\0\0\x02", START, START + 5)],
            "SESSION(KAFKA_INT) or SESSION(KAFKA_STRING)",
        ),
    ],
)
def test_windowed_keys_have_the_names_of_the_reference(samples, expected):
    assert guess(samples, keys=True) == expected


@pytest.mark.parametrize("name", ["AVRO", "JSON_SR"])
def test_windowed_keys_with_schemas(registry, name):
    key = data(name, registry, (7, None))
    window, session = window_key(key, START), session_key(key, START, START + 1)
    assert guess([window], registry, keys=True).startswith(f"HOPPING({name}) or TUMBLING({name})")
    assert guess([session], registry, keys=True).startswith(f"SESSION({name})")
    space = " " if name == "AVRO" else ""
    text = f'{{"ID":{space}7,{space}"D":{space}null}}'
    assert shown(window, registry) == f"[{text}@{START}/-]"
    assert shown(session, registry) == f"[{text}@{START}/{START + 1}]"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (struct.pack(">q", 2), "2"),
        (struct.pack(">q", 9), "9"),  # its last byte is a tab
        (struct.pack(">q", -2), "-2"),
        (struct.pack(">i", 10), "10"),
        (b"abcd", "abcd"),
        (b"12345678", "12345678"),
        (window_key(b"Die Hard", START), f"[Die Hard@{START}/-]"),
        (window_key(struct.pack(">q", 7), START), f"[7@{START}/-]"),
        (window_key(b"a", 0), "[a@0/-]"),
        (
            session_key(b"51.56.119.117", 1563444000000, 1563444000000),
            "[51.56.119.117@1563444000000/1563444000000]",
        ),
        (b"a text that is longer", "a text that is longer"),
    ],
)
def test_keys_are_shown_as_the_reference_shows_them(key, text):
    assert shown(key) == text


def test_no_control_character_leaves(registry):
    for keys in (False, True):
        for sample in (
            b"a\tb\nc\r\0\x7f",
            "\x85\u2028 zwei\u2029".encode(),
            b"\x00\xff\n\t\x1b[2J",
            b'{"a" :\n\t1,\r\n "b": "\xc2\x85"}',
            framed(9) + b"\n\x01",
            window_key(b"a\n", 10),
        ):
            text = shown(sample, registry, keys=keys)
            assert len(text.splitlines()) == 1
            assert text.isprintable(), text
    assert shown(b"a\tb\n\0") == "a\\tb\\n\\x00"
    assert shown(b'{"a" :\n\t1}', keys=False) == '{"a" : 1}'


def test_records_are_shown_as_their_schema_says(registry):
    for name, text in (("AVRO", '{"ID": 7, "D": 1.50}'), ("JSON_SR", '{"ID":7,"D":1.50}')):
        assert shown(data(name, registry, (7, Decimal("1.50"))), registry) == text
    assert DetectedFormats(RegisteredReader(registry)).shown(None, ("AVRO",)) == "<null>"
    broken = data("AVRO", registry)[:5] + b"\xff"
    assert shown(broken, registry).startswith("\\x00")


def test_marks_inside_a_text_are_not_spaced_in_avro(registry):
    columns = (c.value("A", model.STRING), c.value("B", model.INTEGER))
    serde = serde_for(Format("AVRO"), columns, "value", registry, "quoted-value")
    text = 'x": 1,\\"y:z'
    assert shown(serde.encode((text, 1)), registry) == '{"A": "x\\": 1,\\\\\\"y:z", "B": 1}'


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (1, "1970/01/01 00:00:00.001 Z"),
        (-5, "1969/12/31 23:59:59.995 Z"),
        (253402300800000, "+10000/01/01 00:00:00.000 Z"),
        (2**63 - 1, "+292278994/08/17 07:12:55.807 Z"),
    ],
)
def test_a_record_may_have_any_time(time, text):
    assert f"rowtime: {text}, key" in lines([record(None, b"x", time)])[-1]


def test_later_records_need_not_fit_the_guess():
    key = b"\0\0\0\1"
    lines_ = lines([record(key, b"x")], [record(b"abcde", b"\0\xff")])
    assert lines_[:2] == ["Key format: KAFKA_INT or KAFKA_STRING", "Value format: KAFKA_STRING"]
    assert "key: 1, value: x," in lines_[2]
    assert "key: abcde, value: \\x00\\xff," in lines_[3]


def test_keys_that_come_later_are_shown_as_what_they_are():
    lines_ = lines([record(None, b"x")], [record(struct.pack(">q", 2), b"x")])
    assert lines_[0].endswith("no data processed")
    assert "key: 2," in lines_[-1]


def test_lines_that_are_left_do_not_wait_for_the_reader():
    feed = Polled([record(b"k", b"v")], [record(b"k", b"v")])
    printed = PrintQuery(feed, interval=1, limit=None)
    lines = printed.lines()
    next(lines)
    del lines
    assert (feed.open, feed.closed) == (False, False)
    printed.close()
    assert feed.closed
