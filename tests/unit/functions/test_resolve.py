from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ksql.core.errors import StatementError
from ksql.core.types.model import BIGINT, DOUBLE, INTEGER, NULL, STRING
from ksql.functions.build import family
from ksql.functions.errors import AmbiguousCall, NoSuchOverload, NullPrimitive, UnknownFunction
from ksql.functions.instantiate import (
    instantiate_aggregate,
    instantiate_scalar,
    instantiate_table,
)
from ksql.functions.registry import BUILTINS, Functions, describe
from ksql.functions.resolve import resolve_overload, signature
from ksql.functions.signature import BadSignature, parse_param, parse_type
from ksql.functions.spec import AggregateFactory, AggregateFunction, Function, Scalar, Table
from tests.unit.functions.harness import Lam, sql, types_of
from tests.unit.functions.overloads import nth


def overloads(*params, kind="SCALAR"):
    rows = tuple(
        Scalar(tuple(p.strip() for p in one.split(";") if p.strip()), "STRING", str)
        for one in params
    )
    return Function("F", kind, "TEST", "a test", rows, spelling="f")


def chosen(function, types):
    overload = resolve_overload(function, types_of(types)).overload
    return [signature(each) for each in function.overloads].index(overload)


TEST_UDF = overloads("INT; STRING", "BIGINT; STRING", "BIGINT; BIGINT; STRING", "BIGINT...")


@pytest.mark.parametrize(
    ("types", "index"),
    [
        ("INT; STRING", 0),
        ("BIGINT; STRING", 1),
        ("BIGINT; NULL", 1),
        ("BIGINT; BIGINT; NULL", 2),
        ("BIGINT; BIGINT", 3),
        ("INT; INT; INT", 3),
        ("", 3),
    ],
)
def test_overload_choice(types, index):
    assert chosen(TEST_UDF, types) == index


def test_exact_before_casts():
    function = overloads("BIGINT", "DOUBLE", "INT")
    assert chosen(function, "INT") == 2
    assert chosen(function, "DECIMAL(3, 1)") == 1
    with pytest.raises(AmbiguousCall):
        chosen(overloads("BIGINT", "DOUBLE"), "INT")


def test_casts_say_what_to_convert_to():
    resolved = resolve_overload(
        overloads("DOUBLE; DECIMAL; DATE; ARRAY<BIGINT>"),
        types_of("INT; BIGINT; STRING; ARRAY<INT>"),
    )
    assert [str(param) for param in resolved.params] == [
        "DOUBLE",
        "DECIMAL(19, 0)",
        "DATE",
        "ARRAY<BIGINT>",
    ]


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("STRING", "INT"),
        ("INT", "STRING"),
        ("INT", "BIGINT"),
        ("DECIMAL(5, 0)", "INT"),
        ("T; T", "INT; BIGINT"),
        ("ARRAY<T>; T", "ARRAY<INT>; BIGINT"),
        ("ARRAY<T>", "MAP<STRING, INT>"),
        ("STRUCT<A INT>", "STRUCT<B INT>"),
        ("STRUCT<A INT>", "STRUCT<A INT, B INT>"),
        ("DECIMAL", "DOUBLE"),
        ("INT", "INT; INT"),
        ("INT; INT...", ""),
        ("T => INT", "INT"),
        ("T", "INTERVALUNIT"),
        ("T...", "INTERVALUNIT; INTERVALUNIT"),
        ("ANY", "INTERVALUNIT"),
    ],
)
def test_mismatched_arguments(declared, given):
    with pytest.raises(NoSuchOverload):
        chosen(overloads(declared), given)


def test_fewer_variables_win():
    assert chosen(overloads("T", "INT"), "INT") == 1
    assert chosen(overloads("ARRAY<T>", "ARRAY<DECIMAL>"), "ARRAY<DECIMAL(3, 1)>") == 1


def test_wide_decimal_takes_integers():
    resolved = resolve_overload(overloads("DECIMAL(12, 2)"), [INTEGER])
    assert str(resolved.params[0]) == "DECIMAL(12, 2)"


def test_struct_and_any():
    function = overloads("STRUCT<A STRING, B ARRAY<T>>; T; ANY")
    given = "STRUCT<A STRING, B ARRAY<INT>>; INT; MAP<STRING, INT>"
    assert resolve_overload(function, types_of(given)).params == tuple(types_of(given))


