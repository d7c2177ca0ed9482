"""The web console: files for a browser, which then asks the REST API as any other client does."""

from __future__ import annotations

from server.console.site import ENABLED, install

__all__ = ["ENABLED", "install"]
