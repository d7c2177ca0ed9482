"""SQL's types and the shape of a row."""

# mypy: implicit-reexport
from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from ksql.core.types import coerce, decimals, ints, model, render, schema, times
    from ksql.core.types.coerce import can_coerce
    from ksql.core.types.decimals import Operator
    from ksql.core.types.format import *
    from ksql.core.types.ints import *
    from ksql.core.types.model import *
    from ksql.core.types.render import *
    from ksql.core.types.schema import *
    from ksql.core.types.times import *
    from ksql.core.types.windowed import *
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "coerce": "can_coerce",
            "decimals": "Operator",
            "format": (
                "CAPABILITIES Capabilities Format FormatName KeyWindow Side TimestampColumn "
                "as_written capabilities"
            ),
            "ints": (
                "INT_MAX INT_MIN LONG_MAX LONG_MIN WRAP32 WRAP64 divide_double saturate "
                "wrap32 wrap64"
            ),
            "model": (
                "Array BIGINT BOOLEAN BYTES DATE DOUBLE Decimal Field INTEGER Kind Map "
                "NULL STRING SqlType Struct TIME TIMESTAMP holds_null is_numeric "
                "type_text"
            ),
            "render": "entries java_double java_string stringer",
            "schema": (
                "Column FORMS PSEUDO_COLUMNS ROWOFFSET ROWPARTITION ROWTIME Role "
                "SYSTEM_NAMES Schema WINDOWEND WINDOWSTART WINDOW_COLUMNS"
            ),
            "times": ("DAY_MS UNIT_MS civil epoch_day format_date format_time format_timestamp"),
            "windowed": "Bounds WindowedKeys all_kept_by kept_by session_key window_key",
        },
    )
