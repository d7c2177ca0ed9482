"""May a query read what it reads? Not if that is, or follows from, what it writes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ksql.engine.errors import ReadsItself

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ksql.analysis.sources import FromSource
    from ksql.catalog.catalog import Catalog


def check_loop(name: str, topic: str, read: Iterable[FromSource], catalog: Catalog) -> None:
    """Refuse a query into ``name`` over ``topic`` that would get its own results to read.

    What counts are the topics: two streams over one topic read the same records.

    Example:
        ``CREATE STREAM B AS SELECT * FROM A;``, then ``CREATE OR REPLACE STREAM A WITH (..) AS
        SELECT * FROM B;``: a record would go A -> B -> A.
    Raises: ReadsItself, with the way.
    """
    ends = {origin.source.topic for origin in read}
    ways: dict[str, tuple[str, ...]] = {topic: (name,)}
    left = deque(ways)
    while left:
        at = left.popleft()
        if at in ends:
            raise ReadsItself(name, (*ways[at], name))
        for sink, target in _written_from(at, catalog):
            if target not in ways:
                ways[target] = (*ways[at], sink)
                left.append(target)


def _written_from(topic: str, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Return the results of the queries that read the topic: their names and topics."""
    for query in catalog.queries.values():
        if query.kind == "CST" or query.sink not in catalog.sources:
            continue
        sources = [catalog.sources[source] for source in query.sources if source in catalog.sources]
        if any(source.topic == topic for source in sources):
            yield query.sink, catalog.sources[query.sink].topic
