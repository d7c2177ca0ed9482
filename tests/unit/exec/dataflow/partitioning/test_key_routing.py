"""Time goes by in each partition by itself: as if a query of its own read each of them.

The model runs the records of one partition alone, one by one. The query runs all of them, over any
number of buckets. Its micro-batches are cut anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksql.core.types.windowed import window_key
from ksql.exec.dataflow.compiled import writing
from ksql.exec.dataflow.topology import topology
from ksql.functions.registry import BUILTINS
from ksql.sql.plan.walk import with_sources
from tests.cuts.cases import Event, merged, pieces
from tests.cuts.run import run
from tests.unit.exec.dataflow.partitioning.test_murmur2 import plain
from tests.unit.world import World

PARTITIONS = 3
SETUP = "".join(
    f"CREATE STREAM {name} (K{n} {type_} KEY, G{n} STRING, V{n} INT) "
    f"WITH (KAFKA_TOPIC='{name}', KEY_FORMAT='{format_}', PARTITIONS={PARTITIONS});"
    for n, (name, type_, format_) in enumerate(
        [("S", "STRING", "KAFKA"), ("R", "STRING", "KAFKA"), ("J", "STRING", "JSON")]
    )
)
SETUP += (
    f"CREATE TABLE T (K3 STRING PRIMARY KEY, V3 INT) WITH (KAFKA_TOPIC='T', "
    f"PARTITIONS={PARTITIONS});"
)
Lane = Callable[[Event], "int | None"]


def hashed(data):
    return (plain(data) & 0x7FFFFFFF) % PARTITIONS


def own(event):
    """The partition of a record that keeps its key."""
    return event.partition


def by_group(event):
    """That of the group, for records that have one."""
    value = event.row and event.row[f"G{'SRJ'.index(event.topic)}"]
    return None if value is None else hashed(value.encode())


def by_both(event):
    if event.row is None or event.row["G0"] is None or event.row["V0"] is None:
        return None
    return hashed(b'{"G0":"%s","V0":%d}' % (event.row["G0"].encode(), event.row["V0"]))


def right_by_group(event):
    """The right side moves; what has no key stays."""
    group = None if event.topic == "S" else by_group(event)
    return event.partition if group is None else group


def left_by_group(event):
    """The left side moves; what has no key stays."""
    group = None if event.topic == "R" else by_group(event)
    return event.partition if group is None else group


def right_as_kafka(event):
    """Keys of another format are written in the left side's; what has no key stays."""
    moves = event.topic != "S" and event.key is not None
    return hashed(event.key.encode()) if moves else event.partition


@dataclass(frozen=True)
class Query:
    text: str
    lane: Lane = own


TUMBLING = "TUMBLING (SIZE 10 SECONDS, RETENTION 30 SECONDS, GRACE PERIOD 5 SECONDS)"
SESSION = "SESSION (4 SECONDS, RETENTION 20 SECONDS, GRACE PERIOD 3 SECONDS)"
NEAR = "WITHIN 5 SECONDS GRACE PERIOD 2 SECONDS"
QUERIES = {
    "tumbling": Query(f"SELECT K0, COUNT(*) AS C FROM S WINDOW {TUMBLING} GROUP BY K0"),
    "hopping": Query(
        "SELECT K0, COUNT(*) AS C FROM S WINDOW HOPPING (SIZE 10 SECONDS, ADVANCE BY 5 SECONDS, "
        "GRACE PERIOD 1 SECOND) GROUP BY K0 EMIT FINAL"
    ),
    "final": Query(f"SELECT K0, SUM(V0) AS C FROM S WINDOW {TUMBLING} GROUP BY K0 EMIT FINAL"),
    "sessions": Query(f"SELECT K0, COUNT(*) AS C FROM S WINDOW {SESSION} GROUP BY K0"),
    "final sessions": Query(
        f"SELECT K0, COUNT(*) AS C FROM S WINDOW {SESSION} GROUP BY K0 EMIT FINAL"
    ),
    "moved": Query(f"SELECT G0, COUNT(*) AS C FROM S WINDOW {TUMBLING} GROUP BY G0", by_group),
    "moved sessions": Query(
        f"SELECT G0, COUNT(*) AS C FROM S WINDOW {SESSION} GROUP BY G0 EMIT FINAL", by_group
    ),
    "moved to two columns": Query(
        f"SELECT G0, V0, COUNT(*) AS C FROM S WINDOW {TUMBLING} GROUP BY G0, V0", by_both
    ),
    "left join": Query(f"SELECT K0, V0, V1 FROM S LEFT JOIN R {NEAR} ON K0 = K1"),
    "full join": Query(f"SELECT ROWKEY, V0, V1 FROM S FULL JOIN R {NEAR} ON K0 = K1"),
    "eager join": Query("SELECT K0, V0, V1 FROM S LEFT JOIN R WITHIN 5 SECONDS ON K0 = K1"),
    "right side moved": Query(f"SELECT K0, V0, V1 FROM S JOIN R {NEAR} ON K0 = G1", right_by_group),
    "left side moved": Query(
        f"SELECT K1, V0, V1 FROM S LEFT JOIN R {NEAR} ON G0 = K1", left_by_group
    ),
    "another format": Query(f"SELECT K0, V0, V2 FROM S JOIN J {NEAR} ON K0 = K2", right_as_kafka),
    "chain": Query(
        f"SELECT K0, V0, V1, V3 FROM S LEFT JOIN R {NEAR} ON K0 = K1 LEFT JOIN T ON K0 = K3"
    ),
    "join, then sessions": Query(
        f"SELECT K0, COUNT(*) AS C FROM S LEFT JOIN R {NEAR} ON K0 = K1 "
        f"WINDOW {SESSION} GROUP BY K0"
    ),
}


