"""Computes the offsets that a view must have reached to satisfy a consistency token.

A token names offsets of topics. Of such a topic itself that is the answer. A query's topic holds
their results once the query has processed them. A query commits its source position after its
writes, so the end of its topic at that moment covers all its results. So the way goes from the
topic that is asked for up to those that the token names, query by query.

What was found once holds for good and is remembered: a busy topic's end would else move on and on.
An offset after the end of its topic is of records that are gone, as the topic was deleted or made
again: it demands nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ksql.cluster.replicas.read_request import Processed
from ksql.core import KsqlError, PartitionId, Token, merged
from ksql.sql.catalog import Catalog, PersistentQuery
from ksql.views import TableNotReady

_REMEMBERED: Final = 1000

Ask = Callable[[str, str], Processed]
"""How far a query is: called with its id and the client's credentials. May raise NotFollowed."""


class ReadableEnds(Protocol):
    """Where topics end, also after what is not committed yet."""

    def __call__(self, topics: Iterable[str]) -> Mapping[PartitionId, int]:
        """Return the ends of those topics that there are."""


class NotFollowed(Exception):
    """A query has not processed yet what a token names."""


class TokenNotReached(TableNotReady):
    """The answer would lack what the client has seen already."""

    code = 50301

    def __init__(self, why: str, is_ready: Callable[[], bool], patience_s: float) -> None:
        KsqlError.__init__(
            self,
            "Timed out while waiting until the answer holds all that the consistency token names",
            detail=why,
            hint="Try again in a moment; without the token the answer is of what is there now.",
        )
        self.is_ready = is_ready
        self.patience_s = patience_s


class QueryStuck(KsqlError):
    """The answer would lack what the client has seen, and a query that failed is in the way.

    It is not waited for: nobody knows when it continues, if it does.
    """

    code = 50301

    def __init__(self, query_id: str, failure: str, behind: str) -> None:
        super().__init__(
            f"The query {query_id} has failed before it has processed all that the consistency "
            "token names",
            detail=f"{failure.rstrip('. ')}; {behind}",
            hint=f"See EXPLAIN {query_id}; without the token the answer is of what is there now.",
        )


class ConsistencyResolver:
    """The ways from tokens to topics; for any number of threads."""

    def __init__(self, catalog: Callable[[], Catalog], processed: Ask, ends: ReadableEnds) -> None:
        self._catalog = catalog
        self._processed = processed
        self.ends = ends
        self._seen: Catalog | None = None
        self._offsets: OrderedDict[tuple[str, bytes], Mapping[PartitionId, int]] = OrderedDict()
        self._lock = threading.Lock()

    def demands(
        self,
        topic: str,
        token: Token,
        here: Mapping[PartitionId, int] | None = None,
        credentials: str = "",
    ) -> Mapping[PartitionId, int]:
        """Return the offsets up to which a topic must have been read; none if any will do.

        ``here`` is how far this server has read it: so far it is there for certain.

        Raises: NotFollowed, QueryStuck, KsqlError.
        """
        if not token.positions:
            return {}
        catalog = self._catalog()
        with self._lock:
            if catalog is not self._seen:  # a topic of the same name may be another one
                self._seen = catalog
                self._offsets.clear()
        return _LineagePath(self, catalog, token, credentials).demands(topic, here or {})

    def is_known(self, query_id: str) -> bool:
        """Return whether there is such a persistent query."""
        return query_id in self._catalog().queries

    def processed(self, query_id: str, credentials: str) -> Processed:
        """Return how far a query is.

        Raises: NotFollowed.
        """
        return self._processed(query_id, credentials)

    def known(self, topic: str, token: Token) -> Mapping[PartitionId, int] | None:
        """Return what was found before."""
        with self._lock:
            return self._offsets.get((topic, token.digest()))

    def keep(
        self, catalog: Catalog, topic: str, token: Token, offsets: Mapping[PartitionId, int]
    ) -> None:
        """Remember what was found, unless the catalog has changed since."""
        with self._lock:
            if catalog is not self._seen:
                return
            self._offsets[topic, token.digest()] = offsets
            while len(self._offsets) > _REMEMBERED:
                self._offsets.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _LineagePath:
    """The search for one token, for one client."""

    following: ConsistencyResolver
    catalog: Catalog
    token: Token
    credentials: str

    def demands(self, topic: str, here: Mapping[PartitionId, int]) -> Mapping[PartitionId, int]:
        known = self.following.known(topic, self.token)
        if known is not None:
            return known
        named = self._there(topic, here)
        # a list: all that write it are to be looked at
        waited = [self._waited(query, topic) for query in _writers(self.catalog, topic)]
        offsets = merged((named, self.following.ends([topic]) if any(waited) else {}))
        self.following.keep(self.catalog, topic, self.token, offsets)
        return offsets

    def _waited(self, query: PersistentQuery, sink: str) -> bool:
        """Return whether a query had to process anything; it has.

        Raises: NotFollowed, QueryStuck.
        """
        waited = False
        for topic in sorted(_sources(self.catalog, query) - {sink}):
            offsets = self.demands(topic, {})
            if not offsets:
                continue
            waited = True
            progress = self.following.processed(query.id, self.credentials)
            at = progress.offsets.get(topic, {})
            for (_, partition), offset in sorted(offsets.items()):
                if at.get(partition, 0) < offset:
                    behind = (
                        f"the query {query.id} has processed partition {partition} of {topic} up "
                        f"to the offset {at.get(partition, 0)}; {offset} is asked for"
                    )
                    if progress.failure:
                        raise QueryStuck(query.id, progress.failure, behind)
                    raise NotFollowed(behind)
        return waited

    def _there(self, topic: str, here: Mapping[PartitionId, int]) -> Mapping[PartitionId, int]:
        """Return the offsets that the token names of a topic, but for those after its end."""
        every = self.token.of_topic(topic)
        named = {part: offset for part, offset in every.items() if offset}  # 0: of nothing
        if all(offset <= here.get(partition, 0) for partition, offset in named.items()):
            return named
        ends = self.following.ends([topic])
        return {
            partition: offset
            for partition, offset in named.items()
            if offset <= ends.get(partition, -1)
        }


def _writers(catalog: Catalog, topic: str) -> list[PersistentQuery]:
    return [query for query in catalog.queries.values() if _sink(catalog, query) == topic]


def _sink(catalog: Catalog, query: PersistentQuery) -> str:
    """Return the topic that a query writes; that of a SOURCE TABLE is where its rows are kept."""
    if query.sink:
        source = catalog.sources.get(query.sink)
        return "" if source is None else source.topic
    kept = (source.materialization for source in catalog.sources.values())
    return next((k.topic for k in kept if k is not None and k.query_id == query.id), "")


def _sources(catalog: Catalog, query: PersistentQuery) -> set[str]:
    sources = (catalog.sources.get(name) for name in query.sources)
    return {source.topic for source in sources if source is not None}
