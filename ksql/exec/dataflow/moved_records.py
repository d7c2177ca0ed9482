"""Encoded results on their way over an exchange to the sink, column by column.

They carry what puts them in order there. In the steps before the encoder it travels in the place of
a result's headers, which all steps hand on as they are.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ksql.core import Headers, OutRecord
    from ksql.exec.operators.base import Record

TIME, SEQUENCE_KEY, TOPIC, PARTITION, OFFSET = range(5)
"""The rows of ``MovedRecords.places``."""

PLACE_ROWS: Final = 5

Origin = tuple[int, int, int, int]
"""Sequence key, number of the topic, partition and offset of a record."""


class MovedRecords(NamedTuple):
    """Records to be written: keys, values, headers (None: no record has any) and ``places``.

    These are a column of 64-bit integers for each record: its timestamp in milliseconds, then its
    cause's sequence key, number of topic, partition and offset.
    """

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None] | None
    places: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[MovedRecords]) -> MovedRecords:
        """Return the records of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls((), (), None, np.empty((PLACE_ROWS, 0), np.int64))
        headers = None
        if any(part.headers for part in parts):
            headers = list(chain.from_iterable(part.headers_of_each() for part in parts))
        return cls(
            list(chain.from_iterable(part.keys for part in parts)),
            list(chain.from_iterable(part.values for part in parts)),
            headers,
            np.concatenate([part.places for part in parts], axis=1),
        )

    def headers_of_each(self) -> Sequence[Headers | None]:
        """Return one entry for each record."""
        return self.headers or [None] * len(self.keys)


def with_place(headers: Headers | None, origin: Origin) -> Headers:
    """Return what travels in the place of headers."""
    return cast("Headers", (headers, origin))


def placed_records(records: Iterable[Record]) -> list[Record]:
    """Return a stage's results, each with its place in the place of its headers."""
    return [
        record._replace(
            headers=with_place(
                record.headers, (record.sequence_key, record.topic, record.partition, record.offset)
            )
        )
        for record in records
    ]


def moved(results: Sequence[OutRecord]) -> MovedRecords:
    """Return encoded results whose headers hold their places."""
    if not results:
        return MovedRecords.joined(())
    keys, values, times, carried = zip(*results, strict=True)
    headers, origins = zip(*cast("Sequence[tuple[Any, Origin]]", carried), strict=True)
    places = np.empty((PLACE_ROWS, len(keys)), np.int64)
    places[TIME] = times
    places[SEQUENCE_KEY:] = np.array(origins, np.int64).T
    return MovedRecords(keys, values, headers if any(headers) else None, places)
