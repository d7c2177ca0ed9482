"""What a row may ask for has a bound: beyond it the expression is NULL and logged."""

from __future__ import annotations

import decimal

import pytest

from ksql.core.types import coerce, decimals, model
from ksql.exec.expressions.errors import LONGEST_CAUSE, cause
from ksql.formats import serde as wire
from ksql.functions.instantiate import instantiate_scalar
from ksql.functions.library.lambdas import reduce_array, reduce_map, transform_array, transform_map
from ksql.functions.library.strings import replaced
from ksql.functions.registry import BUILTINS
from ksql.java.regex import TooSlow
from ksql.java.timeformat import parse_timestamp
from ksql.java.values import LONGEST_RESULT, ResultTooLong
from tests.unit.functions.overloads import nth
from tests.unit.java.support import own_budget

BIG = "a" * 1_000_000


@pytest.mark.parametrize(
    "work",
    [
        lambda: replaced(BIG, "a", "b" * 4_000),
        lambda: replaced(BIG, "", "b" * 40),
        lambda: transform_array([1] * 11, lambda _: BIG),
        lambda: transform_map({i: i for i in range(11)}, lambda k, _: k, lambda _k, _v: BIG),
        lambda: reduce_array([1] * 60, "ab", lambda state, _: state + state),
        lambda: reduce_map({i: i for i in range(60)}, [1], lambda state, _k, _v: state + state),
        lambda: instantiate_scalar(
            BUILTINS.get("ARRAY_JOIN"),
            nth(BUILTINS.get("ARRAY_JOIN"), 1),
            (model.Array(model.STRING), model.STRING),
        ).row(["a"] * 100, BIG),
        lambda: instantiate_scalar(
            BUILTINS.get("ARRAY_JOIN"),
            nth(BUILTINS.get("ARRAY_JOIN"), 0),
            (model.Array(model.STRING),),
        ).row([BIG] * 11),
    ],
)
def test_results_are_bounded(work):
    with pytest.raises(ResultTooLong):
        work()


def test_bounds_allow_what_fits():
    assert replaced("abab", "b", "cc") == "accacc"
    assert replaced("ab", "", "-") == "-a-b-"
    assert len(replaced(BIG, "a", "b" * 10)) == LONGEST_RESULT
    assert len(replaced(BIG, "x", "b" * 100)) == len(BIG)
    assert transform_array([1, None], lambda each: each) == [1, None]
    assert reduce_array([1, 2], 0, lambda state, each: state + each) == 3


@pytest.mark.parametrize(
    "work",
    [
        lambda: coerce.parse_number("x" * 1_000_000),
        lambda: decimals.fitter(model.Decimal(4, 2), exact=True)(decimal.Decimal("1e999999")),
    ],
)
def test_messages_are_bounded(work):
    with pytest.raises((ValueError, ArithmeticError)) as caught:
        work()
    assert len(cause(caught.value)) < LONGEST_CAUSE + 100


def test_numbers_with_many_digits_are_read_in_linear_time():
    """A quadratic pattern would take hours."""
    digits = "1" * 1_000_000 + "x"
    with pytest.raises(ValueError, match="For input string"):
        coerce.parse_number(digits)
    assert wire._DOUBLE.match(digits) is None


def test_date_patterns_cannot_explode():
    pattern = "['a']" * 40 + "['aa']" * 5 + "yyyy"
    with own_budget(), pytest.raises((TooSlow, ValueError)):
        parse_timestamp(pattern, "a" * 44 + "!")
    assert parse_timestamp("yyyy['a']['b']['c']['d']['e']", "1970ae") == 0
