from __future__ import annotations

from ksql.spark.tasklog import TaskLog


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
