"""A stream that is joined with a table which another query counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.chains.cases import Chain, Link
from tests.cuts.cases import Event, Source

COMMIT_INTERVAL_MS: Final = 2000
COUNTS: Final = {
    "groups": "SELECT K, COUNT(*) AS C FROM S0 GROUP BY K",
    "groups, not combined before the exchange": "SELECT K, COUNT(*) AS C, "
    "SUM(CAST(N AS DECIMAL(9, 0))) AS D FROM S0 GROUP BY K",
}
_JOIN = "CREATE STREAM R1 AS SELECT S1.K AS K, S1.N AS N, R0.C AS C FROM S1 JOIN R0 ON S1.K = R0.K;"

Step = tuple[int, str, int, int]
"""Number of the source, key, partition, and milliseconds since the step before."""


def counted_chain(
    count: str, partitions: int, steps: Sequence[Step], *, caching: bool, start_ms: int = 0
) -> Chain:
    """The chain whose sources have a record for each step."""
    sources = [Source(name, "STREAM", "K", "STRING", {"N": "BIGINT"}) for name in ("S0", "S1")]
    links = (
        Link("grouped", "R0", f"CREATE TABLE R0 AS {count};", partitions, ordered=True),
        Link("joined", "R1", _JOIN, partitions, ordered=True),
    )
    time, events = start_ms, []
    for number, (source, key, partition, pause_ms) in enumerate(steps):
        time += pause_ms
        events.append(Event(f"S{source}", partition % partitions, key, {"N": number}, time))
    return Chain(tuple(sources), partitions, links, tuple(events), 2, caching)
