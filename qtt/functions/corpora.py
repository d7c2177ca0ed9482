"""The functions that ksqlDB's test files call and that are no part of the language.

They are loaded like any user's file: ``ksql.extension.dir`` points to this directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from ksql.core.types import java_double
from ksql.functions import udaf, udtf
from ksql.functions.udf import udf

if TYPE_CHECKING:
    from ksql.core.types import SqlType

Int = Annotated[int, "INT"]


class StructA(TypedDict):
    """STRUCT<A STRING>."""

    A: str


class Pair(TypedDict):
    """STRUCT<A INT, B INT>."""

    A: Int
    B: Int


# --- overload choice -----------------------------------------------------------------------------


@udf(name="test_udf", params=("INT arg1", "STRING arg2"), returns="STRING", nulls="pass")
def _int_string(*_: Any) -> str:
    """The name of the variation that was chosen."""
    return "doStuffIntString"


@udf(name="test_udf", params=("BIGINT arg1", "STRING arg2"), returns="STRING", nulls="pass")
def _long_string(*_: Any) -> str:
    """The name of the variation that was chosen."""
    return "doStuffLongString"


@udf(
    name="test_udf",
    params=("BIGINT arg1", "BIGINT arg2", "STRING arg3"),
    returns="STRING",
    nulls="pass",
)
def _long_long_string(*_: Any) -> str:
    """The name of the variation that was chosen."""
    return "doStuffLongLongString"


@udf(name="test_udf", params=("BIGINT... args",), returns="STRING", nulls="pass")
def _longs(*_: Any) -> str:
    """The name of the variation that was chosen."""
    return "doStuffLongVarargs"


@udf(name="test_udf")
def _field_a(struct: StructA) -> str:
    return struct["A"]


@udf(name="test_udf")
def _new_struct() -> StructA:
    """A struct whose field A is foo."""
    return {"A": "foo"}


# --- failures and laziness -----------------------------------------------------------------------


class Refused(RuntimeError):
    """The error of a function that is meant to fail."""


@udf(name="bad_udf")
def _always_bad(arg: Int) -> Int:
    """Fails."""
    raise Refused(f"boom: {arg}")


@udf(name="bad_udf")
def _bad_if_true(arg: bool) -> Int:
    """Fails for TRUE."""
    if arg:
        raise Refused("boom")
    return 0


@udf(name="bad_udf", params=("STRING arg",), returns="STRING", nulls="pass", per_query=True)
def _every_second(_types: tuple[SqlType, ...]) -> Any:
    """NULL and the argument by turns, so that one evaluation too many shows."""
    calls = 0

    def row(arg: str | None) -> str | None:
        nonlocal calls
        calls += 1
        return None if calls % 2 else arg

    return row


@udf(name="whencondition")
def _condition(ret: bool, ok: bool) -> bool:
    """The first argument; fails unless the second is TRUE."""
    if not ok:
        raise Refused("this condition must not be evaluated")
    return ret


@udf(name="whenresult")
def _result(ret: Int, ok: bool) -> Int:
    """The first argument; fails unless the second is TRUE."""
    if not ok:
        raise Refused("this result must not be evaluated")
    return ret


@udf(name="tostruct")
def _to_struct(value: str) -> StructA:
    """The text as field A of a struct."""
    return {"A": value}


# --- table functions -----------------------------------------------------------------------------

_PRIMITIVES = {"INT": "int", "BIGINT": "long", "DOUBLE": "double", "BOOLEAN": "boolean"}
_KINDS = ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT<A STRING>")


def _same(value: Any) -> Any:
    return [value]


for _kind in _KINDS:
    _returns = "DECIMAL(30, 10)" if _kind == "DECIMAL" else _kind
    _param = _PRIMITIVES.get(_kind, _kind)
    udtf(name="test_udtf", params=(f"{_param} val",), returns=_returns)(_same)


def _shown(value: Any) -> str:
    """A value as Java prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return java_double(value)
        case dict():
            return f"Struct{{{','.join(f'{k}={v}' for k, v in value.items())}}}"
        case _:
            return str(value)


@udtf(name="test_udtf", params=tuple(f"{kind} v" for kind in _KINDS), returns="STRING")
def _scalars(*values: Any) -> list[str]:
    """Each argument as text."""
    return [_shown(value) for value in values]


@udtf(name="test_udtf", params=tuple(f"ARRAY<{kind}> v" for kind in _KINDS), returns="STRING")
def _arrays(*values: Any) -> list[str]:
    """Each array's first element as text."""
    return [_shown(value[0]) for value in values]


@udtf(name="test_udtf", params=tuple(f"MAP<STRING, {kind}> v" for kind in _KINDS), returns="STRING")
def _maps(*values: Any) -> list[str]:
    """Each map's first value as text."""
    return [_shown(next(iter(value.values()))) for value in values]


@udtf(name="throwing_udtf")
def _throwing(should_throw: bool) -> list[bool]:
    """The argument; fails for TRUE."""
    if should_throw:
        raise Refused("boom")
    return [should_throw]


# --- aggregates ----------------------------------------------------------------------------------


