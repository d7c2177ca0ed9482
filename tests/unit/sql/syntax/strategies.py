"""Trees as the parser can make them, for hypothesis."""

from __future__ import annotations

import decimal
from typing import get_args

from hypothesis import strategies as st

from ksql.core.ident import RESERVED
from ksql.core.types import model
from ksql.sql.syntax import ast, expr

MAYBE = st.booleans()
_SPECIAL = [
    "ARRAY",
    "MAP",
    "STRUCT",
    "DAY",
    "HOUR",
    "EMIT",
    "PARTITION",
    "ESCAPE",
    "IF",
    "COLUMN",
    "FUNCTION",
    "TABLES",
    "KEY",
    "PRIMARY",
    "HEADERS",
    "SHOW",
    "SET",
    "EXPLAIN",
    "ALTER",
    "ID",
    "TIMEOUT",
    "SELECT",
    "FROM",
    "NULL",
    "END",
    "DECIMAL",
    "2ND",
    "12",
    "1E5",
    "5E",
    "lower",
    "MiXed",
]
_LETTERS = st.sampled_from("ABZabz019_@ -.`\"'\n${}é")

names = st.one_of(
    st.sampled_from(["A", "B", "COL_1", "X2"]),
    st.sampled_from(_SPECIAL),
    st.text(_LETTERS, min_size=1, max_size=6),
)
source_names = st.text(st.sampled_from("ABab01_-"), min_size=1, max_size=6) | st.sampled_from(
    ["S", "EMIT", "IF", "FUNCTION", "TABLES", "STREAM"]
)
texts = st.text(_LETTERS, max_size=8)
variable_names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_@]{0,5}\Z").filter(
    lambda name: name.upper() not in RESERVED
)
longs = st.integers(-(2**63), 2**63 - 1)
counts = st.integers(0, 2**63 - 1)
integers = st.integers(-(2**31), 2**31 - 1)


def _optional(strategy):
    return st.none() | strategy


def _tuples(strategy, least=0, most=3):
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


# --- types

_primitives = st.sampled_from(
    [
        model.BOOLEAN,
        model.INTEGER,
        model.BIGINT,
        model.DOUBLE,
        model.STRING,
        model.BYTES,
        model.DATE,
        model.TIME,
        model.TIMESTAMP,
    ]
)
_decimals = st.integers(1, 60).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: model.Decimal(precision, scale))
)
types = st.recursive(
    _primitives | _decimals,
    lambda inner: st.one_of(
        st.builds(model.Array, inner),
        st.builds(model.Map, inner, inner),
        st.lists(st.builds(model.Field, names, inner), max_size=3, unique_by=lambda f: f.name).map(
            lambda fields: model.Struct(tuple(fields))
        ),
    ),
    max_leaves=6,
)

# --- expressions

