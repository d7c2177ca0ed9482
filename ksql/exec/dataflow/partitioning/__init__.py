"""Keys as bytes, the partitions that they belong to, and how results get there in order."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.exec.dataflow.partitioning.murmur2 import partitions_of
    from ksql.exec.dataflow.partitioning.placement import KeyedBuckets
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "murmur2": "partitions_of",
            "placement": "KeyedBuckets",
        },
    )
