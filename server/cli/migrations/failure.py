"""The failure of a migrations command, with all that its user has to know."""

from __future__ import annotations

from server.cli.client import ServerFailure, Unreachable


class MigrationFailed(Exception):
    """A command that could not do its work; the text is for the user."""


def reason_of(error: Exception) -> str:
    """Return the words of the server, or of whatever else failed."""
    return error.message if isinstance(error, ServerFailure) else str(error)


SERVER_ERRORS = (ServerFailure, Unreachable)
"""The exceptions of a call to the server."""
