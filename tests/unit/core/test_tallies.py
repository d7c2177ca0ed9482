"""Counts by label and histograms of durations."""

from __future__ import annotations

from ksql.core.tallies import OTHERS, Durations, Tally


def test_events_are_counted_by_their_labels():
    tally = Tally()
    tally.add("pull", "done")
    tally.add("pull", "done", by=2)
    tally.add("push", "failed")
    assert tally.counts() == {("pull", "done"): 3, ("push", "failed"): 1}


def test_a_full_tally_counts_further_labels_together():
    tally = Tally(most=1)
    for name in ("a", "b", "c", "a"):
        tally.add(name, "done")
    assert tally.counts() == {("a", "done"): 2, (OTHERS, OTHERS): 2}


def test_a_duration_belongs_to_the_first_bound_that_is_not_below_it():
    durations = Durations((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        durations.add(seconds)
    histogram = durations.histogram()
    assert histogram.counts == (2, 1, 1)
    assert histogram.sum_s == 7.65
    durations.add(0.2)
    assert histogram.counts == (2, 1, 1)  # a copy
