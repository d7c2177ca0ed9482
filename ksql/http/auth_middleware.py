"""Puts the guard before an application, with CORS headers for the pages of allowed origins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware

from ksql.http.access import Guard

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ksql.http.access import Access


def guard(app: FastAPI, access: Access) -> None:
    """Answer only permitted requests; call this after all other middleware has been added."""
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(access.origins),
            allow_methods=access.methods,
            allow_headers=access.headers,
        )
    app.add_middleware(Guard, access=access)
