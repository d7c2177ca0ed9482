"""Two queries that write one stream give the same over a backlog as live."""

from __future__ import annotations

from tests.chains.cases import Chain, Link
from tests.chains.judge import lost, rows_of
from tests.chains.run import planned, run
from tests.cuts.cases import Event, Source

MINUTE_MS = 60_000
STEPS = 60
NAMES = "abcd"


def stream(name):
    return Source(name, "STREAM", "K", "STRING", {"N": "BIGINT"})


def records(number, topic):
    """One a minute, in order; those of each topic a second after those of the one before."""
    return [
        Event(topic, 0, NAMES[step % len(NAMES)], {"N": step}, step * MINUTE_MS + number * 1000)
        for step in range(STEPS)
    ]


def chain_of(*links, topics, caching=False):
    events = sorted(
        (event for at in enumerate(topics, 1) for event in records(*at)), key=lambda e: e.time
    )
    return Chain(tuple(map(stream, topics)), 1, links, tuple(events), 1, caching)


def contents(chain, batches):
    topics, running = run(chain, planned(chain), batches)
    sink = chain.links[-1].sink
    return [record for some in topics.of(sink).values() for record in some], list(lost(running))


def both_ways(chain):
    """The results of the last query live, and over a backlog."""
    live = contents(chain, [[event] for event in chain.events])
    return live, contents(chain, [list(chain.events)])


def test_two_writers_of_a_stream_over_a_backlog():
    chain = chain_of(
        Link("plain", "R0", "CREATE STREAM R0 AS SELECT K, N FROM S0;", 1, ordered=False),
        Link("inserted", "R0", "INSERT INTO R0 SELECT K, N FROM S1;", 1, ordered=False),
        Link(
            "window",
            "R2",
            "CREATE TABLE R2 AS SELECT K, COUNT(*) AS C FROM R0 WINDOW TUMBLING (SIZE 5 MINUTES, "
            "GRACE PERIOD 1 MINUTE) GROUP BY K;",
            1,
            ordered=True,
        ),
        topics=("S0", "S1"),
    )
    (live, no_errors), (backlog, errors) = both_ways(chain)
    assert no_errors == errors == []
    assert rows_of(live) == rows_of(backlog)
