"""How much a run tries: all in ``make test``; fewer examples and no slow test in ``make check``."""

from __future__ import annotations

import os

QUICK = os.environ.get("KSQL_QUICK_TESTS") == "1"


def examples(count: int) -> int:
    """Return the number of examples, or a quarter of it in a quick run."""
    return count // 4 if QUICK else count
