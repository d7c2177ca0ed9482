"""What a record costs as keys, values, queries and workers grow: `python -m tests.bench scale`."""

from __future__ import annotations
