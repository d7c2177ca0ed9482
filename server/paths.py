"""Which right a path needs where users have rights; statements are checked one by one.

A path without a row here is for administrators, so that a new one cannot be open by mistake. A test
requires a row for each route.
"""

from __future__ import annotations

import re
from typing import Final

from ksql.control.access import Need, Right
from server.api import DOCS, FILES, OPENAPI
from server.console import PATH as CONSOLE

ONLY_SERVERS: Final = frozenset(
    {"/stores/read", "/stores/processed", "/queries/reports", "/heartbeat", "/lag"}
)
OPERATION: Final = (Need(Right.OPERATE, "source", "*"),)
ADMINISTRATION: Final = (Need(Right.ADMIN, "source", "*"),)
_BY_STATEMENT: Final = (
    "/ksql",
    "/ksql/dry-run",
    "/query",
    "/query-stream",
    "/ws/query",
    "/inserts-stream",
    "/close-query",
    "/status",
    "/upgrades",
)
"""Paths whose statements, rows, queries and names are checked where they are read."""
_OF_ALL: Final = (
    "/",
    "/info",
    "/healthcheck",
    "/chc/live",
    "/chc/ready",
    "/livez",
    "/readyz",
    "/v1/metadata",
    "/v1/metadata/id",
    OPENAPI,
    DOCS,
    CONSOLE,
)
HISTORY: Final = "/metrics/history/"
_OF_OPERATORS: Final = ("/metrics", "/clusterStatus", "/stores/standings")
_FREE: Final = frozenset((*_BY_STATEMENT, *_OF_ALL))
_FREE_BELOW: Final = ("/status/", "/upgrades/", "/is_valid_property/", FILES + "/", CONSOLE + "/")
_OF_ADMINISTRATORS: Final = frozenset({"/ksql/terminate", *ONLY_SERVERS})
_RECORDS: Final = re.compile(r"/topics/[^/]+/records")
"""Whose topic is checked where it is read."""
_HOSTS: Final = re.compile(r"/stores/[^/]+/hosts")


def needs_of(path: str) -> tuple[Need, ...]:
    """Return the rights that a request to that path needs, besides those of its statements."""
    if path in _FREE or path.startswith(_FREE_BELOW) or _RECORDS.fullmatch(path):
        return ()
    if path in _OF_OPERATORS or path.startswith(HISTORY) or _HOSTS.fullmatch(path):
        return OPERATION
    return ADMINISTRATION


def is_listed(path: str) -> bool:
    """Return whether the path has a row here."""
    return path in _OF_ADMINISTRATORS or needs_of(path) is not ADMINISTRATION
