"""``ksql datagen``: options, schemas, patterns, the pace, and what is sent."""

from __future__ import annotations

import io
import json
import re
import threading
from itertools import islice
from random import Random

import pytest

from ksql.core.errors import KsqlError
from ksql.formats import MemoryRegistry
from server.datagen import command, schema
from server.datagen.command import MOST_AT_ONCE, at_random, by_rate
from server.datagen.options import BadOption, parse
from server.datagen.patterns import BadSchema, maker_of


class Kept:
    """A producer that keeps what it is given; a record counts once it was flushed."""

    def __init__(self):
        self.sent, self.flushed = [], 0

    def send(self, topic, key, value, *, timestamp=None):
        self.sent.append((topic, key, value, timestamp))

    def flush(self):
        self.flushed = len(self.sent)


def produced(*arguments, portions=((0.0, 3),), registry=None, over=None):
    options = parse([*arguments])
    producer, out = Kept(), io.StringIO()
    generator = command.generator_of(options, lambda: registry)
    sent = command.produce(
        generator, options, producer, over or threading.Event(), out, iter(portions)
    )
    assert producer.flushed == len(producer.sent) == sent
    return producer.sent, out.getvalue().splitlines()


# --- options


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["quickstart=orders"], ("orders_kafka_topic_json", "orderid", "JSON", "KAFKA")),
        (
            ["quickstart=users", "format=avro"],
            ("users_kafka_topic_avro", "userid", "AVRO", "KAFKA"),
        ),
        (
            ["quickstart=pageviews", "value-format=delimited", "key-format=json", "topic=p"],
            ("p", "viewtime", "DELIMITED", "JSON"),
        ),
        (["schema=s.avsc", "topic=t"], ("t", "", "JSON", "KAFKA")),
    ],
)
def test_options(arguments, expected):
    options = parse(arguments)
    assert (options.topic, options.key, options.value_format, options.key_format) == expected


def test_names_have_no_case_and_properties_of_a_file_are_weaker(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=far:1\nsecurity.protocol=SSL\n")
    options = parse(
        ["QUICKSTART=Users", "bootstrap-server=near:2", f"propertiesFile={file}", "nThreads=4"]
    )
    assert options.properties == {
        "bootstrap.servers": "near:2",
        "security.protocol": "SSL",
        "ksql.schema.registry.url": "http://localhost:8081",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "One of quickstart and schema is needed."),
        (["quickstart=users", "schema=x"], "One of quickstart and schema is needed."),
        (["quickstart=pets"], "There is no quickstart pets, only orders, users, pageviews."),
        (["quickstart"], "'quickstart' is not of the form name=value."),
        (["quickstart=users", "quick-start=users"], "quick-start is given twice."),
        (["quickstart=users", "iteration=3"], "There is no option iteration."),
        (["quickstart=users", "msgRate=0"], "msgRate is a whole number above 0, not '0'."),
        (["quickstart=users", "printRows=no"], "printRows is true or false, not 'no'."),
        (["schema=x"], "A schema needs a topic: topic=NAME."),
        (
            ["quickstart=users", "valueDelimiter=ab"],
            "valueDelimiter is one character, TAB or SPACE, not 'ab'.",
        ),
    ],
)
def test_refused_options(arguments, message):
    with pytest.raises(BadOption) as caught:
        parse(arguments)
    assert caught.value.message == message


def test_wrong_options_have_a_status_of_their_own(capsys):
    assert command.main(["quickstart=pets"]) == 2
    assert "no quickstart pets" in capsys.readouterr().err
    assert command.main(["--help"]) == 0
    assert "usage: ksql datagen" in capsys.readouterr().out


# --- records


def test_orders_are_counted_and_have_the_fields_of_the_quick_start():
    sent, lines = produced("quickstart=orders", "seed=1")
    assert [key for _, key, _, _ in sent] == [bytes((0, 0, 0, n)) for n in range(3)]
    order = json.loads(sent[0][2])
    assert [*order] == ["ordertime", "orderid", "itemid", "orderunits", "address"]
    assert re.fullmatch(r"Item_[1-9]\d{0,2}", order["itemid"])
    assert 0.1 <= order["orderunits"] <= 10
    assert 10000 <= order["address"]["zipcode"] <= 99999
    assert lines[2].startswith("2 --> [ ")


def test_a_seed_gives_the_same_records_again():
    first, _ = produced("quickstart=users", "seed=5", "timestamp=registertime")
    assert produced("quickstart=users", "seed=5", "timestamp=registertime")[0] == first
    assert produced("quickstart=users", "seed=6", "timestamp=registertime")[0] != first
    assert [time for *_, time in first] == [
        json.loads(value)["registertime"] for _, _, value, _ in first
    ]


def test_the_formats():
    sent, _ = produced("quickstart=pageviews", "format=delimited", "valueDelimiter=TAB")
    assert re.fullmatch(rb"1\tUser_\d\tPage_\d\d?", sent[0][2])
    for name in ("avro", "protobuf", "json_sr"):
        registry = MemoryRegistry()
        sent, _ = produced("quickstart=orders", f"format={name}", registry=registry)
        assert registry.latest(f"orders_kafka_topic_{name}-value") is not None
        assert sent[0][2][0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quickstart=users", "key=id"], "key=id: the schema has only the fields"),
        (["quickstart=users", "timestamp=userid"], "timestamp is a field of whole milliseconds"),
        (["quickstart=orders", "format=delimited"], "does not support type 'STRUCT'"),
    ],
)
def test_what_does_not_fit_the_schema(arguments, message):
    with pytest.raises(KsqlError) as caught:
        produced(*arguments)
    assert message in caught.value.text()


