"""The web console: files for a browser, which then asks the REST API as any other client does."""

from __future__ import annotations

from server.console.site import ENABLED, PATH, install

__all__ = ["ENABLED", "PATH", "install"]
