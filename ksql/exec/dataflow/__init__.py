"""A plan as running code, and what hosts it; no Spark, no Kafka client."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.exec.dataflow import muted, topic_acl
    from ksql.exec.dataflow.compiled import *
    from ksql.exec.dataflow.load import packed, unpacked
    from ksql.exec.dataflow.moved_records import MovedRecords
    from ksql.exec.dataflow.partitioning.placement import has_one_writer
    from ksql.exec.dataflow.program import *
    from ksql.exec.dataflow.query_start import *
    from ksql.exec.dataflow.timestamps import *
    from ksql.exec.dataflow.topology import changes_sent, time_counted
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "compiled": "answering generated_code",
            "timestamps": "FutureTimestamps WarningsWritten",
            "load": "packed unpacked",
            "moved_records": "MovedRecords",
            "partitioning.placement": "has_one_writer",
            "program": "Program RawBatch Result through",
            "query_start": "at_time plan_of read_topics start_ms stated_settings",
            "topology": "changes_sent time_counted",
        },
    )
