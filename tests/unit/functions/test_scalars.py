from __future__ import annotations

import math
import re
import time
from decimal import Decimal

import pytest

from ksql.functions.registry import BUILTINS
from ksql.java.values import EvaluationError
from tests.unit.functions.cases import arrays, dates, jsons, numbers, strings
from tests.unit.functions.harness import FAILS, scalar

CASES = [*arrays.CASES, *strings.CASES, *jsons.CASES, *numbers.CASES, *dates.CASES]
VOLATILE = {"RANDOM"}  # no result to write down; see the test of the volatile functions


def same(actual, expected):
    if isinstance(expected, float):
        return type(actual) is float and (
            math.isclose(actual, expected, rel_tol=1e-14)
            or (actual != actual and expected != expected)
        )
    if isinstance(expected, Decimal):
        return str(actual) == str(expected)
    return actual == expected and type(actual) is type(expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}{case[2]}")
def test_case(case):
    name, types, args, expected = case
    if expected is FAILS:
        with pytest.raises(EvaluationError):
            scalar(name, types, args)
        return
    result = scalar(name, types, args)
    assert same(result, expected), f"{result!r} is not {expected!r}"


def test_minus_zero_is_smaller_than_zero():
    assert repr(scalar("ARRAY_SORT", "ARRAY<DOUBLE>", ([0.0, -0.0],))) == "[-0.0, 0.0]"
    assert repr(scalar("ARRAY_MAX", "ARRAY<DOUBLE>", ([-0.0, 0.0],))) == "0.0"
    assert repr(scalar("LEAST", "DOUBLE; DOUBLE", (0.0, -0.0))) == "-0.0"


def test_every_function_has_a_case():
    known = {function.name for function in BUILTINS.all() if function.kind == "SCALAR"}
    assert known - {case[0] for case in CASES} == VOLATILE


def test_volatile_functions():
    assert 0 <= scalar("RANDOM", "", ()) < 1
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-.{4}-.{12}", scalar("UUID", "", ()))
    assert abs(scalar("UNIX_TIMESTAMP", "", ()) / 1000 - time.time()) < 3600
    assert abs(scalar("UNIX_DATE", "", ()) - time.time() / 86_400) < 3
    flags = {
        f.name for f in BUILTINS.all() if any(getattr(o, "volatile", False) for o in f.overloads)
    }
    assert flags == {"RANDOM", "UUID", "UNIX_TIMESTAMP", "UNIX_DATE"}


def test_system_zone_is_the_default_of_the_old_functions():
    text = scalar("TIMESTAMPTOSTRING", "BIGINT; STRING", (0, "yyyy-MM-dd HH:mm"))
    assert scalar("STRINGTOTIMESTAMP", "STRING; STRING", (text, "yyyy-MM-dd HH:mm")) == 0
