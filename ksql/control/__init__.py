"""A statement, from its text to its effect: statements, planning, the engine, the command log."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.control.doubt_resolver import DoubtResolver
from ksql.control.pull_metrics import BySite, PullCounter, PullMetrics
from ksql.control.rebuild_supervisor import RebuildSupervisor
