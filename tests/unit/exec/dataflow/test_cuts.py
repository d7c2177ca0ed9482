"""How micro-batches are cut changes nothing: random queries of every operator, in memory.

`python -m tests.cuts` runs as many as are asked for; `make proof-cuts` some of them on Spark.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cuts.cases import Case, Event
from tests.cuts.chance import SHAPES
from tests.cuts.run import check, difference, smaller
from tests.examples import QUICK
from tests.tally import Tally

PARTS = 2 if QUICK else 3
SEEDS = 50  # of each part


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_records_in_other_batches_give_the_same_results(part):
    tally = Tally()
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        check(seed, tally)
    assert set(tally.shapes) == set(SHAPES)
    assert tally.batches > 3 * tally.runs
    assert tally.results > 3 * tally.runs


def test_rows_that_expire_do_so_in_all_batches():
    tally = Tally()
    for seed in range(40):
        check(seed, tally, shape="expiring")
    assert tally.shapes == {"expiring": tally.runs}
    assert tally.batches > 3 * tally.runs
    assert tally.results > 3 * tally.runs


class Sizes:
    """Writes how many records its batches have."""

    stages = 0
    topics = ("S0",)

    def straight(self, batch, _log):
        return [(b"k", b"%d" % len(batch.keys), 0, None)]


def test_a_difference_is_found_and_made_small():
    events = [Event("S0", 0, "k", {}, time, cut=time % 3 == 0) for time in range(9)]
    program: Any = Sizes()
    small = smaller(Case("plain", (), "", tuple(events)), program)
    assert [event.cut for event in small.events][1:] == [True]
    assert "b'2'" in difference(small, program)
    assert str(small.events[1]).startswith("--- cut\nS0/0")


@pytest.mark.parametrize(("seed", "shape"), [(34, "tumbling"), (35, "hopping")])
def test_a_late_record_of_final_windows_is_logged_alike_in_all_batches(seed, shape):
    """Some stand for themselves, others are in a state that has no arguments."""
    check(seed, Tally(), shape=shape)
