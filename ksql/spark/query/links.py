"""Lists, for the launch of a query, those that write its topics and those that read its own."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ksql.core import KsqlError, is_exactly_once
from ksql.exec.dataflow import plan_of, read_topics, stated_settings
from ksql.spark.query.spec import Link

if TYPE_CHECKING:
    from ksql.core import QueryVersion
    from ksql.spark.session.runtime import SparkRuntime
    from ksql.sql.catalog import PersistentQuery


class Links:
    """The links by the versions' names in Spark; each launch looks at them as they are then."""

    def __init__(self, runtime: SparkRuntime, space: str) -> None:
        self._runtime = runtime
        self._space = space
        self.all: dict[str, Link] = {}
        self._begun = count(1)

    def begin(self, *queries: PersistentQuery) -> None:
        """Let the queries that start from now on know what these read and write."""
        for query in queries:
            self._begin(query)

    def _begin(self, query: PersistentQuery) -> None:
        try:
            plan = plan_of(query)
        except KsqlError:  # the query's own start reports it
            return
        exactly_once = is_exactly_once(stated_settings(query, plan))
        sources = tuple(read_topics(plan))
        name = query.version.spark_name(self._space)
        self.all[name] = Link(
            plan.sink.topic or "",
            sources,
            next(self._begun),
            exactly_once,
            self._space + query.version.query_id,
        )

    def rest(self, version: QueryVersion) -> None:
        """Have a query that stops or has failed waited for only for a time."""
        name = version.spark_name(self._space)
        if (link := self.all.get(name)) is not None:
            self.all[name] = link._replace(begun=0)
        self._runtime.rest(name)

    def replace(self, former: QueryVersion, query: PersistentQuery) -> None:
        """Have others wait for a query instead of a version of it that is there no more.

        They know the query before that version is forgotten: between these nobody would wait.
        """
        self._begin(query)
        name = query.version.spark_name(self._space)
        if (link := self.all.get(name)) is not None:
            self._runtime.announce(name, link)
        self.end(former)

    def end(self, version: QueryVersion) -> None:
        """Have nobody wait for a query that is there no more.

        A launch that lists it may be under way: it began before, so that it brings nothing back.
        """
        name = version.spark_name(self._space)
        self.all.pop(name, None)
        self._runtime.forget(name, next(self._begun))
