"""The stored forms of expressions and plan nodes; see ``ksql.core.types.forms``."""

from __future__ import annotations

from typing import Final

from ksql.core.structs import Form, form
from ksql.sql.binder import bound
from ksql.sql.plan import nodes

EXPRESSIONS: Final[tuple[Form, ...]] = (
    form("bound.Column", bound.Column, "name type"),
    form("bound.Const", bound.Const, "value type"),
    form("bound.Call", bound.Call, "function overload args type"),
    form("bound.Arith", bound.Arith, "op left right type"),
    form("bound.Negate", bound.Negate, "operand type"),
    form("bound.Compare", bound.Compare, "op left right"),
    form("bound.Logical", bound.Logical, "op left right"),
    form("bound.Not", bound.Not, "operand"),
    form("bound.IsNull", bound.IsNull, "operand negated"),
    form("bound.In", bound.In, "operand options"),
    form("bound.Like", bound.Like, "operand pattern escape"),
    form("bound.Case", bound.Case, "whens otherwise type"),
    form("bound.Cast", bound.Cast, "operand type implicit"),
    form("bound.Subscript", bound.Subscript, "base index type"),
    form("bound.Deref", bound.Deref, "base field type"),
    form("bound.MakeArray", bound.MakeArray, "items type"),
    form("bound.MakeMap", bound.MakeMap, "entries type"),
    form("bound.MakeStruct", bound.MakeStruct, "fields type"),
    form("bound.LambdaVar", bound.LambdaVar, "name type"),
    form("bound.Let", bound.Let, "name operand body type"),
    form("bound.Lambda", bound.Lambda, "params body type"),
    form("bound.Named", bound.Named, "name expr"),
)
NODES: Final[tuple[Form, ...]] = (
    form(
        "nodes.Source",
        nodes.Source,
        "name kind topic prefix columns key_format value_format timestamp window scattered? later?",
    ),
    form("nodes.Filter", nodes.Filter, "source predicate clause leftovers"),
    form("nodes.Rekey", nodes.Rekey, "source keys"),
    form("nodes.TableCall", nodes.TableCall, "name function overload args type"),
    form("nodes.Explode", nodes.Explode, "source calls"),
    form("nodes.Select", nodes.Select, "source key value"),
    form("nodes.Fold", nodes.Fold, "slot name function overload args literals type"),
    form("nodes.TimeWindow", nodes.TimeWindow, "kind size_ms advance_ms grace_ms retention_ms"),
    form("nodes.Aggregate", nodes.Aggregate, "source group folds window next_slot generations"),
    form(
        "nodes.StreamTableJoin",
        nodes.StreamTableJoin,
        "left right kind left_key right_key key_name",
    ),
    form("nodes.JoinWindow", nodes.JoinWindow, "before_ms after_ms grace_ms"),
    form(
        "nodes.StreamStreamJoin",
        nodes.StreamStreamJoin,
        "left right kind left_key right_key window key_name",
    ),
    form("nodes.EmitFinal", nodes.EmitFinal, "source"),
    form(
        "nodes.TableTableJoin",
        nodes.TableTableJoin,
        "left right kind left_key right_key key_name",
    ),
    form("nodes.ForeignKeyJoin", nodes.ForeignKeyJoin, "left right kind left_key right_key"),
    form(
        "nodes.Sink",
        nodes.Sink,
        "source name kind topic key value key_format value_format timestamp window gathered?",
    ),
    form(
        "nodes.QueryPlan",
        nodes.QueryPlan,
        "query_id sink buckets every_change settings lanes? partitions? placement? code?",
    ),
)
