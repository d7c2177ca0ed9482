from __future__ import annotations

import pytest

from ksql.kafka.producers.limits import NO_LIMITS, TopicLimits

NOW = 1_700_000_000_000
HOUR = 3_600_000
DEFAULTS = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.after.max.ms": str(HOUR),
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "cleanup.policy": "delete",
}


def test_kafkas_defaults():
    assert TopicLimits.of(DEFAULTS) == TopicLimits(1_048_588, ahead_ms=HOUR)
    assert TopicLimits.of({}) == NO_LIMITS


@pytest.mark.parametrize(
    ("configs", "limits"),
    [
        ({"message.timestamp.type": "LogAppendTime"}, TopicLimits(1_048_588)),
        ({"message.timestamp.after.max.ms": "9200000000000000"}, TopicLimits(1_048_588)),
        (
            {"message.timestamp.difference.max.ms": "5"},
            TopicLimits(1_048_588, ahead_ms=HOUR, behind_ms=5),
        ),
        (
            {"message.timestamp.before.max.ms": "7"},
            TopicLimits(1_048_588, ahead_ms=HOUR, behind_ms=7),
        ),
        (
            {"cleanup.policy": "delete,compact"},
            TopicLimits(1_048_588, ahead_ms=HOUR, keyed=True),
        ),
    ],
)
def test_others(configs, limits):
    assert TopicLimits.of(DEFAULTS | configs) == limits


@pytest.mark.parametrize(
    ("limits", "key", "time_ms", "setting"),
    [
        (TopicLimits(ahead_ms=HOUR), None, NOW + HOUR, None),
        (TopicLimits(ahead_ms=HOUR), None, NOW + HOUR + 1, "message.timestamp.after.max.ms"),
        (TopicLimits(ahead_ms=HOUR), None, 0, None),
        (TopicLimits(behind_ms=HOUR), None, NOW - HOUR, None),
        (TopicLimits(behind_ms=HOUR), None, NOW - HOUR - 1, "message.timestamp.before.max.ms"),
        (TopicLimits(keyed=True), b"", NOW, None),
        (TopicLimits(keyed=True), None, NOW, "cleanup.policy"),
        (NO_LIMITS, None, 9_000_000_000_000_000, None),
    ],
)
def test_refusals(limits, key, time_ms, setting):
    refusal = limits.refusal(key, time_ms, NOW)
    if setting is None:
        assert refusal is None
    else:
        assert setting in refusal.reason
        assert setting in refusal.remedy


def test_records_that_a_topic_refuses_are_left_out_with_the_reason():
    limits, refused = TopicLimits(ahead_ms=10, keyed=True), []
    records = [(b"k", b"v", 5, None), (None, b"v", 5, None), (b"k", b"v", 50, None)]
    taken = limits.accepted(records, 0, lambda reason, remedy: refused.append((reason, remedy)))
    assert taken == records[:1]
    assert [reason.split(",")[0] for reason, _ in refused] == [
        "the record has no key",
        "the record's timestamp 50 is 50 ms ahead of the clock",
    ]


@pytest.mark.parametrize("limits", [NO_LIMITS, TopicLimits(ahead_ms=10, keyed=True)])
def test_records_that_a_topic_takes_are_not_copied(limits):
    for records in ([(b"k", b"v", 5, None)], []):
        assert limits.accepted(records, 0, pytest.fail) is records
