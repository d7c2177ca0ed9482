"""A running query on Spark: start, supervision, replacement, metrics."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.spark.query.batch_limits import BatchLimits
    from ksql.spark.query.cut_over import CutOverCompletion
    from ksql.spark.query.preflight import Preflight
    from ksql.spark.query.query_metrics import *
    from ksql.spark.query.query_supervisor import QuerySupervisor
    from ksql.spark.query.runner import *
    from ksql.spark.query.spec import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "batch_limits": "BatchLimits",
            "cut_over": "CutOverCompletion",
            "preflight": "Preflight",
            "query_metrics": "BatchTimes DropCounts QueryMetrics StateSize Totals first_offsets",
            "query_supervisor": "QuerySupervisor",
            "runner": "BY_WORKERS READ SparkRunner",
            "spec": "Failure OnFailure RetryPolicy RunnerContext State unheard",
        },
    )
