"""``ksql datagen``: records of a schema that keep coming, as ksql-datagen's.

Source: docs/datagen.md.
"""

from __future__ import annotations

from server.datagen.command import main

__all__ = ["main"]
