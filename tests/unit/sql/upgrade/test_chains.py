"""Replacements made at random, compared with a model that knows nothing of the planner."""

from __future__ import annotations

import pytest

from tests.examples import QUICK
from tests.upgrades import chains
from tests.upgrades.chains import Chain, Disagreement, Tally

PARTS = 2 if QUICK else 3
PAIRS, CHAINS = 6, 10 * PARTS


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_replacements_end_as_the_model_says(part):
    tally = Tally()
    for seed in range(part, CHAINS, PARTS):
        Chain(10_000 + seed).run(PAIRS, tally)
    assert tally.pairs == PAIRS * CHAINS // PARTS
    assert {"accepted", "refused", "transparent"} <= set(tally.outcomes)


def run_until(seeds, first=0):
    for seed in range(first, seeds):
        Chain(seed).run(PAIRS, Tally())


def test_the_chains_see_what_differs(monkeypatch):
    """With deletions forgotten, as they were once, the model disagrees."""
    monkeypatch.setattr("ksql.sql.upgrade.align.with_leftovers", lambda _old, new, _functions: new)
    with pytest.raises(Disagreement, match="wanted"):
        run_until(100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blind", "differs", "first"),  # few chains show some of them
    [
        ("ksql.sql.upgrade.validate.added_columns.compare", "accepted", 120),
        ("ksql.sql.upgrade.validate.added_columns.notes", "what is null", 199),
        ("ksql.sql.upgrade.validate.code.compare", "accepted|the class", 0),
        ("ksql.sql.upgrade.validate._compare_folds", "accepted", 84),
        ("ksql.sql.upgrade.validate._compare_ttl", "the class", 24),
        ("ksql.exec.operators.expiry._Call.expired", "wanted", 6),
    ],
)
def test_a_validator_that_is_blind_for_something_disagrees(monkeypatch, blind, differs, first):
    monkeypatch.setattr(blind, lambda *_given: ())
    with pytest.raises(Disagreement, match=differs):
        run_until(300, first)


def test_a_verdict_that_differs_is_a_disagreement(monkeypatch):
    monkeypatch.setattr(chains, "acceptable", lambda _old, _new, _later, recoded: False)
    with pytest.raises(Disagreement, match="accepted"):
        run_until(10)