@cache
def planned(name):
    query = QUERIES[name]
    kind = "TABLE" if "GROUP BY" in query.text else "STREAM"
    options = " WITH (KEY_FORMAT='JSON')" if query.lane is by_both else ""
    text = f"CREATE {kind} X{options} AS {query.text};"
    return World(SETUP, text, **{"cache.max.bytes.buffering": "0"}).plan("X")


@cache
def program(name, lanes=None):
    plan = planned(name)
    return writing(plan if lanes is None else replace(plan, lanes=lanes), BUILTINS)


def row_of(topic, group, value):
    n = "SRJT".index(topic)
    return {f"V{n}": value} if topic == "T" else {f"G{n}": group, f"V{n}": value}


@st.composite
def events(draw, topics):
    """Records out of order, each partition with times of its own."""
    drawn = []
    now = [draw(st.integers(0, 60)) for _ in range(PARTITIONS)]
    for _ in range(draw(st.integers(1, 40))):
        topic, partition = draw(st.sampled_from(topics)), draw(st.integers(0, PARTITIONS - 1))
        now[partition] += draw(st.sampled_from((0, 0, 1, 2, 5, 12, 60)))
        late = draw(st.sampled_from((0, 0, 1, 3, 6, 12, 40)))
        time = max(0, now[partition] - late) * 1000
        key = draw(st.sampled_from(("a", "b", None) if topic == "S" else "ab"))
        group = draw(st.sampled_from(("a", "b", "cd", None)))
        row = row_of(topic, group, draw(st.sampled_from((1, 2, None))))
        dead = draw(st.integers(0, 9)) == 0
        drawn.append(Event(topic, partition, key, None if dead else row, time))
    return drawn


def cut(draw, drawn):
    return [replace(each, cut=draw(st.booleans())) for each in drawn]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_each_partition_is_as_if_it_were_alone(name, data):
    whole, alone, lane = program(name), program(name, lanes=1), QUERIES[name].lane
    merged_events = merged(data.draw(events(whole.topics)), whole.topics)
    expected = [
        run(alone, [[event] for event in merged_events if lane(event) == number], 1)
        for number in range(PARTITIONS)
    ]
    buckets = data.draw(st.integers(1, PARTITIONS + 1))
    together = run(whole, list(pieces(cut(data.draw, merged_events))), buckets)
    assert Counter(together.records) == Counter(r for one in expected for r in one.records)
    # the model leaves out what has no lane; of rows, their offsets would differ
    assert rows_of(together) >= sum(map(rows_of, expected), Counter())
    for key in {record[0] for record in together.records}:
        owners = [one for one in expected if any(record[0] == key for record in one.records)]
        if len(owners) == 1:
            [owner] = owners
            assert of_key(together, key) == of_key(owner, key)


def rows_of(results):
    return Counter((operator, message) for operator, message, _ in results.errors)


def of_key(results, key):
    return [record for record in results.records if record[0] == key]


@pytest.mark.parametrize("name", QUERIES)
def test_plans_that_go_by_time_know_the_partitions(name):
    assert planned(name).lanes == PARTITIONS
    assert program(name).laned


