"""Refuses statements on a server that runs a file of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ksql.control.statements import FILE
from ksql.core import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import APIRouter, FastAPI

_METHODS = ["GET", "POST", "DELETE"]


class Headless(NotFound):
    """A statement, a query or rows for a server that takes none."""

    def __init__(self) -> None:
        super().__init__(
            "the server takes no statements from clients: it runs a file of queries",
            hint=f"Change the file that its {FILE} names and start it again, or ask a server of "
            "another ksql.service.id that has no such file.",
        )


async def refuse() -> NoReturn:
    """Refuse a request.

    Raises: Headless.
    """
    raise Headless


def install(app: FastAPI, closed: Iterable[APIRouter]) -> None:
    """Have the application refuse what those routers would answer."""
    paths = {getattr(route, "path", "") for router in closed for route in router.routes}
    for path in sorted(paths - {""}):
        app.add_api_route(
            path, refuse, methods=_METHODS, include_in_schema=False, response_model=None
        )
