"""Opens queries that answer to a client: pull, push, PRINT."""

from __future__ import annotations

import secrets
import threading
import uuid
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ksql.cluster.replicas import Caller
from ksql.control import BySite, PullCounter, PullMetrics
from ksql.control.access import Need, Right, current, needs
from ksql.control.planning import transient_plan
from ksql.control.statements import OpenPush, RequestFailed, single
from ksql.core import (
    TOO_MANY_PUSH_QUERIES,
    KsqlError,
    StatementError,
    UnknownName,
    merged,
    similar,
    visible,
)
from ksql.exec.dataflow import read_topics, topic_acl
from ksql.exec.operators import SETTING
from ksql.formats import RegisteredReader
from ksql.serving import point_queries
from ksql.serving.browsing import BrowsedRecords, BrowseRequest, browse
from ksql.serving.clauses import check_clauses, check_stream
from ksql.serving.feed import GuardedFeed
from ksql.serving.limits import Limits, unlimited
from ksql.serving.point_queries import PointQueryCache, PreparedQuery, prepare_query
from ksql.serving.printing import PrintQuery
from ksql.serving.pull import (
    BoundPull,
    PullQuery,
    bind_stream_pull,
    bound_pull,
    needs_all_rows,
    raw_query,
    restarted_if_closed,
)
from ksql.serving.push import SHOW_DELETES, PushQuery, check_limit, check_mark, is_scalable
from ksql.sql.binder import sources_of
from ksql.sql.syntax import ast
from ksql.views import TableNotReady, TopicExtents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ksql.control.engine import Engine
    from ksql.control.statements import Request, Services
    from ksql.core import Settings, Span
    from ksql.serving.feed import Feed, Feeds, Offsets
    from ksql.serving.limits import ReadMetrics
    from ksql.serving.results import ResultStream, TextStream
    from ksql.serving.table_provider import AllTables, OpenTables
    from ksql.sql.catalog import DataSource
    from ksql.sql.plan import QueryPlan


class _Open(NamedTuple):
    """A push query that runs, and what lists say of it."""

    query: PushQuery
    running: OpenPush


