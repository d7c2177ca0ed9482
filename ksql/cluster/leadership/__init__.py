"""Leader election: which server leads a service, and what its followers do."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.cluster.leadership.follower import Follower, ServiceEnded
from ksql.cluster.leadership.leadership import SILENCE_S, AnotherServer, Leadership
