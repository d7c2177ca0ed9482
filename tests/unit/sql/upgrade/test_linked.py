"""Tables of tables that are rebuilt at any time: their rows are those of their statements."""

from __future__ import annotations

import pytest

from ksql.exec.memory.driver import MemoryTopics
from tests.examples import QUICK
from tests.upgrades.linked import Story, Tally, Unlike

STORIES = 20 if QUICK else 60
DONE = ("fed", "read", "rebuilt", "rolled back", "aborted", "pause", "resume", "restarted", "grown")


@pytest.mark.slow
def test_tables_have_the_rows_of_their_statements():
    tally = Tally()
    for seed in range(70_000, 70_000 + STORIES):
        tally.add(Story(seed).run())
    assert tally.stories == STORIES
    assert set(DONE) <= set(tally.steps)
    assert tally.compared >= 3 * STORIES


def run_until(seeds):
    for seed in range(seeds):
        Story(seed).run()


def test_the_stories_see_rows_that_a_cut_over_leaves(monkeypatch):
    equalize = MemoryTopics.equalize

    def without_deletions(topics, origin, target, now_ms):
        kept = dict(topics.rows(target))
        equalize(topics, origin, target, now_ms)
        for key in kept.keys() - topics.rows(target).keys():
            topics.append(target, key, kept[key].value, kept[key].timestamp)

    monkeypatch.setattr(MemoryTopics, "equalize", without_deletions)
    with pytest.raises(Unlike, match="not"):
        run_until(30)
