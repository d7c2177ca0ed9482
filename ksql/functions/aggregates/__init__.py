"""The aggregates, one module by what they keep: what is folded over the rows of a group."""

from __future__ import annotations

from ksql.functions.aggregates import choices, gather, moments, sketches, sums
from ksql.functions.build import family

FOLDS = family(
    "AGGREGATE",
    {**sums.ROWS, **moments.ROWS, **choices.ROWS, **gather.ROWS, **sketches.ROWS},
)
