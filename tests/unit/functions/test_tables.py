from __future__ import annotations

import pytest

from ksql.functions.registry import BUILTINS
from ksql.java.values import EvaluationError
from tests.unit.functions.harness import table

CASES = [
    ("EXPLODE", "ARRAY<INT>", ([1, None],), [1, None]),
    ("EXPLODE", "ARRAY<DECIMAL(3, 1)>", ([],), []),
    ("EXPLODE", "ARRAY<INT>", (None,), []),
    (
        "CUBE_EXPLODE",
        "ARRAY<STRING>",
        (["a", "b"],),
        [[None, None], [None, "b"], ["a", None], ["a", "b"]],
    ),
    ("CUBE_EXPLODE", "ARRAY<STRING>", (["a", None],), [[None, None], ["a", None]]),
    ("CUBE_EXPLODE", "ARRAY<STRING>", (None,), []),
    ("CUBE_EXPLODE", "ARRAY<STRING>", ([],), [[]]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case):
    name, types, args, expected = case
    assert table(name, types, args) == expected


def test_every_table_function_has_a_case():
    known = {function.name for function in BUILTINS.all() if function.kind == "TABLE"}
    assert known == {case[0] for case in CASES}


def test_cube_is_limited():
    with pytest.raises(EvaluationError):
        table("CUBE_EXPLODE", "ARRAY<INT>", ([1] * 21,))
