"""A bound expression as a Python function of one row: the reference meaning of the language."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.exec.expressions import meter
from ksql.exec.expressions.compile import (
    Projection,
    compile_expr,
    compile_projection,
    constant_value,
    strict,
)
from ksql.exec.expressions.errors import Log
