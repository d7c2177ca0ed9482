"""A query's results before they are encoded: on their way to the sink, or to a client."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from ksql.core.records import Headers, Row
from ksql.core.types.windowed import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

Result = tuple[Row | None, Row | None, int, Headers | None, Bounds | None]
"""A result: key columns, value columns, time, headers, bounds of the window.

No value columns at all (None) is a deletion.
"""


class Results(NamedTuple):
    """Results column by column; no headers or no windows' bounds at all: None."""

    keys: Sequence[Row | None]
    values: Sequence[Row | None]
    times: Sequence[int]
    headers: Sequence[Headers | None] | None
    bounds: Sequence[Bounds | None] | None

    @classmethod
    def of(cls, results: Sequence[Result]) -> Results:
        """Return the columns of single results."""
        if not results:
            return cls((), (), (), None, None)
        return cls(*zip(*results, strict=True))

    def each(self) -> list[Result]:
        """Return the single results."""
        nothing = repeat(None)
        return list(
            zip(  # noqa: B905 - constants repeat without end
                self.keys, self.values, self.times, self.headers or nothing, self.bounds or nothing
            )
        )
