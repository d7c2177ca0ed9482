"""``ksql demo-shop``: queries over a backlog of several days, each result checked at the end."""

from __future__ import annotations

from server.demo.shop.command import main

__all__ = ["main"]
