from __future__ import annotations

import pytest

from ksql.spark.checkpoint.checkpoint import Position, committed, planned, reached


def write(folder, *, offsets=(), commits=()):
    for name, batches in (("offsets", offsets), ("commits", commits)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for batch in batches:
            text = f'v1\n{{"batchWatermarkMs":0}}\n{{"t":{{"0":{batch * 10},"1":5}}}}'
            (folder / name / str(batch)).write_text(text if name == "offsets" else "v1\n{}")
            (folder / name / f".{batch}.crc").write_text("")


def test_nothing_is_committed_at_first(tmp_path):
    assert committed(tmp_path) is None
    write(tmp_path, offsets=[0])
    assert committed(tmp_path) is None


def test_the_last_commit_counts_not_the_last_plan(tmp_path):
    write(tmp_path, offsets=range(9, 13), commits=range(9, 12))
    assert committed(tmp_path) == Position(11, {"t": {0: 110, 1: 5}})
    assert planned(tmp_path) == Position(12, {"t": {0: 120, 1: 5}})


@pytest.mark.parametrize(
    ("now", "done"),
    [
        ({}, False),
        ({"t": {0: 4, 1: 2}}, False),
        ({"t": {0: 5}}, False),
        ({"t": {0: 5, 1: 2}}, True),
        ({"t": {0: 9, 1: 9}, "u": {0: 0}}, True),
    ],
)
def test_a_goal_is_reached_when_every_partition_is_there(now, done):
    assert reached(now, {"t": {0: 5, 1: 2}}) is done


def test_an_empty_partition_needs_no_progress():
    assert reached({}, {"t": {0: 0}})
