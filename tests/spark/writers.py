"""Two queries that write one topic, and one that reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.spark.query.spec import Link
from tests.spark.upstream import FOR_EVER_MS, Progresses

STEPS = 60
MINUTE_MS = 60_000
START_MS = 86_400_000
FAR = 2**32
EXACTLY_ONCE = pytest.mark.parametrize("exactly_once", [False, True], ids=["alo", "eos"])


def backlog(desk, topic, offset_ms, count=STEPS):
    """One record a minute, one of five half a minute late, in one partition."""
    for step in range(count):
        late = 30_000 if step % 5 == 4 else 0
        time = START_MS + step * MINUTE_MS + offset_ms - late
        desk.send(topic, ("k", f"{topic} {step}"), timestamp=time)


def queries(desk, exactly_once=False, mosts=(20, 7, 1000)):
    """Two that write one topic, and one that reads it; and what all read and write."""
    sources = desk.topic(1), desk.topic(1)
    between, sink = desk.topic(1), desk.topic(1)
    shapes = [
        ("first", sources[0], between),
        ("second", sources[1], between),
        ("reader", between, sink),
    ]
    specs = [
        desk.spec(
            "copy",
            source,
            into,
            name=name,
            sink_topic=into,
            max_records=most,
            exactly_once=exactly_once,
        )
        for (name, source, into), most in zip(shapes, mosts, strict=True)
    ]
    links = {
        spec.name: Link(into, (source,), 1, exactly_once)
        for spec, (_, source, into) in zip(specs, shapes, strict=True)
    }
    return (
        [replace(each, chain=links, upstream_wait_ms=FOR_EVER_MS) for each in specs],
        sources,
        sink,
    )


def assert_by_time(desk, sources, sink):
    """Both sources' records are there: each source's in their order, and no time comes twice."""
    records = desk.read(sink)
    values = [row["value"] for row in desk.values(sink)]
    for source in sources:
        mine = [value for value in values if value.startswith(source)]
        assert mine == [f"{source} {step}" for step in range(len(mine))]
    times = [record.timestamp for record in records]
    behind = max(max(times[: n + 1]) - time for n, time in enumerate(times))
    assert behind <= 30_000
    return len(records)


class Writers(Progresses):
    """Two queries that write one topic; nobody runs them."""

    def __init__(self, runtime, desk, begun=1):
        super().__init__(runtime, desk)
        self._progress = self._jvm.ksql.Progress
        self._new_array = runtime.session.sparkContext._gateway.new_array
        for name in (self.first, self.second):
            self.announce_one(name, begun)

    def announce_one(self, name, begun, sink="shared"):
        sources = self._jvm.java.util.HashSet()
        self._progress.announce(name, name, sources, f"{sink}_{self.first}", begun, 0)

    def look(self, name):
        self._progress.begin(name)

    def turn(self, name, until, now_ms=0):
        return self._progress.turn(name, until, now_ms)

    def run(self, name, until):
        """A batch up to that time."""
        assert self.turn(name, until) == until
        self._progress.planned(name, until, self._jvm.java.util.HashMap())
        self.end(name)

    def end(self, name):
        self._progress.done(name, None, False, 0)

    def offsets(self, end):
        """Map the partition to an offset; a lower one would be an Integer in Java."""
        assert end >= FAR
        place = self._jvm.org.apache.kafka.common.TopicPartition(f"shared_{self.first}", 0)
        return self._jvm.java.util.Map.of(place, end)

    def lanes(self, end):
        """Return the lanes of the partition as a reader knows them."""
        [place] = self.offsets(end)
        lang = self._jvm.java.lang
        kinds = self._array(lang.Class, place.getClass(), lang.Long.TYPE, lang.Long.TYPE)
        method = lang.Class.forName("ksql.Progress").getDeclaredMethod("lanes", kinds)
        method.setAccessible(True)
        return [
            lane.toString()
            for lane in method.invoke(None, self._array(lang.Object, place, FAR, end))
        ]

    def _array(self, kind, *items):
        array = self._new_array(kind, len(items))
        for number, item in enumerate(items):
            array[number] = item
        return array
