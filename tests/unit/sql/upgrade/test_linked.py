"""Tables of tables that are rebuilt at any time, and their readers: what they should have."""

from __future__ import annotations

import pytest

from ksql.exec.memory.driver import MemoryRunner, MemoryTopics
from tests.examples import QUICK
from tests.upgrades.linked import Story, Tally, Unlike
from tests.upgrades.readers import ReadStory

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


@pytest.mark.slow
def test_readers_of_what_is_upgraded_have_the_results_of_their_statements():
    tally = Tally()
    for seed in range(80_000, 80_000 + STORIES // 3):
        tally.add(ReadStory(seed).run())
    assert {*DONE, "stream upgraded"} <= set(tally.steps)
    assert tally.compared >= 15 * tally.stories


def run_until(seeds, kind=Story):
    for seed in range(seeds):
        kind(seed).run()


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


def test_the_stories_see_records_that_a_cut_over_repeats(monkeypatch):
    cut_over = MemoryRunner.cut_over

    def again(runner, old, new):
        if new.kind == "CSAS":
            positions = runner._resting[new.version].positions
            positions |= {topic: max(0, offset - 1) for topic, offset in positions.items()}
        return cut_over(runner, old, new)

    monkeypatch.setattr(MemoryRunner, "cut_over", again)
    with pytest.raises(Unlike, match=r"P lacks Counter\(\), has more of"):
        run_until(30, ReadStory)


def test_the_stories_see_a_plan_that_was_not_stated():
    story = ReadStory(1)
    story.plans = [0, 2, 1]
    story._check_plans([0, 1])
    with pytest.raises(Unlike, match="stated were"):
        story._check_plans([1, 2])
