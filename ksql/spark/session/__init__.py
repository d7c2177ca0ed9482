"""Spark's JVM and session, and what they are given at their start."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.spark.session.cds_archive import *
    from ksql.spark.session.jvm import *
    from ksql.spark.session.runtime import SparkRuntime
    from ksql.spark.session.source import ISOLATION
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cds_archive": "JvmHome WRITE forget_others prepared_stand",
            "jvm": "SparkSettings is_local",
            "runtime": "SparkRuntime",
            "source": "ISOLATION",
        },
    )
