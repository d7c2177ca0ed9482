"""The report of a server on its queries, for the other servers of the service.

The form has a version; a server reads only those that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from ksql.control.pull_metrics import PullMetrics
from ksql.control.statements.services import OpenPush, QueryHealth, Services
from ksql.control.statements.upgradereport import UpgradeReport
from ksql.core import versioned_json
from ksql.sql.plan import codec

if TYPE_CHECKING:
    from ksql.core import QueryId
    from ksql.functions import Functions

VERSION: Final = 1
PATH: Final = "/queries/reports"
QUERY: Final = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDetails:
    """The facts of a query that are dearer than its health; see ``Monitor``."""

    skipped: int = 0
    committed: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    application: str = ""
    upgrade: UpgradeReport | None = None
    spark_plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReport:
    """A push query: its text, and its plan as it is stored."""

    text: str
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """The queries of a server by their ids, those that were asked for in detail, and the pushes.

    ``pulls`` are its pull queries by table or stream; servers of before name none.
    """

    health: Mapping[str, QueryHealth] = field(default_factory=dict)
    details: Mapping[str, QueryDetails] = field(default_factory=dict)
    pushes: Sequence[PushReport] = ()
    pulls: Mapping[str, PullMetrics] = field(default_factory=dict)

    def running(self, functions: Functions, host: str) -> list[OpenPush]:
        """Return the push queries as those of a server.

        Raises: UnreadablePlan.
        """
        return [
            OpenPush(push.text, codec.loads(push.plan, functions), host) for push in self.pushes
        ]


def report(services: Services, queries: Sequence[str]) -> HostReport:
    """Return this server's report: the details of those queries or, without any, all in short."""
    known = services.engine.catalog.queries
    if queries:
        chosen = [query_id for query_id in known if query_id in queries]
        return HostReport(
            health={query_id: services.monitor.health(query_id) for query_id in chosen},
            details={query_id: details(services, query_id) for query_id in chosen},
        )
    return HostReport(
        health={query_id: services.monitor.health(query_id) for query_id in known},
        pushes=[
            PushReport(text=push.text, plan=codec.dumps(push.plan)) for push in services.pushes()
        ],
        pulls={
            name: pulls
            for name in services.engine.catalog.sources
            for pulls in services.pulls(name).values()
        },
    )


def details(services: Services, query_id: QueryId) -> QueryDetails:
    """Return what this server knows of a query."""
    monitor, query = services.monitor, services.engine.catalog.query(query_id)
    since = -1 if query is None else query.started_at_offset
    return QueryDetails(
        skipped=monitor.skipped(query_id),
        committed=monitor.committed(query_id),
        application=monitor.application(query_id),
        upgrade=services.history.last(query_id, since),
        spark_plan=monitor.spark_plan(query_id),
    )


@cache
def _adapter() -> TypeAdapter[HostReport]:
    return TypeAdapter(HostReport)


def form(host_report: HostReport) -> bytes:
    """Return a report as it is sent."""
    plain = _adapter().dump_python(host_report, mode="json")
    return orjson.dumps({"version": VERSION, "report": plain}, option=orjson.OPT_NON_STR_KEYS)


def of_form(data: bytes) -> HostReport:
    """Return the report of a form.

    Raises: ValueError, NewerVersion.
    """
    body = versioned_json.parse(data)
    versioned_json.version_of(body, VERSION)
    try:
        return _adapter().validate_python(body.get("report"))
    except ValidationError as error:
        raise ValueError(f"{error.error_count()} of its fields cannot be read") from error
