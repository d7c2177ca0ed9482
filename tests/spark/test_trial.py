"""A trial of a plan on Spark: it finds what would end the first batch, and has no effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ksql.kafka.ranges import Range
from ksql.spark.task.trial_task import MOST_RECORDS, TrialFailed, sample
from ksql.sql.catalog.model import Topic
from tests.spark import programs


@pytest.mark.parametrize("kind", ["copy", "count", "count2"])
@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_trial_reads_and_writes_nothing(desk, runtime, kind, exactly_once):
    source, sink = desk.topic(), desk.topic()
    desk.send(source, *((f"k{n}", str(n)) for n in range(20)))
    spec = desk.spec(kind, source, sink, exactly_once=exactly_once, log_topic=desk.topic(1))
    ends = desk.ends(source)[source]
    runtime.try_out(spec, sample({(source, p): (0, end) for p, end in ends.items()}), 60)
    assert desk.read(sink) == []
    assert desk.read(spec.log_topic) == []
    assert not spec.checkpoint.exists()


def test_a_plan_that_does_not_load_in_a_worker_is_found_without_a_record(desk, runtime):
    spec = replace(desk.spec("copy", desk.topic(), desk.topic()), loader=programs.no_such_plan)
    with pytest.raises(TrialFailed, match="tried without an effect") as caught:
        runtime.try_out(spec, (), 60)
    assert "no_such_plan" in caught.value.text()


@pytest.mark.parametrize("strict", [False, True])
def test_a_record_that_the_topic_does_not_take_is_found(desk, runtime, strict):
    source, sink = desk.topic(1), f"{desk.topic()}-small"
    desk.admin.create(Topic(sink, 1, configs={"max.message.bytes": "2000"}))
    desk.send(source, ("a", "1"), ("a", "x" * 3000))
    spec = desk.spec("copy", source, sink, sink_topic=sink, strict=strict)
    ranges = (Range(source, 0, 0, 2),)
    if not strict:
        runtime.try_out(spec, ranges, 60)
        return
    with pytest.raises(TrialFailed) as caught:
        runtime.try_out(spec, ranges, 60)
    assert "Message size too large" in caught.value.text()
    assert "ksql.fail.on.production.error" in caught.value.text()
    runtime.try_out(spec, (Range(source, 0, 0, 1),), 60)


def test_a_trial_that_does_not_end_is_cut_short(desk, runtime):
    source = desk.topic(1)
    desk.send(source, ("a", "1"))
    spec = desk.spec("copy", source, desk.topic(), slow_s=3600)
    with pytest.raises(TrialFailed) as caught:
        runtime.try_out(spec, (Range(source, 0, 0, 1),), 3)
    assert "did not end within 3 s" in caught.value.text()
    runtime.try_out(desk.spec("copy", source, desk.topic()), (Range(source, 0, 0, 1),), 60)


def test_each_partition_has_a_share_of_what_a_trial_reads():
    waiting = {("s", 0): (5, 10), ("s", 1): (7, 10_000_000)}
    half = MOST_RECORDS // 2
    assert sample(waiting) == (Range("s", 0, 5, 10), Range("s", 1, 7, 7 + half))
    assert sample({}) == ()
