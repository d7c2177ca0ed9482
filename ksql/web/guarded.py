"""Puts the guard before an application, and tells the pages that may ask that they may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware

from ksql.web.access import Guard

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ksql.web.access import Access


def guard(app: FastAPI, access: Access) -> None:
    """Answer only those who may ask; to be called when nothing else is put before the routes."""
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(access.origins),
            allow_methods=access.methods,
            allow_headers=access.headers,
        )
    app.add_middleware(Guard, access=access)
