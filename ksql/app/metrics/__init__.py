"""The metrics of ``/metrics``, and the observer that samples lags and memory for them."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.app.metrics.collector import Metrics
from ksql.app.metrics.node_snapshot import take_snapshot
from ksql.app.metrics.observer import Observer
