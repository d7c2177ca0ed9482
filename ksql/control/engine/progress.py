"""The progress of a command, as ``/status`` shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StatusName = Literal["QUEUED", "PARSING", "EXECUTING", "RUNNING", "TERMINATED", "SUCCESS", "ERROR"]


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """How far a distributed statement has come."""

    status: StatusName
    message: str
    query_id: str | None = None
