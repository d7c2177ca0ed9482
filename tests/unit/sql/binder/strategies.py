"""Bound expressions of every kind, for properties."""

from __future__ import annotations

import decimal

from hypothesis import strategies as st

from ksql.core.types import model
from ksql.sql.binder import bound as b

names = st.sampled_from(["A", "B", "`quoted", "C_1"])
primitives = st.sampled_from(
    [model.BIGINT, model.STRING, model.BOOLEAN, model.DOUBLE, model.Decimal(4, 2)]
)
types = st.recursive(
    primitives,
    lambda inner: (
        st.builds(model.Array, inner)
        | st.builds(model.Map, st.just(model.STRING), inner)
        | st.builds(lambda t: model.Struct((model.Field("F", t),)), inner)
    ),
    max_leaves=2,
)
constants = st.sampled_from(
    [None, True, 0, -7, "it's", 1.5, b"\x00", decimal.Decimal("1.50"), [1, [2]], {"k": [1]}]
)
leaves = (
    st.builds(b.Column, names, types)
    | st.builds(b.Const, constants, types)
    | st.builds(b.LambdaVar, names, types)
)


def _some(inner, *, least=0):
    return st.lists(inner, min_size=least, max_size=3).map(tuple)


def _pairs(inner):
    return _some(st.tuples(inner, inner), least=1)


def _grown(e):
    return st.one_of(
        st.builds(b.Call, names, names, _some(e), types),
        st.builds(b.Arith, st.sampled_from("+-*/%"), e, e, types),
        st.builds(b.Negate, e, types),
        st.builds(b.Compare, st.sampled_from(["=", "<>", "IS DISTINCT FROM"]), e, e),
        st.builds(b.Logical, st.sampled_from(["AND", "OR"]), e, e),
        st.builds(b.Not, e),
        st.builds(b.IsNull, e, st.booleans()),
        st.builds(b.In, e, _some(e, least=1)),
        st.builds(b.Like, e, e, st.none() | st.just("!")),
        st.builds(b.Case, _pairs(e), st.none() | e, types),
        st.builds(b.Cast, e, types, st.booleans()),
        st.builds(b.Subscript, e, e, types),
        st.builds(b.Deref, e, names, types),
        st.builds(b.MakeArray, _some(e), types),
        st.builds(b.MakeMap, _pairs(e), types),
        st.builds(b.MakeStruct, _some(st.tuples(names, e), least=1), types),
        st.builds(b.Let, names, e, e, types),
        st.builds(b.Lambda, _some(names, least=1), e, types),
    )


expressions = st.recursive(leaves, _grown, max_leaves=8)
