"""What was dropped of the records of the last minutes."""

from __future__ import annotations

from ksql.spark.recent import LATELY_MS, Lately, Recent, Worst, late_of

NEAR, FAR = Worst(5, "t", 1), Worst(9, "s", 0)


def test_sums_have_the_worst_of_both():
    some, more = Recent(10, 3, 2, NEAR), Recent(5, 1, 1, FAR)
    assert some.plus(more) == more.plus(some) == Recent(15, 4, 3, FAR)
    assert some.plus(Recent()) == some


def test_the_last_minutes_count():
    lately = Lately()
    lately.add(0, Recent(10, 3, 2, FAR))
    assert lately.add(5_000, Recent(10, 1, 1, NEAR)) == Recent(20, 4, 3, FAR)
    assert lately.add(LATELY_MS - 1, Recent(10)) == Recent(30, 4, 3, FAR)
    assert lately.add(LATELY_MS, Recent(10, 1, 1, NEAR)) == Recent(20, 1, 1, NEAR)


def test_a_batch_without_records_changes_nothing():
    lately = Lately()
    lately.add(0, Recent(10, 3, 2, FAR))
    assert lately.add(10 * LATELY_MS, Recent()) == Recent(10, 3, 2, FAR)
    assert Lately().add(0, Recent()) == Recent()


def test_an_old_batch_may_come_after_the_clock_was_set_back():
    lately = Lately()
    lately.add(LATELY_MS, Recent(10, 3, 2, FAR))
    assert lately.add(0, Recent(1)) == Recent(11, 3, 2, FAR)


def test_the_stages_of_a_batch_report_late_records():
    def worst(found):
        return {"BEHIND": found.behind_ms, "TOPIC": found.topic, "PART": found.partition}

    seen = {
        "ingest": {"errors": 0},
        "stage-0": {"late": 2, "worst": worst(NEAR)},
        "stage-1": {"late": 1, "worst": worst(FAR)},
        "stage-2": {"late": None, "worst": None},
    }
    assert late_of(seen) == Recent(late=3, worst=FAR)
    assert late_of({}) == Recent()
