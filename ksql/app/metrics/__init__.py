"""The metrics of ``/metrics``, and the looks that they are of."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.app.metrics.collector import Metrics
from ksql.app.metrics.gather import gather
from ksql.app.metrics.observer import Observer
