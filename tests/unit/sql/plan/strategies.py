"""Plans of any shape the nodes allow, meaningful or not."""

from __future__ import annotations

from hypothesis import strategies as st

from ksql.core.types.format import Format, KeyWindow, TimestampColumn
from ksql.core.types.schema import Column, Role
from ksql.sql.binder.bound import Named
from ksql.sql.plan import nodes as n
from tests.unit.sql.binder.strategies import constants, expressions, names, types

small = st.integers(0, 9)
kinds = st.sampled_from(["STREAM", "TABLE"])
formats = st.builds(
    Format,
    st.sampled_from(["JSON", "DELIMITED", "KAFKA", "NONE"]),
    delimiter=st.sampled_from([",", "\t"]),
    wrap=st.none() | st.booleans(),
    schema_id=st.none() | small,
)
key_windows = st.none() | st.builds(
    KeyWindow, st.sampled_from(["TUMBLING", "SESSION"]), st.none() | small
)
stamps = st.none() | st.builds(TimestampColumn, names, st.none() | st.just("yyyy"))
columns = st.builds(Column, names, types, st.sampled_from(Role), st.none() | st.just("h"))
named = st.builds(Named, names, expressions)


def tuples(inner):
    return st.lists(inner, max_size=2).map(tuple)


folds = st.builds(
    n.Fold,
    slot=small,
    name=names,
    function=names,
    overload=names,
    args=tuples(expressions),
    literals=tuples(constants),
    type=types,
)
calls = st.builds(
    n.TableCall,
    name=names,
    function=names,
    overload=names,
    args=tuples(expressions),
    type=types,
)
windows = st.none() | st.builds(
    n.TimeWindow,
    kind=st.sampled_from(["TUMBLING", "HOPPING"]),
    size_ms=small,
    advance_ms=small,
    grace_ms=small,
    retention_ms=small,
)
sources = st.builds(
    n.Source,
    name=names,
    kind=kinds,
    topic=names,
    prefix=names,
    columns=tuples(columns),
    key_format=formats,
    value_format=formats,
    timestamp=stamps,
    window=key_windows,
)


def _grown(plan):
    return st.one_of(
        st.builds(n.Filter, plan, expressions, st.sampled_from(["WHERE", "HAVING"])),
        st.builds(n.Rekey, plan, tuples(named)),
        st.builds(n.Explode, plan, tuples(calls)),
        st.builds(n.Select, plan, tuples(named), tuples(named)),
        st.builds(
            n.Aggregate,
            source=plan,
            group=tuples(named),
            folds=tuples(folds),
            window=windows,
            next_slot=small,
            generations=tuples(small),
        ),
        st.builds(
            n.StreamTableJoin,
            left=plan,
            right=plan,
            kind=st.sampled_from(["INNER", "LEFT"]),
            left_key=expressions,
            right_key=expressions,
            key_name=names,
        ),
        st.builds(
            n.StreamStreamJoin,
            left=plan,
            right=plan,
            kind=st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL"]),
            left_key=expressions,
            right_key=expressions,
            window=st.builds(n.JoinWindow, small, small, st.none() | small),
            key_name=names,
        ),
    )


plans = st.recursive(sources, _grown, max_leaves=3)
sinks = st.builds(
    n.Sink,
    source=plans,
    name=names,
    kind=kinds,
    topic=st.none() | names,
    key=tuples(columns),
    value=tuples(columns),
    key_format=formats,
    value_format=formats,
    timestamp=stamps,
    window=key_windows,
)
query_plans = st.builds(
    n.QueryPlan,
    query_id=st.just("CSAS_X_1"),
    sink=sinks,
    buckets=st.integers(1, 8),
    every_change=st.booleans(),
    settings=tuples(st.tuples(names, names)),
    lanes=st.integers(0, 8),
)
