"""The aggregates, one module by what they keep: what is folded over the rows of a group."""

from __future__ import annotations

from ksql.functions.aggregates import choices, collecting, moments, sketches, sums
from ksql.functions.build import family

AGGREGATES = family(
    "AGGREGATE",
    {**sums.ROWS, **moments.ROWS, **choices.ROWS, **collecting.ROWS, **sketches.ROWS},
)