def test_it_ends_after_its_iterations_and_when_it_is_asked_to():
    portions = [(0.0, 3)] * 100
    assert len(produced("quickstart=users", "iterations=7", portions=portions)[0]) == 7
    over = threading.Event()
    over.set()
    assert len(produced("quickstart=users", portions=portions, over=over)[0]) == 3


def test_rows_need_not_be_shown():
    sent, lines = produced("quickstart=users", "printRows=false")
    assert (len(sent), lines) == (3, [])


class Nowhere:
    """Stands for Kafka's clients, which are not needed."""

    closed = False

    def __init__(self, *_settings):
        """Take what the clients take."""

    def create(self, _topic):
        return False

    def close(self):
        Nowhere.closed = True


def test_a_reader_of_the_rows_that_ends_ends_the_run(monkeypatch, capfd):
    def broken(*_arguments):
        raise BrokenPipeError

    Nowhere.closed = False
    for name in ("Admin", "KafkaTopics", "Sender"):
        monkeypatch.setattr(command, name, Nowhere)
    monkeypatch.setattr(command, "produce", broken)
    assert command.main(["quickstart=users"]) == 0
    assert Nowhere.closed
    assert capfd.readouterr() == ("", "")


# --- schemas


def values_of(type_, *, count=200):
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": type_}]})
    record, dice = schema.schema_of(text), Random(1)
    return str(record.columns[0].type), [record.row(dice)[0] for _ in range(count)]


def given(name, **arguments):
    return {"type": name, "arg.properties": arguments}


def test_types_of_a_schema():
    assert values_of(given("long", iteration={"start": 5, "step": 2, "restart": 10}))[1][:5] == [
        5, 7, 9, 5, 7,
    ]  # fmt: skip
    assert values_of(given("int", iteration={"start": 3, "step": -1}))[1][:3] == [3, 2, 1]
    assert set(values_of(given("string", options=["a", "b"]))[1]) == {"a", "b"}
    assert set(values_of({"type": "enum", "symbols": ["X", "Y"]})[1]) == {"X", "Y"}
    kind, values = values_of(["null", "int"])
    assert kind == "INTEGER"
    assert 0 < values.count(None) < 60
    kind, values = values_of({"type": "array", "items": "string", "arg.properties": {"length": 2}})
    assert kind == "ARRAY<STRING>"
    assert {len(value) for value in values} == {2}
    kind, values = values_of({"type": "map", "values": "double"}, count=3)
    assert kind == "MAP<STRING, DOUBLE>"
    assert all(isinstance(number, float) for value in values for number in value.values())
    assert values_of(given("boolean", odds=1.0))[1] == [True] * 200
    assert {len(value) for value in values_of(given("bytes", length=4))[1]} == {4}


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("date", 'The type "date" of f is not supported.'),
        (["int", "string"], "The union of f has 2 types besides null; one is possible."),
        (given("int", even=True), "arg.properties of f has even, which is not supported."),
        (given("int", range={"min": 2, "max": 1}), "The range of f ends before it begins."),
        (given("int", iteration={"start": 2, "restart": 1}), "does not lead from its start"),
        (given("string", iteration={"start": 2}), "The iteration of f needs a start"),
        (given("string", options=[]), "The options of f are not a list of values."),
        ({"type": "record", "fields": []}, "A record of the schema has no fields."),
    ],
)
def test_refused_schemas(type_, message):
    with pytest.raises(BadSchema) as caught:
        values_of(type_)
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["{", '"int"', '{"type": "record"}'])
def test_texts_that_are_no_schema(text):
    with pytest.raises(BadSchema):
        schema.schema_of(text)


def test_a_schema_that_cannot_be_read(tmp_path):
    with pytest.raises(BadSchema, match="No such file"):
        schema.read(tmp_path / "none.avsc")


# --- patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "User_[1-9]",
        "Page_[1-9][0-9]?",
        "(a|bc){2}",
        "a+b*c?",
        r"\d{3}-\w{2,4}",
        "[a-c_-]{5}",
        r"x\.y\\z",
        "(?:ab){2,}",
        "",
    ],
)
def test_texts_match_their_pattern(pattern):
    make, dice = maker_of(pattern), Random(3)
    for text in [make(dice) for _ in range(100)]:
        assert re.fullmatch(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    ["(a", "a)", "[a", "[z-a]", "[]", "[^a]", "a{", "a{x}", "a{3,1}", "*a", "^a", "a$", r"\b", "\\",
     "(?=a)"],
)  # fmt: skip
def test_patterns_without_texts(pattern):
    with pytest.raises(BadSchema, match="No texts can be made"):
        maker_of(pattern)


# --- the pace


def test_a_rate_is_kept_over_time():
    now = [0.0]
    portions, sent = by_rate(50, lambda: now[0]), 0
    while now[0] < 10:
        pause_s, count = next(portions)
        sent += count
        now[0] += pause_s
    assert 495 <= sent <= 505


def test_a_late_portion_makes_up_for_a_second_at_most():
    now = [0.0]
    portions = by_rate(5, lambda: now[0])
    next(portions)
    now[0] = 100
    assert next(portions)[1] == 5


def test_high_rates_are_sent_in_portions():
    now = [0.0]
    portions = by_rate(1_000_000, lambda: now[0])
    next(portions)
    now[0] = 0.1
    assert next(portions) == (0.0, MOST_AT_ONCE)


def test_random_times_lie_below_the_greatest():
    portions = [*islice(at_random(500, Random(1)), 100)]
    assert {count for _, count in portions} == {1}
    assert 0 <= min(portions)[0] < max(portions)[0] <= 0.5