@pytest.mark.parametrize(
    "text",
    [
        "STREAM X AS SELECT * FROM S",
        "TABLE X AS SELECT K0, COUNT(*) AS C FROM S GROUP BY K0",
        "STREAM X AS SELECT K0, V0, V3 FROM S JOIN T ON K0 = K3",
    ],
)
def test_other_plans_have_no_stream_partitions(text):
    world = World(SETUP, f"CREATE {text};")
    assert world.plan("X").lanes == 0
    assert '"lanes"' not in world.query("X").plan


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (f"WINDOW {TUMBLING}", "stream time: of each of 3 partitions, as in Kafka Streams"),
        ("", None),
    ],
)
def test_it_is_shown_for_what_time_is_counted(window, expected):
    world = World(SETUP, f"CREATE TABLE X AS SELECT K0, COUNT(*) AS C FROM S {window} GROUP BY K0;")
    query_id = world.query("X").id
    [explained] = world.run(f"EXPLAIN {query_id};")
    [described] = world.run("DESCRIBE X EXTENDED;")
    shown = explained.query_description.topology.split("\n")
    lines = described.source_description.statistics.split("\n")
    assert [line for line in shown if "stream time" in line] == ([expected] if expected else [])
    assert f"{query_id}: {expected}" in lines if expected else "stream time" not in str(lines)


def test_a_plan_of_an_earlier_version_shows_its_buckets():
    old = replace(planned("tumbling"), lanes=0)
    assert "stream time: of each bucket" in topology(old, BUILTINS).split("\n")


def test_a_partition_that_lags_behind_is_not_late():
    ahead = Event("S", 0, "a", row_of("S", "g", 1), 100_000)
    behind = [Event("S", 1, key, row_of("S", "g", 1), 1000) for key in "bb"]
    for buckets in (1, 2):
        results = run(program("tumbling"), [[ahead], behind], buckets)
        assert (len(results.records), results.errors) == (3, [])


def test_plans_of_earlier_versions_count_per_bucket_as_they_did():
    ahead = Event("S", 0, "a", row_of("S", "g", 1), 100_000)
    behind = Event("S", 1, "b", row_of("S", "g", 1), 1000)
    old = program("tumbling", lanes=0)
    results = run(old, [[ahead], [behind]], 1)
    assert not old.laned
    assert len(results.records) == 1
    assert [message for _, message, _ in results.errors] == [
        "late record for the window starting at 0"
    ]


# --- windowed sources -------------------------------------------------------------------------

WINDOWED = "".join(
    f"CREATE STREAM {name} (K{n} STRING KEY, V{n} INT) WITH (KAFKA_TOPIC='{name}', "
    f"PARTITIONS={PARTITIONS}, WINDOW_TYPE='TUMBLING', WINDOW_SIZE='10 SECONDS');"
    for n, name in enumerate(("G", "H"))
)
MEETING = f"STREAM X AS SELECT K0, V0, V1 FROM G JOIN H {NEAR} ON K0 = K1"
GROUPED = f"TABLE X AS SELECT K0, COUNT(*) AS C FROM G WINDOW {TUMBLING} GROUP BY K0"


def windowed(text, *scattered):
    """The program of a query over windowed sources, of which some are scattered."""
    plan = World(WINDOWED, f"CREATE {text};", **{"cache.max.bytes.buffering": "0"}).plan("X")
    marked = with_sources(plan.sink, lambda each: replace(each, scattered=each.name in scattered))
    return writing(replace(plan, sink=marked), BUILTINS)


def by_window(key, start):
    """The partition of all bytes of a windowed key, as earlier versions chose it."""
    return hashed(window_key(key.encode(), start))


def windows_of(topic, place):
    return [
        Event(topic, place(key, start), key, {f"V{'GH'.index(topic)}": 1}, start, window=start)
        for start in (0, 10_000, 20_000)
        for key in "abcde"
    ]


def by_key(key, _start):
    return hashed(key.encode())


@pytest.mark.parametrize("scattered", [(), ("G",), ("H",), ("G", "H")])
def test_windows_meet_wherever_their_topics_have_them(scattered):
    joined = [
        event
        for topic in "GH"
        for event in windows_of(topic, by_window if topic in scattered else by_key)
    ]
    assert len({(event.topic, event.partition) for event in joined}) > PARTITIONS
    results = run(windowed(MEETING, *scattered), [joined], PARTITIONS)
    assert len(results.records) == 15


def test_windows_of_plans_of_earlier_versions_stay_where_they_are():
    grouped = [event for topic in "GH" for event in windows_of(topic, by_window)]
    assert len(run(windowed(MEETING), [grouped], PARTITIONS).records) == 15


def test_a_group_is_one_wherever_its_windows_lie():
    moved = [replace(event, time=25_000) for event in windows_of("G", by_window)]
    assert len({event.partition for event in moved if event.key == "a"}) > 1
    results = run(windowed(GROUPED, "G"), [moved], PARTITIONS)
    last = {key: value for key, value, *_ in results.records}
    assert [*last.values()] == [b'{"C":3}'] * 5


@pytest.mark.parametrize("scattered", [(), ("G",)])
def test_only_rows_of_scattered_topics_are_moved(scattered):
    program = windowed(MEETING, *scattered)
    assert [stage_input.moving for stage_input in program._stage_inputs] == [
        "G" in scattered,
        False,
    ]