def test_null_takes_the_type_of_its_variable():
    resolved = resolve_overload(BUILTINS.get("COALESCE"), types_of("NULL; STRING"))
    assert resolved.params == (STRING, STRING)
    assert resolved.returns == STRING
    assert resolve_overload(BUILTINS.get("COALESCE"), [NULL]).returns == NULL


def test_lambdas():
    transform = BUILTINS.get("TRANSFORM")
    seen = []

    def body(params):
        seen.append(params)
        return DOUBLE

    resolved = resolve_overload(transform, [sql("ARRAY<INT>"), Lam(1, None, body)])
    assert seen == [(INTEGER,)]
    assert str(resolved.returns) == "ARRAY<DOUBLE>"
    assert resolved.lambdas == ((), (INTEGER,))
    assert resolved.params[1] == DOUBLE
    with pytest.raises(NoSuchOverload, match="LAMBDA"):
        resolve_overload(transform, [sql("ARRAY<INT>"), Lam(2, None, "INT")])
    with pytest.raises(NoSuchOverload):
        resolve_overload(
            BUILTINS.get("REDUCE"), [sql("ARRAY<INT>"), INTEGER, Lam(2, None, "BIGINT")]
        )
    with pytest.raises(NoSuchOverload):
        resolve_overload(transform, [sql("ARRAY<INT>"), NULL])


def factory(params, literals):
    instance = AggregateFactory(params, literals, "BIGINT", lambda *args: args)
    return Function("F", "AGGREGATE", "TEST", "", (instance,))


@pytest.mark.parametrize(
    ("params", "literals", "given", "count"),
    [
        (("BIGINT", "STRING"), ("INT", "STRING..."), "BIGINT; STRING; INT; STRING; STRING", 3),
        (("BIGINT", "STRING"), ("INT", "STRING..."), "BIGINT; STRING; INT", 1),
        (("BIGINT", "STRING..."), ("INT", "INT"), "BIGINT; STRING; STRING; INT; INT", 2),
        (("BIGINT", "STRING..."), ("INT", "INT"), "BIGINT; INT; INT", 2),
        (("T",), (), "DOUBLE", 0),
    ],
)
def test_constants_of_aggregates(params, literals, given, count):
    function = factory(params, literals)
    resolved = resolve_overload(function, types_of(given))
    assert resolved.literals == count
    columns, values = resolved.params[: len(resolved.params) - count], ("x",) * count
    instance: Any = instantiate_aggregate(
        function, nth(function, 0), columns, values, {"ksql.functions.f.a": "1"}
    )
    assert instance == (columns, values, {"a": "1"})


def test_aggregates_are_not_cast():
    with pytest.raises(NoSuchOverload, match=r"does not accept parameters \(DECIMAL\(3, 1\)\)"):
        resolve_overload(BUILTINS.get("STDDEV_SAMP"), types_of("DECIMAL(3, 1)"))


def test_message_of_a_wrong_call():
    with pytest.raises(NoSuchOverload) as error:
        resolve_overload(BUILTINS.get("EXPLODE"), types_of("MAP<STRING, INT>"))
    assert error.value.message == (
        "Function 'explode' does not accept parameters (MAP<STRING, INTEGER>).\n"
        "Valid alternatives are:\n"
        "explode(ARRAY<DECIMAL> input)\n"
        "explode(ARRAY<T> list)"
    )


def test_message_of_an_ambiguous_call():
    with pytest.raises(AmbiguousCall) as error:
        resolve_overload(BUILTINS.get("LEAST"), types_of("INT; BIGINT; DECIMAL(50, 30); NULL"))
    assert error.value.message.startswith(
        "Function 'least' cannot be resolved due to ambiguous method parameters "
        "(INTEGER, BIGINT, DECIMAL(50, 30), null)."
    )


def test_message_shows_structs_without_quotes():
    with pytest.raises(NoSuchOverload, match=r"\(ARRAY<STRUCT<A INTEGER, B STRING>>\)"):
        resolve_overload(BUILTINS.get("UCASE"), types_of("ARRAY<STRUCT<A INT, B STRING>>"))


def test_decimals_without_whole_digits_cannot_be_rounded():
    with pytest.raises(StatementError, match="precision"):
        resolve_overload(BUILTINS.get("ROUND"), types_of("DECIMAL(2, 2)"))
    assert resolve_overload(BUILTINS.get("ROUND"), types_of("DOUBLE")).returns == BIGINT