class _Sum:
    """The common part of the sums."""

    start: Any = 0

    def init(self) -> Any:
        """The sum of no rows."""
        return self.start

    def step(self, state: Any, value: Any) -> Any:
        """One row more."""
        return state + value

    def undo(self, state: Any, value: Any) -> Any:
        """One row less."""
        return state - value

    def merge(self, state: Any, later: Any) -> Any:
        """Both sums."""
        return state + later - self.start


@udaf(name="test_udaf", params=("BIGINT val",), returns="BIGINT")
class _LongSum(_Sum):
    """The sum of the values."""


@udaf(name="test_udaf", params=("INT val",), returns="BIGINT")
class _IntSum(_Sum):
    """The sum of the values and a first one that is configured."""

    def __init__(self, *, settings: dict[str, str]) -> None:
        self.start = int(settings.get("init", 0))


@udaf(name="test_udaf", params=("DOUBLE val",), returns="DOUBLE")
class _DoubleSum:
    """The sum of the values."""

    def init(self) -> float:
        """Zero."""
        return 0.0

    def step(self, state: float, value: float) -> float:
        """One row more."""
        return state + value

    def merge(self, state: float, later: float) -> float:
        """Both sums."""
        return state + later


@udaf(name="test_udaf", params=("STRING val",), returns="BIGINT")
class _Lengths:
    """The length of all texts together."""

    def __init__(self, first: str) -> None:
        self.start = len(first)

    def init(self) -> int:
        """The length of the constant."""
        return self.start

    def step(self, state: int, value: str) -> int:
        """One text more."""
        return state + len(value)

    def merge(self, state: int, later: int) -> int:
        """Both lengths; the constant counts once."""
        return state + later - self.start


@udaf(name="test_udaf")
class _PairSum:
    """The sums of both fields."""

    def init(self) -> Pair:
        """Zeros."""
        return {"A": 0, "B": 0}

    def step(self, state: Pair, val: Pair) -> Pair:
        """One row more."""
        return {"A": state["A"] + val["A"], "B": state["B"] + val["B"]}

    def merge(self, state: Pair, later: Pair) -> Pair:
        """Both sums."""
        return self.step(state, later)


def _size(value: Any) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else int(value)


class _Sizes:
    """Numbers and the lengths of texts, all added up; the constants are the start."""

    def __init__(self, start: Int = 0, *texts: str) -> None:
        self.start = start + sum(map(len, texts))

    def init(self) -> int:
        """The start."""
        return self.start

    def step(self, state: int, *values: Any) -> int:
        """One row more."""
        return state + sum(map(_size, values))

    def merge(self, state: int, later: int) -> int:
        """Both; the start counts once."""
        return state + later - self.start


_STRINGS = ("STRING second", "STRING third", "STRING fourth")
_CONSTANTS = ("INT start", "STRING... texts")


@udaf(
    name="MULTI_ARG",
    params=("BIGINT first", "STRING second"),
    literals=_CONSTANTS,
    returns="BIGINT",
    nulls="pass",
)
class _MultiArg(_Sizes):
    """The sizes of two columns."""


@udaf(
    name="FOUR_ARG",
    params=("BIGINT first", *_STRINGS),
    literals=_CONSTANTS,
    returns="BIGINT",
    nulls="pass",
)
class _FourArg(_Sizes):
    """The sizes of four columns."""


@udaf(
    name="FIVE_ARG",
    params=("BIGINT first", *_STRINGS, "INT fifth"),
    literals=_CONSTANTS,
    returns="BIGINT",
    nulls="pass",
)
class _FiveArg(_Sizes):
    """The sizes of five columns."""


@udaf(
    name="VAR_ARG",
    params=("BIGINT first", "STRING... others"),
    literals=(),
    returns="BIGINT",
    nulls="pass",
)
class _VarArg(_Sizes):
    """The sizes of any number of columns."""


@udaf(
    name="MID_VAR_ARG", params=("BIGINT first", "STRING... others"), returns="BIGINT", nulls="pass"
)
class _MidVarArg(_Sizes):
    """The sizes of any number of columns, and two constants after them."""

    def __init__(self, one: Int, other: Int) -> None:
        super().__init__()
        self.extra = one + other

    def result(self, state: int) -> int:
        """The sum with the constants."""
        return state + self.extra


class _FirstColumn:
    """The first columns of the rows that have no NULL."""

    def init(self) -> list[Any]:
        """Nothing."""
        return []

    def step(self, state: list[Any], first: Any, *_: Any) -> list[Any]:
        """One row more."""
        return [*state, first]

    def merge(self, state: list[Any], later: list[Any]) -> list[Any]:
        """Both lists."""
        return [*state, *later]


@udaf(name="OBJ_COL_ARG", params=("INT first", "ANY... others"), returns="ARRAY<INT>")
class _ObjColArg(_FirstColumn):
    """The first columns of the rows that have no NULL."""


@udaf(name="GENERIC_VAR_ARG", params=("A first", "B second", "C... others"), returns="ARRAY<A>")
class _GenericVarArg(_FirstColumn):
    """The first columns of the rows that have no NULL."""
