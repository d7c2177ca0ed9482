"""The files of a query's checkpoint: what they say, and whether a query may continue from them."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.spark.checkpoint.checkpoint_topics import PROBLEMS
