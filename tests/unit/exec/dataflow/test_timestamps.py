"""A time outside of what records may have is no time of a record."""

from __future__ import annotations

import pytest

from ksql.core.records import LATEST_MS
from ksql.core.types.model import BIGINT
from ksql.exec.dataflow.timestamps import BadTimestamp, extractor


@pytest.mark.parametrize("time", [0, 1, LATEST_MS])
def test_a_time_that_queries_can_read(time):
    assert extractor(0, BIGINT, None, fatal=True)((time,), lambda *_: None) == time


@pytest.mark.parametrize(
    ("time", "why"),
    [
        (-1, "negative timestamp -1"),
        (LATEST_MS + 1, "timestamp 9223372036854776 is later than 9223372036854775 ms"),
    ],
)
def test_unreadable_timestamp(time, why):
    """A sink's record of that time would end every query over the sink."""
    said = []
    assert extractor(0, BIGINT, None)((time,), lambda *entry: said.append(entry)) is None
    assert said == [("timestamp", why, (time,))]
    with pytest.raises(BadTimestamp):
        extractor(0, BIGINT, None, fatal=True)((time,), lambda *_: None)