decimals = st.builds(
    lambda digits, scale: decimal.Decimal(digits).scaleb(-scale),
    st.integers(-(10**20), 10**20),
    st.integers(0, 25),
)
literals = st.one_of(
    st.just(expr.NullLit()),
    st.builds(expr.BoolLit, MAYBE),
    st.builds(expr.IntLit, longs | st.integers(-5, 5)),
    st.builds(expr.DecimalLit, decimals),
    st.builds(expr.DoubleLit, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(expr.StringLit, texts),
)
_leaves = st.one_of(
    literals,
    st.builds(expr.Variable, variable_names),
    st.builds(expr.Ref, names, _optional(names)),
)
_function_names = st.sampled_from(
    ["COUNT", "DATEADD", "MAP", "IF", "REPLACE", "CAST", "X Y"]
) | names.map(str.upper)


def _inner(sub):
    argument = st.one_of(
        sub,
        st.builds(expr.UnitLit, st.sampled_from(get_args(expr.IntervalUnit))),
        st.builds(expr.Lambda, _tuples(names, 1), sub),
    )
    return st.one_of(
        st.builds(expr.Unary, st.sampled_from("+-"), sub),
        st.builds(expr.Binary, st.sampled_from("+-*/%"), sub, sub),
        st.builds(expr.Compare, st.sampled_from(get_args(expr.ComparisonOp)), sub, sub),
        st.builds(expr.Logical, st.sampled_from(["AND", "OR"]), sub, sub),
        st.builds(expr.Not, sub),
        st.builds(expr.Between, sub, sub, sub),
        st.builds(expr.In, sub, _tuples(sub, 1)),
        st.builds(expr.Like, sub, sub, _optional(_LETTERS)),
        st.builds(expr.IsNull, sub, MAYBE),
        st.builds(
            expr.Case, _optional(sub), _tuples(st.builds(expr.When, sub, sub), 1), _optional(sub)
        ),
        st.builds(expr.Cast, sub, types),
        st.builds(expr.Call, _function_names, _tuples(argument)),
        st.builds(expr.Call, _function_names, st.just(()), st.just(True)),
        st.builds(expr.Subscript, sub, sub),
        st.builds(expr.Deref, sub, names),
        st.builds(expr.ArrayExpr, _tuples(sub)),
        st.builds(expr.MapExpr, _tuples(st.tuples(sub, sub))),
        st.builds(expr.StructExpr, _tuples(st.tuples(names, sub))),
    )


expressions = st.recursive(_leaves, _inner, max_leaves=12)

# --- queries

durations = st.builds(ast.Duration, counts, st.sampled_from(get_args(ast.Unit)))
_sources = st.builds(ast.SourceRef, source_names, names)
_within = st.builds(ast.Within, durations, durations, _optional(durations))


def _joined(relation):
    kinds = st.sampled_from(get_args(ast.JoinKind))
    return st.builds(ast.Join, relation, _sources, kinds, expressions, _optional(_within))


_windows = st.one_of(
    st.builds(
        ast.Window,
        st.sampled_from(["TUMBLING", "SESSION"]),
        durations,
        st.none(),
        _optional(durations),
        _optional(durations),
    ),
    st.builds(
        ast.Window,
        st.just("HOPPING"),
        durations,
        durations,
        _optional(durations),
        _optional(durations),
    ),
)
_terms = st.one_of(
    st.builds(ast.SelectItem, expressions, _optional(names)),
    st.builds(ast.SelectStar, _optional(names)),
    st.builds(ast.SelectStructStar, expressions),
)
_order_items = st.builds(
    ast.OrderItem, expressions, st.booleans(), _optional(st.sampled_from(get_args(ast.NullsPlace)))
)
queries = st.builds(
    ast.Query,
    _tuples(_terms, 1),
    st.recursive(_sources, _joined, max_leaves=3),
    _optional(_windows),
    _optional(expressions),
    _optional(_tuples(expressions)),
    _optional(_tuples(expressions)),
    _optional(expressions),
    _optional(_tuples(_order_items, 1)),
    _optional(st.sampled_from(get_args(ast.Emission))),
    _optional(integers),
    _optional(st.integers(0, 2**31 - 1)),
)

# --- statements

_values = literals | st.builds(expr.Variable, variable_names)
_properties = _tuples(st.builds(ast.Property, names.map(str.upper), _values))
_configuration = _tuples(st.builds(ast.Property, names, _values), 1)
_kinds = st.sampled_from(get_args(ast.SourceKind))
_columns = {
    kind: _tuples(
        st.builds(ast.ColumnDef, names, types, st.sampled_from(["", mark, "HEADERS"]))
        | st.builds(ast.ColumnDef, names, types, st.just("HEADER"), texts)
    )
    for kind, mark in (("STREAM", "KEY"), ("TABLE", "PRIMARY KEY"))
}
_shown = (
    [ast.Show(what, extended) for what in ("STREAMS", "TABLES", "QUERIES") for extended in (0, 1)]
    + [ast.Show("TOPICS", bool(n & 1), bool(n & 2)) for n in range(4)]
    + [ast.Show("CONNECTORS", scope=scope) for scope in ("", "SOURCE", "SINK")]
    + [ast.Show("UPGRADES", source=name) for name in (None, "X", "x y", "UPGRADE")]
    + [ast.Show(w) for w in ("FUNCTIONS", "PROPERTIES", "TYPES", "VARIABLES", "CONNECTOR PLUGINS")]
)
_inserts = st.builds(ast.InsertInto, source_names, queries, _properties)
simple_statements = st.one_of(
    queries,
    _kinds.flatmap(
        lambda kind: st.builds(
            ast.CreateSource,
            st.just(kind),
            source_names,
            _columns[kind],
            _properties,
            MAYBE,
            MAYBE,
            MAYBE,
        )
    ),
    st.builds(ast.CreateAsSelect, _kinds, source_names, queries, _properties, MAYBE, MAYBE),
    _inserts,
    st.builds(ast.ReplaceQuery, names, _inserts, _properties),
    st.builds(ast.InsertValues, source_names, _tuples(names), _tuples(expressions)),
    st.builds(ast.DeleteFrom, source_names, expressions),
    st.builds(
        ast.AlterSource, _kinds, source_names, _tuples(st.builds(ast.ColumnDef, names, types), 1)
    ),
    st.builds(ast.DropSource, _kinds, source_names, MAYBE, MAYBE),
    st.builds(ast.QueryControl, st.sampled_from(get_args(ast.QueryAction)), _optional(names)),
    st.builds(ast.UpgradeControl, st.just("ROLLBACK"), source_names, _optional(texts), MAYBE),
    st.builds(ast.UpgradeControl, st.just("ABORT"), source_names, of_query=MAYBE),
    st.sampled_from(_shown),
    st.builds(ast.DescribeSource, source_names, MAYBE),
    st.builds(ast.DescribeAll, _kinds, MAYBE),
    st.builds(ast.DescribeFunction, names.map(str.upper)),
    st.builds(ast.DescribeUpgrade, texts),
    st.builds(ast.DescribeConnector, names),
    st.builds(ast.PrintTopic, texts, MAYBE, st.integers(1, 99), _optional(counts)),
    st.builds(ast.CreateType, names.map(str.upper), types, MAYBE),
    st.builds(ast.DropType, names.map(str.upper), MAYBE),
    st.builds(
        ast.CreateConnector,
        st.sampled_from(get_args(ast.ConnectorScope)),
        names,
        _configuration,
        MAYBE,
    ),
    st.builds(ast.DropConnector, names, MAYBE),
    st.builds(ast.SetProperty, texts, texts),
    st.builds(ast.UnsetProperty, texts),
    st.builds(ast.AlterSystem, texts, texts),
    st.builds(ast.Define, variable_names, texts),
    st.builds(ast.Undefine, variable_names),
    st.builds(ast.AssertTopic, texts, _properties, _optional(durations), MAYBE),
    st.builds(ast.AssertSchema, _optional(texts), _optional(counts), _optional(durations), MAYBE),
    st.builds(ast.AssertValues, source_names, _tuples(names), _tuples(expressions)),
    st.builds(ast.AssertNullValues, source_names, _tuples(names), _tuples(expressions)),
    _kinds.flatmap(
        lambda kind: st.builds(
            ast.AssertSource, st.just(kind), source_names, _columns[kind], _properties
        )
    ),
    st.builds(ast.RunScript, texts),
)
statements = simple_statements | st.builds(ast.Explain, names | simple_statements)
