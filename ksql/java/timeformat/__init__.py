"""Java's date and time patterns: ``DateTimeFormatter`` and, for parsing, ``SimpleDateFormat``.

It has the letters, widths, sign rules, optional sections and the "smart" resolving of java.time,
with English names. It also has the lenient parsing of commons-lang's FastDateFormat. Babel has
neither Java's letters nor a parser; its names of time zones are used.
"""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.java.timeformat.fastdate import parse_date
from ksql.java.timeformat.fields import Moment
from ksql.java.timeformat.javatime import (
    date_moment,
    formatter,
    parse_day,
    parse_time,
    parse_timestamp,
    time_moment,
    timestamp_moment,
    timestamp_parser,
)
from ksql.java.timeformat.zones import UTC, system_zone, zone_of
