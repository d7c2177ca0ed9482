"""Opens queries that answer to a client: pull, push, PRINT."""

from __future__ import annotations

import secrets
import threading
import uuid
from typing import TYPE_CHECKING, NamedTuple

from ksql.analysis.relation import sources_of
from ksql.base.errors import KsqlError, StatementError, UnknownName
from ksql.base.ident import similar
from ksql.dataflow import rights
from ksql.dataflow.starts import read_topics
from ksql.engine.plan_queries import transient_plan
from ksql.processors.bounded import SETTING
from ksql.query.clauses import check_clauses, check_stream
from ksql.query.limits import unlimited
from ksql.query.printing import PrintQuery
from ksql.query.pull import (
    PullQuery,
    TableNotReady,
    bind_pull,
    bind_stream_pull,
    needs_all_rows,
    raw_query,
)
from ksql.query.push import PushQuery, TooManyPushQueries, check_limit
from ksql.query.scalable import is_scalable
from ksql.statements.answers import RequestFailed
from ksql.statements.execute import parsed_one, session
from ksql.statements.services import RunningPush
from ksql.syntax import ast
from ksql.syntax.parser import split

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ksql.base.config import Settings
    from ksql.catalog.model import DataSource
    from ksql.engine.engine import Engine
    from ksql.kafka.admin import Admin
    from ksql.kafka.settings import KafkaSettings
    from ksql.plan.nodes import QueryPlan
    from ksql.query.limits import Limits
    from ksql.query.materialize import Materialized, Materializer
    from ksql.query.results import ResultStream, TextStream
    from ksql.statements.services import Request, Services
    from ksql.stores.base import Rows

_READY_S = 10.0
_ISOLATION = "ksql.query.pull.isolation.level"
_LAG = "ksql.query.pull.max.allowed.offset.lag"


class _Open(NamedTuple):
    """A push query that runs, and what lists say of it."""

    query: PushQuery
    told: RunningPush


