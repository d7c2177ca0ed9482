"""Leader election: which server leads a service, and what its followers do."""

from __future__ import annotations

from ksql.cluster.leadership.follower import Follower, ServiceEnded
from ksql.cluster.leadership.leadership import SILENCE_S, AnotherServer, Leadership

__all__ = [
    "SILENCE_S",
    "AnotherServer",
    "Follower",
    "Leadership",
    "ServiceEnded",
]
