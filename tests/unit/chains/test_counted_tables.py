"""A stream that is joined with a table which another query counts: over a backlog as live."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chains.counted import COMMIT_INTERVAL_MS, COUNTS, counted_chain
from tests.chains.judge import cut_at, lost
from tests.chains.run import planned, run


def results(chain, batches):
    topics, running = run(chain, planned(chain), batches)
    assert list(lost(running)) == []
    records = [record for some in topics.of("R1").values() for record in some]
    return Counter((record.key_bytes, record.value_bytes, record.timestamp) for record in records)


steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from("abc"),
        st.integers(0, 2),
        st.integers(COMMIT_INTERVAL_MS, 90_000),
    ),
    min_size=2,
    max_size=30,
)


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("caching", [False, True])
@given(steps=steps, partitions=st.integers(1, 3), ends=st.sets(st.integers(1, 29), max_size=3))
def test_the_join_meets_the_counts_of_its_time(caching, count, steps, partitions, ends):
    """Caching is the default; each record has a commit interval of its own."""
    chain = counted_chain(count, partitions, steps, caching=caching)
    live = results(chain, [[event] for event in chain.events])
    assert results(chain, [list(chain.events)]) == live
    assert (
        results(chain, cut_at(chain.events, sorted(end for end in ends if end < len(steps))))
        == live
    )


def test_an_interval_hides_the_counts_within_it():
    """Its change has the time of its last record: one before that does not meet it."""
    counted = [(0, "a", 0, 1)] * 4
    steps = [(0, "a", 0, 2_000), *counted, (1, "a", 0, 1), *counted, (1, "a", 0, 2_000)]
    chain = counted_chain(COUNTS["groups"], 1, steps, caching=True)
    [(_, value, time)] = results(chain, [list(chain.events)])
    assert (time, value) == (4009, b'{"N":10,"C":9}')
