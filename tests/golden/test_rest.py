"""The answers of every route of the REST interface, to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.routing import Match

from ksql.cluster.replicas.read_request import Processed, ReadRejected, ReadRequest, ReadResult
from ksql.cluster.replicas.replica_status import ReplicaStatus
from ksql.control.statements.reports import HostReport, form
from ksql.control.statements.services import QueryHealth
from ksql.views.stores.base import Stored
from server.app import ROUTERS, create_app
from tests.golden.exchange import WEBSOCKET, Exchange
from tests.unit.docs.memory import DocumentService
from tests.unit.server.fakes import FakeService, FakeStream, created, rows

HERE = Path(__file__).parent
STATEMENTS, SERVERS, HEADLESS = "rest_statements.http", "rest_servers.http", "rest_headless.http"
UP_TO_DATE = ReplicaStatus(state="RUNNING", role="ACTIVE", position=3)
_UNREAD = {"HEAD", "OPTIONS"}


class Member(FakeService):
    """A server of several: it holds a copy, and reports on its queries."""

    def read_replica(self, ask: ReadRequest) -> ReadResult:
        if ask.query_id != "CTAS_T_1":
            raise ReadRejected(ReplicaStatus(state="RESTORING", role="NONE", position=0))
        stored = [None if key == b"x" else Stored(b"{}", 7) for key in ask.keys or ()]
        return ReadResult(UP_TO_DATE, answers=iter([stored]), seen=lambda: 3)

    def processed(self, query_id: str) -> Processed:
        return Processed({"s": {0: 9, 1: 4}}, "" if query_id == "CTAS_T_1" else "it has failed")

    def report(self, queries: Sequence[str]) -> bytes:
        health = QueryHealth(state="RUNNING", rows_in=5)
        return form(HostReport(health=dict.fromkeys(queries or ["CTAS_T_1", "CSAS_S_2"], health)))


def application(name: str):
    """The application whose answers that file has."""
    if name == STATEMENTS:
        return create_app(DocumentService())
    stream = FakeStream([rows((1, "a"))], ends_with="Limit Reached")
    service = Member([created()], stream=lambda: stream)
    return create_app(service, headless=name == HEADLESS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [STATEMENTS, SERVERS, HEADLESS])
def test_answers(golden, name):
    app = application(name)
    try:
        golden(HERE / name, lambda text: Exchange.of(text).run(app))
    finally:
        app.state.context.release()


def test_every_route_has_an_answer_on_record():
    app = application(SERVERS)
    app.state.context.release()
    exchanges = [
        Exchange.of(block)
        for name in (STATEMENTS, SERVERS)
        for block in (HERE / name).read_text("utf-8").strip().split("\n\n")
        if not all(line.startswith("-- ") for line in block.split("\n"))
    ]
    own = [route for route in app.routes if hasattr(route, "path")]
    unasked = [
        (method, route.path)
        for route in [*own, *(route for router in ROUTERS for route in router.routes)]
        for method in sorted(getattr(route, "methods", None) or {WEBSOCKET})
        if method not in _UNREAD
        and not any(_is_of(route, method, request) for request in exchanges)
    ]
    assert unasked == [(WEBSOCKET, "/docs-files")]  # a folder of files


def _is_of(route, method, request):
    kind = "websocket" if request.method == WEBSOCKET else "http"
    scope = {
        "type": kind,
        "method": request.method,
        "path": request.path.partition("?")[0],
        "root_path": "",
        "headers": [],
    }
    return request.method == method and route.matches(scope)[0] is Match.FULL
