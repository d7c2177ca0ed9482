"""Text to tree and back; the only user of Lark."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.sql.syntax import ast, expr, printer
from ksql.sql.syntax.ast import SourceKind
from ksql.sql.syntax.expr import Expr, StringLit
from ksql.sql.syntax.parser import Parsed, RawStatement, parse_one, split, statements
from ksql.sql.syntax.walk import collect, expressions
