"""The inlined template of each overload gives what its row function gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.functions.instantiate import instantiate_scalar
from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import parameters, spread
from ksql.functions.spec import Scalar
from tests.examples import examples
from tests.unit.functions.harness import evaluate, sql
from tests.unit.functions.overloads import nth

VALUES = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(),
    "STRING": st.text(),
    "VARCHAR": st.text(),
    "BYTES": st.binary(),
    "DATE": st.integers(-(10**6), 10**6),
    "TIMESTAMP": st.integers(-(10**15), 10**15),
    "DECIMAL": st.decimals(-999, 999, places=2),
    "T": st.integers(-(2**31), 2**31 - 1),
    "ARRAY<T>": st.lists(st.integers()),
    "MAP<VARCHAR, T>": st.dictionaries(st.text(), st.integers()),
}
TYPES = {
    "T": "INT",
    "DECIMAL": "DECIMAL(5, 2)",
    "ARRAY<T>": "ARRAY<INT>",
    "MAP<VARCHAR, T>": "MAP<STRING, INT>",
}


def coded():
    for function in BUILTINS.all():
        for index, overload in enumerate(function.overloads):
            if isinstance(overload, Scalar) and overload.code is not None:
                yield pytest.param(function, index, id=f"{function.name}-{index}")


@pytest.mark.parametrize(("function", "index"), list(coded()))
def test_arguments_may_assign(function, index):
    each = spread(parameters(function.overloads[index]), len(parameters(function.overloads[index])))
    kinds = [str(param.pattern) for param in each]
    run = instantiate_scalar(
        function, nth(function, index), [sql(TYPES.get(kind, kind)) for kind in kinds]
    )
    compile(run.code.format(*(f"(t{i} := c{i})" for i in range(len(kinds)))), "<code>", "eval")


@pytest.mark.parametrize(("function", "index"), list(coded()))
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_code_equals_row(function, index, data):
    declared = parameters(function.overloads[index])
    variadic = any(param.variadic for param in declared)
    each = spread(declared, data.draw(st.integers(len(declared), 4)) if variadic else len(declared))
    kinds = [str(param.pattern) for param in each]
    run = instantiate_scalar(
        function, nth(function, index), [sql(TYPES.get(kind, kind)) for kind in kinds]
    )
    values = [data.draw(VALUES[kind]) for kind in kinds]
    if run.nulls == "pass":
        values = [data.draw(st.sampled_from([value, None])) for value in values]
    actual, inlined = run.row(*values), evaluate(run.code, values)
    assert actual == inlined or (math.isnan(actual) and math.isnan(inlined))
    assert type(actual) is type(inlined)


def test_there_is_something_to_compare():
    assert len(list(coded())) > 20
