"""The built-in functions, one family per module."""

from __future__ import annotations

from ksql.functions.library.folds import FOLDS
from ksql.functions.library.nulls import NULLS
from ksql.functions.library.numbers import NUMBERS
from ksql.functions.library.strings import STRINGS

FAMILIES = (STRINGS, NUMBERS, NULLS, FOLDS)