@pytest.mark.parametrize(
    "text",
    ["", "INTS", "ARRAY", "ARRAY<INT", "ARRAY<INT, INT>", "INT INT", "(T => R", "MAP<T>", "A-B"],
)
def test_bad_signatures(text):
    with pytest.raises(BadSignature):
        parse_type(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("STRING", "VARCHAR"),
        ("int n", "INT n"),
        ("STRING... rest", "VARCHAR... rest"),
        ("(K, V) => R fn", "LAMBDA (K, V) => R fn"),
        ("T => R", "LAMBDA (T) => R"),
        ("MAP<K, V> map", "MAP<K, V> map"),
        ("DECIMAL(4, 2) d", "DECIMAL(4, 2) d"),
        ("STRUCT<A INT, `b` T> s", "STRUCT<A INT, b T> s"),
        ("ANY", "ANY"),
    ],
)
def test_signatures_print(text, shown):
    assert str(parse_param(text)) == shown


def test_primitives_refuse_null():
    run = instantiate_scalar(
        BUILTINS.get("FROM_DAYS"), nth(BUILTINS.get("FROM_DAYS"), 0), [INTEGER]
    )
    assert run.code is None
    assert run.nulls == "pass"
    with pytest.raises(NullPrimitive, match="argument 1 of FROM_DAYS"):
        run.row(None)


def test_instantiating_the_wrong_kind():
    ucase, total, explode = (BUILTINS.get(name) for name in ("UCASE", "SUM", "EXPLODE"))
    with pytest.raises(TypeError):
        instantiate_scalar(total, nth(total, 0), [INTEGER])
    with pytest.raises(TypeError):
        instantiate_aggregate(ucase, nth(ucase, 0), [STRING])
    with pytest.raises(TypeError):
        instantiate_table(ucase, nth(ucase, 0), [STRING])
    for function, empty, instantiate in (
        (ucase, Scalar(("INT",), "INT"), instantiate_scalar),
        (explode, Table(("INT",), "INT"), instantiate_table),
    ):
        without = dataclasses.replace(function, overloads=(empty,))
        with pytest.raises(TypeError, match="no implementation"):
            instantiate(without, nth(without, 0), [INTEGER])


def test_registry():
    assert BUILTINS.find("ucase") is BUILTINS.find("UCASE")
    assert BUILTINS.find("nothing") is None
    assert BUILTINS.near("UCASES") == ("UCASE", "LCASE")
    with pytest.raises(
        UnknownFunction, match="Can't find any functions with the name 'WONT_FIND_ME'"
    ):
        BUILTINS.get("WONT_FIND_ME")
    names = [function.name for function in BUILTINS.all()]
    assert names == sorted(names)
    mine = overloads("INT")
    wider = BUILTINS.with_([mine])
    assert wider.find("f") is mine
    assert BUILTINS.find("f") is None
    assert isinstance(wider, Functions)


def test_rows_of_a_family_are_checked():
    with pytest.raises(ValueError, match="the row of x"):
        family("C", {"x": ("text",)})
    with pytest.raises(ValueError, match="the row of x"):
        family("C", {"x": ("text", Scalar((), "INT"), AggregateFunction((), "INT", int, int))})


def test_a_rule_is_described_by_its_text():
    assert resolve_overload(
        BUILTINS.get("GREATEST"), types_of("DECIMAL(3, 1); NULL")
    ).returns == sql("DECIMAL(3, 1)")
    rounded = resolve_overload(BUILTINS.get("ROUND"), types_of("DECIMAL(3, 1)"))
    assert str(rounded.returns) == "DECIMAL(2, 0)"
    assert resolve_overload(overloads("ANY; DECIMAL"), [NULL, NULL]).params == (NULL, NULL)


def test_describe():
    about = describe(BUILTINS.get("SUBSTRING"))
    assert [str(variation) for variation in about][:2] == [
        "SUBSTRING(str VARCHAR, pos INT)",
        "SUBSTRING(str BYTES, pos INT)",
    ]
    first = about[0]
    assert first.returns == "VARCHAR"
    assert [(a.name, a.type, a.variadic) for a in first.arguments] == [
        ("str", "VARCHAR", False),
        ("pos", "INT", False),
    ]
    (concat, *_) = describe(BUILTINS.get("CONCAT"))
    assert str(concat) == "CONCAT(inputs VARCHAR...)"
    assert describe(BUILTINS.get("TOPK"))[0].returns == "ARRAY<INT>"
    assert describe(BUILTINS.get("CEIL"))[3].returns == "DECIMAL"


def test_all_signatures_are_readable():
    for function in BUILTINS.all():
        assert function.description.endswith("."), function.name
        assert function.category
        for variation in describe(function):
            assert variation.returns
            assert all(argument.name for argument in variation.arguments), variation
