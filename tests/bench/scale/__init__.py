"""The cost of a record as keys, values, queries, workers grow: `python -m tests.bench scale`."""

from __future__ import annotations
