"""The order of truth: statements as records of one topic."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.control.log.log import *
    from ksql.control.log.quarantine import *
    from ksql.control.log.record import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "log": (
                "AppliedOffsetFile CommandTopicLost CommandTopicRecreated "
                "KafkaCommandLog topic_name"
            ),
            "quarantine": "UnusableCommand SKIP UnreadableCommand offsets_of",
            "record": "decode encode",
        },
    )