class QueryService:
    """The transient queries of this server."""

    def __init__(
        self,
        engine: Engine,
        feeds: Feeds,
        extents: TopicExtents,
        tables: AllTables,
        now_ms: Callable[[], int],
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or unlimited()
        self._tables = tables
        self._engine = engine
        self._feeds = feeds
        self._extents = extents
        self._now_ms = now_ms
        self._point_queries = PointQueryCache()
        self._pull_counter = PullCounter(now_ms)
        self._open: dict[str, _Open] = {}
        self._places: set[object] = set()
        """Of queries that begin, and of PRINT."""
        self._lock = threading.Lock()

    def open(
        self,
        text: str,
        services: Services,
        settings: Settings,
        properties: Mapping[str, str],
        variables: Mapping[str, str],
        *,
        tombstones: bool = True,
        caller: Caller | None = None,
    ) -> ResultStream | TextStream:
        """Start the one query of the text; a push query with or without tombstones.

        ``caller``: what the request says of the replicas that it is answered from.

        Raises: RequestFailed.
        """
        point_query, caller = point_queries.point_query_of(text), caller or Caller()
        made_of = (self._engine.catalog, self._engine.functions, settings)
        if point_query is not None:
            prepared = self._point_queries.find(point_query, properties, made_of)
            if prepared is not None:
                _admit(prepared, text)
                return self._looked_up(prepared, point_query.value, text, caller)

        request, raw, parsed = single(text, services, settings, properties, variables)

        def bound(plan: BoundPull) -> None:
            if point_query is None:
                return
            prepared_query = prepare_query(
                point_query, raw, plan, self._engine.functions, request.settings
            )
            if prepared_query is not None:
                self._point_queries.keep(point_query, properties, made_of, prepared_query)

        try:
            match parsed.statement:
                case ast.Query(emit=None) as query:
                    return self._pull(query, request, bound, caller)
                case ast.Query() as query:
                    return self._limits.push(
                        lambda: self._push(query, request, parsed.text, tombstones=tombstones)
                    )
                case ast.PrintTopic() as print_:
                    return self._print(print_, request)
                case _:
                    raise StatementError(
                        "The statement is not a query; send it to the /ksql endpoint."
                    )
        except KsqlError as error:
            raise RequestFailed(error, raw.text) from error

    def at_once(
        self, text: str, settings: Settings, properties: Mapping[str, str], caller: Caller
    ) -> ResultStream | None:
        """Start a query that waits for nothing; None for any other, which ``open`` starts.

        It is a look-up by key that is planned already, in stores of this server.
        Raises: RequestFailed.
        """
        point_query = point_queries.point_query_of(text)
        if point_query is None or caller.info or caller.token is not None:
            return None
        made_of = (self._engine.catalog, self._engine.functions, settings)
        prepared = self._point_queries.find(point_query, properties, made_of)
        if prepared is None or not prepared.plain:
            return None
        if not self._tables.at_hand(prepared.table.source, prepared.settings):
            return None
        _admit(prepared, text)
        return self._looked_up(prepared, point_query.value, text, caller)

    def close(self, query_id: str) -> bool:
        """End a push query of this server; False for one that the user may not end, too."""
        with self._lock:
            push = self._open.get(query_id)
            if push is None or not current().sees_push(push.running.user):
                return False
            del self._open[query_id]
        push.query.close()
        return True

    def pushes(self) -> list[OpenPush]:
        """Return the push queries that run, the oldest first."""
        with self._lock:
            return [push.running for push in self._open.values()]

    @property
    def metrics(self) -> ReadMetrics:
        """The counts of the queries that have ended."""
        return self._limits.metrics

    def pull_counts(self) -> Mapping[str, PullMetrics]:
        """Return the counts of pull queries by table or stream."""
        return self._pull_counter.all()

    def pulls(self, host: str) -> Callable[[str], Mapping[str, PullMetrics]]:
        """Return what counts the pull queries of a table or stream that this host has answered."""

        def metrics(name: str) -> Mapping[str, PullMetrics]:
            counts = self._pull_counter.of(name)
            return {host: counts} if counts.total else {}

        return metrics

    def close_all(self) -> None:
        """End all of them."""
        with self._lock:
            running = dict(self._open)
        for push in running.values():
            push.query.end()  # so that closing them one by one waits for their polls together
        for query_id in running:
            self.close(query_id)

    # --- pull

    def _pull(
        self,
        query: ast.Query,
        request: Request,
        bound: Callable[[BoundPull], None],
        caller: Caller,
    ) -> ResultStream:
        """Return a query over tables, after its plan was given to ``bound``, or over a stream."""
        source = query.source
        name = source.name if isinstance(source, ast.SourceRef) else ""
        data_source = self._engine.catalog.sources.get(name)
        if data_source is not None and data_source.kind == "STREAM":
            return self._counted(
                lambda: self._pull_stream(query, data_source, request, caller),
                [name],
                lambda: {name: BySite(local=1)},
            )
        sources = [table.source for table in sources_of(source, self._engine.catalog)]
        for table in sources:
            topic_acl.check_read(table.topic)
        tables = self._tables.opened(request.settings, caller)
        return self._counted(
            lambda: self._pull_tables(query, request, bound, tables, caller),
            [table.name for table in sources],
            tables.sites,
        )

    def _counted(
        self,
        start: Callable[[], ResultStream],
        names: Sequence[str],
        sites: Callable[[], Mapping[str, BySite]],
    ) -> ResultStream:
        """Start a query within the limits; count it once it has ended.

        One that waits for its table is started again, and counts then.
        """

        def ended(failed: bool) -> None:
            self._pull_counter.add(names, sites(), failed=failed)

        def started() -> ResultStream:
            try:
                return start()
            except TableNotReady:
                raise
            except KsqlError:
                ended(failed=True)
                raise

        return self._limits.pull(started, ended)

    def _pull_tables(
        self,
        query: ast.Query,
        request: Request,
        bound: Callable[[BoundPull], None],
        tables: OpenTables,
        caller: Caller,
    ) -> ResultStream:
        plan = bound_pull(query, self._engine.catalog, self._engine.functions, request.settings)
        pull = plan.opened(
            self._engine.functions,
            request.settings,
            tables,
            f"query_{self._now_ms()}",
            self._engine.registry,
        )
        pull.replicas = tables.freshness if caller.info else None
        pull.host = tables.last_host if plan.is_plain else None
        pull.token = None if caller.token is None else tables.token
        bound(plan)
        return pull

    def _looked_up(
        self, prepared_query: PreparedQuery, value: str | int, text: str, caller: Caller
    ) -> ResultStream:
        """Start a query that is planned already.

        Raises: RequestFailed.
        """
        source = prepared_query.table.source
        tables = self._tables.opened(prepared_query.settings, caller)

        def start() -> ResultStream:
            def pull_query() -> PullQuery:
                return prepared_query.query(value, tables.stores(source), f"query_{self._now_ms()}")

            pull = pull_query()
            pull.rows = restarted_if_closed(pull.rows, lambda: pull_query().rows)
            pull.replicas = tables.freshness if caller.info else None
            pull.host = tables.last_host
            pull.token = None if caller.token is None else tables.token
            pull.quick = pull.quick and not (tables.far or pull.replicas or pull.token)
            return pull

        try:
            return self._counted(start, [source.name], tables.sites)
        except KsqlError as error:
            raise RequestFailed(error, text[prepared_query.begin :].rstrip()) from error

    def _pull_stream(
        self,
        query: ast.Query,
        source: DataSource,
        request: Request,
        caller: Caller,
    ) -> ResultStream:
        """Return the stream's rows, after them the clauses that need all rows first."""
        query_id = f"query_{self._now_ms()}"
        check_clauses(query, self._engine.catalog, request.settings, self._engine.functions)
        check_stream(request.settings)
        if not needs_all_rows(query, self._engine.functions):
            return self._rows_of(query, query_id, request, caller)
        over = bind_stream_pull(
            query, self._engine.catalog, self._engine.functions, request.settings, query_id
        )
        return over(self._rows_of(raw_query(query, source), query_id, request, caller))

    def _rows_of(
        self, query: ast.Query, query_id: str, request: Request, caller: Caller
    ) -> PushQuery:
        context = self._engine.context(request.settings)
        plan = transient_plan(query_id, query, context)
        topics = sorted(read_topics(plan))
        tables = self._tables.opened(request.settings, caller)
        until = merged((tables.demands(topics), self._extents.end_offsets(topics)))
        push = PushQuery(
            plan,
            self._engine.functions,
            self._feed(query, lambda: self._extents.begin_offsets(topics), _unlisted),
            until=until,
            limit=query.limit,
            registry=self._engine.registry,
            state_bytes=request.settings.number(SETTING),
        )
        if caller.token is not None:
            push.token = partial(caller.token.with_, until)
        return push

    # --- push

    def _push(
        self, query: ast.Query, request: Request, text: str, *, tombstones: bool
    ) -> ResultStream:
        check_limit(query)
        leave = self._take_place(request.settings)
        try:
            return self._begun_push(query, request, text, tombstones=tombstones)
        finally:
            leave()

    def _take_place(self, settings: Settings) -> Callable[[], None]:
        """Take a place among the queries that run; return what leaves it.

        Raises: TOO_MANY_PUSH_QUERIES.
        """
        limit, place = settings.number("ksql.max.push.queries"), object()

        def leave() -> None:
            with self._lock:
                self._places.discard(place)

        with self._lock:
            if len(self._open) + len(self._places) >= limit:
                raise TOO_MANY_PUSH_QUERIES(limit=limit)
            self._places.add(place)
        return leave

    def _begun_push(
        self, query: ast.Query, request: Request, text: str, *, tombstones: bool
    ) -> ResultStream:
        source = query.source
        while isinstance(source, ast.Join):
            source = source.left
        scalable = is_scalable(query, self._engine.catalog, request.settings)
        query_id = (
            f"SCALABLE_PUSH_QUERY_{uuid.uuid4()}"
            if scalable
            else f"transient_{source.name}_{secrets.randbits(63)}"
        )
        plan = transient_plan(query_id, query, self._engine.context(request.settings))
        show = request.settings.text(SHOW_DELETES).lower()
        if show == "true" and not tombstones:
            check_mark(plan)
        start, topics = self._starts(plan), sorted(read_topics(plan))
        push = PushQuery(
            plan,
            self._engine.functions,
            self._feed(query, lambda: start, lambda: self._ended(query_id)),
            present=lambda: self._extents.end_offsets(topics) if len(start) > 1 else {},
            limit=query.limit,
            registry=self._engine.registry,
            state_bytes=request.settings.number(SETTING),
            keyed=scalable and bool(self._engine.catalog.source(source.name).schema.key),
            tombstones=tombstones if show == "auto" else show == "true",
            marked=show == "true",
        )
        with self._lock:
            self._open[query_id] = _Open(push, OpenPush(text, plan, user=current().name))
        return push

    def _ended(self, query_id: str) -> None:
        with self._lock:
            self._open.pop(query_id, None)

    def _starts(self, plan: QueryPlan) -> dict[tuple[str, int], int]:
        topics = read_topics(plan)
        early = [topic for topic, start in topics.items() if start == "earliest"]
        late = [topic for topic, start in topics.items() if start == "latest"]
        offsets = dict(self._extents.begin_offsets(early)) if early else {}
        return offsets | dict(self._extents.end_offsets(late) if late else {})

    # --- PRINT

    def _print(self, stmt: ast.PrintTopic, request: Request) -> TextStream:
        """Start PRINT, which costs what a push query does, and counts as one."""
        self._check_topic(stmt.topic, "print", stmt.span)
        ask = self._extents.begin_offsets if stmt.from_beginning else self._extents.end_offsets
        leave = self._take_place(request.settings)
        try:
            feed = self._feed(stmt, lambda: ask([stmt.topic]), leave)()
        except BaseException:
            leave()
            raise
        return PrintQuery(
            feed, interval=stmt.interval, limit=stmt.limit, registry=self._engine.registry
        )

    def _feed(
        self,
        statement: ast.Query | ast.PrintTopic,
        start: Callable[[], Offsets],
        ended: Callable[[], None],
    ) -> Callable[[], Feed]:
        """Return what begins to read for a statement; it ends with the right to read."""
        requester, needed = current(), needs(statement, self._engine.catalog)

        def begun() -> Feed:
            feed = self._feeds(start(), ended)
            if requester.renewed is None:
                return feed
            return GuardedFeed(feed, lambda: requester.still(needed))

        return begun

    # --- records of a topic

    def browse(self, ask: BrowseRequest) -> BrowsedRecords:
        """Return some records of a topic as text; it waits for none.

        Raises: NotPermitted, UnknownName, INTERNAL_TOPIC, UnknownPartition.
        """
        current().demand((Need(Right.READ, "topic", ask.topic),), ask.topic)
        self._check_topic(ask.topic, "read")
        registry = self._engine.registry
        registered = None if registry is None else RegisteredReader(registry)
        return browse(ask, self._extents, self._feeds, registered)

    def _check_topic(self, topic: str, doing: str, span: Span | None = None) -> None:
        topic_acl.check_read(topic, doing)
        known = self._extents.topics()
        if topic not in known:
            raise UnknownName(
                f"Could not find topic '{topic}', or the KSQL user does not have permissions "
                "to list the topic. Topic names are case-sensitive.",
                similar(topic, visible(known, "topic"), count=3),
                span=span,
            )


def _admit(prepared: PreparedQuery, text: str) -> None:
    """Check that the user may read the table of a query that is planned already.

    Raises: RequestFailed.
    """
    try:
        current().admit_row(prepared.table.source.name, Right.READ, text[prepared.begin :].rstrip())
    except KsqlError as error:
        raise RequestFailed(error, text[prepared.begin :].rstrip()) from error


def _unlisted() -> None:
    """Do nothing: these queries are in no list that they would have to leave."""
