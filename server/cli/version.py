"""The terminal's version."""

from __future__ import annotations

import importlib.metadata

PACKAGE = "ksql-spark"


def cli_version() -> str:
    """Return the installed package's version; ``dev`` when it runs from a source tree."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return "dev"
