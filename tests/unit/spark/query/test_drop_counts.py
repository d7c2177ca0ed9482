"""What was dropped of the records of the last minutes."""

from __future__ import annotations

from ksql.spark.query.query_metrics import LATELY_MS, DropCounts, RecentDrops, WorstRecord, late_of

NEAR, FAR = WorstRecord(5, "t", 1), WorstRecord(9, "s", 0)


def test_sums_have_the_worst_of_both():
    some, more = DropCounts(10, 3, 2, NEAR), DropCounts(5, 1, 1, FAR)
    assert some.plus(more) == more.plus(some) == DropCounts(15, 4, 3, FAR)
    assert some.plus(DropCounts()) == some


def test_the_last_minutes_count():
    lately = RecentDrops()
    lately.add(0, DropCounts(10, 3, 2, FAR))
    assert lately.add(5_000, DropCounts(10, 1, 1, NEAR)) == DropCounts(20, 4, 3, FAR)
    assert lately.add(LATELY_MS - 1, DropCounts(10)) == DropCounts(30, 4, 3, FAR)
    assert lately.add(LATELY_MS, DropCounts(10, 1, 1, NEAR)) == DropCounts(20, 1, 1, NEAR)


def test_a_batch_without_records_changes_nothing():
    lately = RecentDrops()
    lately.add(0, DropCounts(10, 3, 2, FAR))
    assert lately.add(10 * LATELY_MS, DropCounts()) == DropCounts(10, 3, 2, FAR)
    assert RecentDrops().add(0, DropCounts()) == DropCounts()


def test_an_old_batch_may_come_after_the_clock_was_set_back():
    lately = RecentDrops()
    lately.add(LATELY_MS, DropCounts(10, 3, 2, FAR))
    assert lately.add(0, DropCounts(1)) == DropCounts(11, 3, 2, FAR)


def test_the_stages_of_a_batch_report_late_records():
    def worst(counts):
        return {"BEHIND": counts.behind_ms, "TOPIC": counts.topic, "PART": counts.partition}

    seen = {
        "ingest": {"errors": 0},
        "stage-0": {"late": 2, "worst": worst(NEAR)},
        "stage-1": {"late": 1, "worst": worst(FAR)},
        "stage-2": {"late": None, "worst": None},
    }
    assert late_of(seen) == DropCounts(late=3, worst=FAR)
    assert late_of({}) == DropCounts()
