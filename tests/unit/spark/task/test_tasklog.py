from __future__ import annotations

import json

from ksql.core.records import BadRecord
from ksql.exec.operators.base import LateRecord
from ksql.spark.task.task_environment import TaskEnvironment
from ksql.spark.task.tasklog import LONGEST_MESSAGE, MOST_BYTES, MOST_ENTRIES, TaskLog, log_records

SHIP = TaskEnvironment(query_id="Q", application_id="app", plan_json="", topics=(), producer=())


def test_all_are_counted_and_some_are_reported():
    log = TaskLog()
    for number in range(MOST_ENTRIES + 500):
        log("Project", f"{number}", None)
    assert log.untold() == MOST_ENTRIES + 500
    log("Project", "one more", None)
    assert log.untold() == 1
    messages = [json.loads(body)["message"] for _, body, _, _ in log_records(SHIP, log, 1)]
    assert len(messages) == MOST_ENTRIES + 1
    assert "and 501 more errors in this task" in json.dumps(messages[-1])


def test_large_messages_and_records_are_bounded():
    log = TaskLog()
    log("Project", "x" * 1_000_000, None)
    assert len(log.entries[0][1]) < LONGEST_MESSAGE + 100
    for _ in range(100):
        log("Source", "bad", BadRecord("value", "t", b"x" * 1_000_000))
    assert len(log.entries) <= MOST_BYTES // 1_000_000 + 3
    assert log.untold() == 101


def test_a_record_with_two_bad_expressions_counts_once():
    log = TaskLog()
    one, other = (1, "a"), (1, "b")
    for row in (one, one, other):
        log("Project", "no", row)
    log("sink", "refused", None)
    log("sink", "refused", None)
    assert (log.untold(), log.untold()) == (4, 0)
    log("Project", "no", (2, "c"))
    assert log.untold() == 1
    assert len(log.entries) == 6


def test_a_warning_leaves_no_record_out_and_is_one_of_its_step():
    log = TaskLog()
    log.note("source", "far ahead")
    assert log.untold() == 0
    ((_, body, _, _),) = log_records(SHIP, log, 1)
    entry = json.loads(body)
    assert (entry["level"], entry["logger"]) == ("WARN", "processing.Q.source")
    assert entry["message"]["type"] == 1
    assert entry["message"]["recordProcessingError"]["errorMessage"] == "far ahead"


def test_late_records_are_counted_once_each_and_the_latest_is_known():
    log = TaskLog()
    one, other, bad = (1, "a"), (1, "b"), (1, "c")
    for row, behind_ms in ((one, 5), (one, 5), (other, 9)):
        log("aggregate", LateRecord.of("late record", behind_ms, 0, behind_ms), row)
    log("Project", "no", bad)
    count, worst = log.late_untold()
    assert (log.untold(), count, worst, worst.behind_ms, worst.origin) == (
        3,
        2,
        "late record",
        9,
        (0, 9),
    )
    assert log.late_untold() == (0, None)


def test_late_records_beyond_those_that_are_reported_count():
    log = TaskLog()
    for number in range(MOST_ENTRIES + 500):
        log("aggregate", LateRecord.of("late record", number, 0, 0), (number,))
    count, worst = log.late_untold()
    assert (count, worst.behind_ms) == (MOST_ENTRIES + 500, MOST_ENTRIES + 499)
