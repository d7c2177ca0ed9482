"""All sources, types and queries as one immutable snapshot; a change gives a new snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ksql.core import QueryId, QueryVersion, UnknownName, near, quote, visible
from ksql.core.types import SqlType
from ksql.sql.catalog.model import DataSource, FormerVersion, PersistentQuery, Rebuild


class UnknownSource(UnknownName):
    """A stream or table that does not exist."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"{quote(name)} does not exist.", near(name, visible(known)))


@dataclass(frozen=True)
class Catalog:
    """A snapshot; keeping an old one costs nothing, so a sandbox is just a variable.

    ``scattered`` are the topics to which a query of an earlier version has written windowed keys.
    There the windows of one key lie in several partitions, even if the query is gone. ``rebuilds``
    are the candidates of queries, ``former_versions`` the versions that are kept for a rollback.
    """

    sources: Mapping[str, DataSource] = field(default_factory=dict)
    types: Mapping[str, SqlType] = field(default_factory=dict)
    queries: Mapping[QueryId, PersistentQuery] = field(default_factory=dict)
    scattered: frozenset[str] = frozenset()
    rebuilds: Mapping[QueryId, Rebuild] = field(default_factory=dict)
    former_versions: Mapping[QueryId, FormerVersion] = field(default_factory=dict)

    def source(self, name: str) -> DataSource:
        """Return the source of that exact name.

        Raises: UnknownSource, with the names that look similar.
        """
        source = self.sources.get(name)
        if source is None:
            raise UnknownSource(name, tuple(self.sources))
        return source

    def with_source(self, source: DataSource) -> Catalog:
        """Add or replace a source."""
        return replace(self, sources={**self.sources, source.name: source})

    def without_source(self, name: str) -> Catalog:
        """Drop a source."""
        return replace(self, sources={k: v for k, v in self.sources.items() if k != name})

    def with_type(self, name: str, type_: SqlType) -> Catalog:
        """Add a custom type."""
        return replace(self, types={**self.types, name: type_})

    def without_type(self, name: str) -> Catalog:
        """Drop a custom type."""
        return replace(self, types={k: v for k, v in self.types.items() if k != name})

    def with_query(self, query: PersistentQuery) -> Catalog:
        """Add a query, or give a running one its new plan; a replaced query keeps its place."""
        return replace(self, queries={**self.queries, query.id: query})

    def without_query(self, query_id: QueryId) -> Catalog:
        """Forget a query, its candidate and its former version."""
        kept = self.without_rebuild(query_id).without_former(query_id)
        return replace(kept, queries={k: v for k, v in self.queries.items() if k != query_id})

    def with_rebuild(self, rebuild: Rebuild) -> Catalog:
        """Add a candidate of a query; there is one at most."""
        return replace(self, rebuilds={**self.rebuilds, rebuild.candidate.id: rebuild})

    def without_rebuild(self, query_id: QueryId) -> Catalog:
        """Forget a query's candidate."""
        return replace(self, rebuilds={k: v for k, v in self.rebuilds.items() if k != query_id})

    def with_former(self, former: FormerVersion) -> Catalog:
        """Keep a former version of a query, instead of an earlier one."""
        return replace(self, former_versions={**self.former_versions, former.query.id: former})

    def without_former(self, query_id: QueryId) -> Catalog:
        """Forget a query's former version."""
        return replace(
            self, former_versions={k: v for k, v in self.former_versions.items() if k != query_id}
        )

    def with_scattered(self, topic: str) -> Catalog:
        """Remember that the windows of a key lie anywhere in a topic."""
        return replace(self, scattered=self.scattered | {topic})

    def without_topic(self, topic: str) -> Catalog:
        """Forget a topic that is deleted."""
        return replace(self, scattered=self.scattered - {topic})

    def query(self, query_id: str) -> PersistentQuery | None:
        """Return the query of that id; ids compare without case."""
        upper = query_id.upper()
        return next((q for q in self.queries.values() if q.id.upper() == upper), None)

    def version_of(self, query_id: str) -> QueryVersion:
        """Return the version of a query that users see; the first one of a query not known."""
        query = self.queries.get(QueryId(query_id)) or self.query(query_id)
        return QueryVersion(QueryId(query_id)) if query is None else query.version

    @property
    def versions(self) -> tuple[QueryVersion, ...]:
        """The versions of the queries: those that run or are paused, candidates, former ones."""
        candidates = (rebuild.candidate for rebuild in self.rebuilds.values())
        formers = (former.query for former in self.former_versions.values())
        every = (*self.queries.values(), *candidates, *formers)
        return tuple(dict.fromkeys(query.version for query in every))

    def versions_of(self, query_id: str) -> set[QueryVersion]:
        """Return the versions of one query."""
        return {version for version in self.versions if version.query_id == query_id}

    def running(self, version: QueryVersion) -> PersistentQuery | None:
        """Return the query or candidate of that version, if it is there and not paused."""
        query = self.queries.get(version.query_id)
        if query is None or query.paused:
            return None
        if query.version == version:
            return query
        rebuild = self.rebuilds.get(version.query_id)
        candidate = None if rebuild is None else rebuild.candidate
        return candidate if candidate is not None and candidate.version == version else None

    @property
    def all_running(self) -> tuple[PersistentQuery, ...]:
        """The queries and candidates that are not paused, the oldest query first."""
        every = (self.running(version) for version in self.versions)
        return tuple(query for query in every if query is not None)

    def writers(self, name: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that write the source, the oldest first."""
        return tuple(q for q in self.queries.values() if q.sink == name)

    def writers_to(self, topic: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that write the topic, under whatever name, the oldest first."""
        over = self._over(topic)
        return tuple(q for q in self.queries.values() if q.sink in over)

    def readers(self, name: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that read the source, the oldest first."""
        return tuple(q for q in self.queries.values() if name in q.sources)

    def readers_from(self, topic: str) -> tuple[PersistentQuery, ...]:
        """Return the queries that read the topic, under whatever name, the oldest first.

        A query counts as well if only its candidate reads it.
        """
        over = self._over(topic)
        readers = (q for q in self.queries_and_candidates if not over.isdisjoint(q.sources))
        return tuple({reader.id: reader for reader in readers}.values())

    @property
    def queries_and_candidates(self) -> tuple[PersistentQuery, ...]:
        """The queries, the oldest first, and then the candidates that may become them."""
        candidates = (rebuild.candidate for rebuild in self.rebuilds.values())
        return (*self.queries.values(), *candidates)

    def _over(self, topic: str) -> set[str]:
        return {source.name for source in self.sources.values() if source.topic == topic}

    def derived(self, name: str) -> tuple[str, ...]:
        """Return the sources that were created from this one by CREATE .. AS SELECT."""
        return tuple(s.name for s in self.sources.values() if name in s.derived_from)
