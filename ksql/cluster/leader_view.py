"""The leader of the service as its followers see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteLeader:
    """The leader as another server sees it; silent if it has not been heard for a while."""

    host: str
    silent: bool
    troubled: Mapping[str, str]

    def state(self, query_id: str) -> str:
        """Return the state of a query there."""
        return "UNRESPONSIVE" if self.silent else self.troubled.get(query_id, "RUNNING")
