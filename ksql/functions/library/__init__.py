"""The built-in functions, one family per module."""

from __future__ import annotations

from ksql.functions.aggregates import AGGREGATES
from ksql.functions.library.arrays import ARRAYS
from ksql.functions.library.dates import DATES
from ksql.functions.library.encodings import ENCODINGS
from ksql.functions.library.jsontext import JSONS
from ksql.functions.library.lambdas import LAMBDAS
from ksql.functions.library.maps import MAPS
from ksql.functions.library.masks import MASKS
from ksql.functions.library.nulls import NULLS, OTHERS
from ksql.functions.library.numbers import NUMBERS
from ksql.functions.library.regexps import REGEXPS
from ksql.functions.library.strings import STRINGS
from ksql.functions.library.tables import TABLES
from ksql.functions.library.urls import URLS

FAMILIES = (
    ARRAYS,
    DATES,
    ENCODINGS,
    AGGREGATES,
    JSONS,
    LAMBDAS,
    MAPS,
    MASKS,
    NULLS,
    NUMBERS,
    OTHERS,
    REGEXPS,
    STRINGS,
    TABLES,
    URLS,
)
