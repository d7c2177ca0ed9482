"""Java's meaning of dates, patterns, URIs, lenient JSON, text and numbers, as ksqlDB shows it."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.java.arith import *
    from ksql.java.jsontree import *
    from ksql.java.text import *
    from ksql.java.uri import *
    from ksql.java.values import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "arith": "WIDE cbrt decimal_of fits ieee round_half_up set_scale",
            "jsontree": "BadJson MISSING json_text parse_json quote steps",
            "text": "JAVA_SPACES from_units in_units length mended to_units",
            "uri": "Uri parse_uri",
            "values": (
                "EvaluationError LONGEST_RESULT ResultTooLong identity is_plain membership order"
            ),
        },
    )