class Reads:
    """The transient queries of this server."""

    def __init__(
        self,
        engine: Engine,
        kafka: KafkaSettings,
        admin: Admin,
        materializer: Materializer,
        now_ms: Callable[[], int],
        await_first_batch: Callable[[str, float], bool] = lambda _query_id, _timeout_s: True,
        limits: Limits | None = None,
    ) -> None:
        """``await_first_batch``: whether the query has looked at its sources, after so long."""
        self._limits = limits or unlimited()
        self._await_first_batch = await_first_batch
        self._begun: set[str] = set()
        self._engine = engine
        self._kafka = kafka
        self._admin = admin
        self._materializer = materializer
        self._now_ms = now_ms
        self._open: dict[str, _Open] = {}
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
    ) -> ResultStream | TextStream:
        """Start the one query of the text; a push query with or without tombstones.

        Raises: RequestFailed.
        """
        shown = text
        request = session(services, settings, properties, variables)
        try:
            raw = split(text)
            if len(raw) != 1:
                raise StatementError(
                    f"Expected exactly one KSQL statement; found {len(raw)} instead"
                )
            shown = raw[0].text
            parsed = parsed_one(raw[0], request)
            match parsed.statement:
                case ast.Query(emit=None) as query:
                    return self._limits.pull(lambda: self._pull(query, request))
                case ast.Query() as query:
                    return self._limits.push(
                        lambda: self._push(query, request, parsed.text, tombstones=tombstones)
                    )
                case ast.PrintTopic() as print_:
                    return self._print(print_)
                case _:
                    raise StatementError(
                        "The statement is not a query; send it to the /ksql endpoint."
                    )
        except KsqlError as error:
            raise RequestFailed(error, shown) from error

    def close(self, query_id: str) -> bool:
        """End a push query of this server."""
        with self._lock:
            found = self._open.pop(query_id, None)
        if found is None:
            return False
        found.query.close()
        return True

    def pushes(self) -> list[RunningPush]:
        """Return the push queries that run, the oldest first."""
        with self._lock:
            return [each.told for each in self._open.values()]

    def close_all(self) -> None:
        """End all of them."""
        with self._lock:
            running = dict(self._open)
        for each in running.values():
            each.query.end()  # so that closing them one by one waits for their polls together
        for query_id in running:
            self.close(query_id)

    # --- pull

    def stores(self, source: DataSource, settings: Settings) -> Mapping[int, Rows]:
        """Return a table's partitions as a request with these settings reads them.

        Raises: TableNotReady.
        """
        committed = settings.text(_ISOLATION).lower() == "read_committed"
        found = self._ready(source, settings.number(_LAG), committed=committed)
        return found.rows(committed=committed)

    def _ready(self, source: DataSource, lag: int, *, committed: bool) -> Materialized:
        """Return a table that lacks so many records at most.

        Raises: TableNotReady.
        """
        query_id = str(source.created_by)
        if query_id not in self._begun:
            return self._first_answer(source, query_id, lag, committed=committed)
        found = self._materializer.filled(source, lag, committed=committed)
        if found is None:
            found = self._materializer.await_table(source, {}, _READY_S, lag, committed=committed)
        if found is None:
            raise self._not_ready(source)
        return found

    def _first_answer(
        self, source: DataSource, query_id: str, lag: int, *, committed: bool
    ) -> Materialized:
        """For a table that was just made, no answer is better than an empty one."""
        if not self._await_first_batch(query_id, _READY_S):
            raise TableNotReady(source.name, reason="its query has not finished its first batch")
        ends = self._admin.end_offsets([source.topic])
        found = self._materializer.await_table(source, ends, _READY_S, lag, committed=committed)
        if found is None:
            raise self._not_ready(source)
        if lag == 0:
            self._begun.add(query_id)
        return found

    def _not_ready(self, source: DataSource) -> TableNotReady:
        found = self._materializer
        return TableNotReady(source.name, found.missing(source), found.problem)

    def _pull(self, query: ast.Query, request: Request) -> ResultStream:
        query_id = f"query_{self._now_ms()}"
        source = query.source
        name = source.name if isinstance(source, ast.SourceRef) else ""
        found = self._engine.catalog.sources.get(name)
        if found is not None and found.kind == "STREAM":
            check_clauses(query, self._engine.catalog, request.settings, self._engine.functions)
            check_stream(request.settings)
            return self._pull_stream(query, found, query_id, request)
        for each in sources_of(source, self._engine.catalog):
            rights.check_read(each.source.topic)
        pull: PullQuery = bind_pull(
            query,
            self._engine.catalog,
            self._engine.functions,
            request.settings,
            _Tables(self, request.settings),
            query_id,
            self._engine.registry,
        )
        return pull

    def _pull_stream(
        self, query: ast.Query, source: DataSource, query_id: str, request: Request
    ) -> ResultStream:
        """Return the stream's rows, behind them the clauses that need all rows first."""
        if not needs_all_rows(query, self._engine.functions):
            return self._rows_of(query, query_id, request)
        over = bind_stream_pull(
            query, self._engine.catalog, self._engine.functions, request.settings, query_id
        )
        return over(self._rows_of(raw_query(query, source), query_id, request))

    def _rows_of(self, query: ast.Query, query_id: str, request: Request) -> PushQuery:
        context = self._engine.context(request.settings)
        plan = transient_plan(query_id, query, context)
        topics = sorted(read_topics(plan))
        return PushQuery(
            plan,
            self._engine.functions,
            self._kafka,
            self._admin.begin_offsets(topics),
            until=self._admin.end_offsets(topics),
            limit=query.limit,
            registry=self._engine.registry,
            state_bytes=request.settings.number(SETTING),
        )

    # --- push

    def _push(
        self, query: ast.Query, request: Request, text: str, *, tombstones: bool
    ) -> ResultStream:
        check_limit(query)
        limit = request.settings.number("ksql.max.push.queries")
        if len(self._open) >= limit:
            raise TooManyPushQueries(limit)
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
        start, topics = self._starts(plan), sorted(read_topics(plan))
        push = PushQuery(
            plan,
            self._engine.functions,
            self._kafka,
            start,
            present=lambda: self._admin.end_offsets(topics) if len(start) > 1 else {},
            limit=query.limit,
            on_end=self._ended,
            registry=self._engine.registry,
            state_bytes=request.settings.number(SETTING),
            keyed=scalable and bool(self._engine.catalog.source(source.name).schema.key),
            tombstones=tombstones,
        )
        with self._lock:
            self._open[query_id] = _Open(push, RunningPush(text, plan))
        return push

    def _ended(self, query_id: str) -> None:
        with self._lock:
            self._open.pop(query_id, None)

    def _starts(self, plan: QueryPlan) -> dict[tuple[str, int], int]:
        wanted = read_topics(plan)
        early = [topic for topic, start in wanted.items() if start == "earliest"]
        late = [topic for topic, start in wanted.items() if start == "latest"]
        found = self._admin.begin_offsets(early) if early else {}
        return found | (self._admin.end_offsets(late) if late else {})

    # --- PRINT

    def _print(self, stmt: ast.PrintTopic) -> TextStream:
        rights.check_read(stmt.topic, "print")
        known = self._admin.topics()
        if stmt.topic not in known:
            raise UnknownName(
                f"Could not find topic '{stmt.topic}', or the KSQL user does not have permissions "
                "to list the topic. Topic names are case-sensitive.",
                similar(stmt.topic, known, count=3),
                span=stmt.span,
            )
        ask = self._admin.begin_offsets if stmt.from_beginning else self._admin.end_offsets
        return PrintQuery(
            self._kafka,
            ask([stmt.topic]),
            interval=stmt.interval,
            limit=stmt.limit,
            registry=self._engine.registry,
        )


class _Tables:
    """The tables as one request reads them."""

    def __init__(self, reads: Reads, settings: Settings) -> None:
        self._reads = reads
        self._settings = settings

    def stores(self, source: DataSource) -> Mapping[int, Rows]:
        """Return a table's partitions.

        Raises: TableNotReady.
        """
        return self._reads.stores(source, self._settings)
