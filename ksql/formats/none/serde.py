"""NONE: nothing is read and nothing written; for streams without keys.

Source: docs/formats.md.
"""

from __future__ import annotations

from ksql.formats.implementation import Implementation, any_type
from ksql.formats.serde import NOTHING

FORMAT = Implementation(lambda _spec: NOTHING, any_type)
