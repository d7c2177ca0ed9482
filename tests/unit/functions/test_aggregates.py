from __future__ import annotations

import copy
import math

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksql.core.errors import QueryFailed
from ksql.core.types.model import NULL
from ksql.functions.errors import BadConstant
from ksql.functions.instantiate import instantiate_aggregate
from ksql.functions.registry import BUILTINS
from ksql.functions.resolve import resolve_overload
from ksql.functions.spec import AggregateFunction
from ksql.functions.state_copy import copied
from ksql.java.values import EvaluationError
from tests.examples import examples
from tests.unit.functions.harness import D, aggregate, fold, result, types_of

NAN = math.nan
ROW = {"sort_col": 3, "col0": "c"}

# name, column types, constants, rows, result
CASES = [
    ("COUNT", "", (), [(), ()], 2),
    ("COUNT", "STRING", (), ["a", None, "b"], 2),
    ("SUM", "INT", (), [2**31 - 1, 1], -(2**31)),
    ("SUM", "BIGINT", (), [2**63 - 1, None, 1], -(2**63)),
    ("SUM", "DOUBLE", (), [5.5, 100.0], 105.5),
    ("SUM", "DECIMAL(6, 2)", (), [D("5.40"), D("100.10")], D("105.50")),
    ("SUM", "INT", (), [None], 0),
    ("SUM_LIST", "ARRAY<INT>", (), [[1, 1], [100, None], None], 102),
    ("SUM_LIST", "ARRAY<BIGINT>", (), [[2**63 - 1, 1]], -(2**63)),
    ("SUM_LIST", "ARRAY<DOUBLE>", (), [[0.5, 1.0]], 1.5),
    ("AVG", "INT", (), [1, 2, 2], 5 / 3),
    ("AVG", "INT", (), [2**31 - 1, 1], -(2.0**30)),
    ("AVG", "BIGINT", (), [-1, 2**63 - 1], 4.611686018427388e18),
    ("AVG", "DOUBLE", (), [], 0.0),
    ("AVG", "DECIMAL(3, 1)", (), [D("1.0"), D("2.0")], 1.5),
    ("MIN", "INT", (), [3, None, 1, 2], 1),
    ("MIN", "DOUBLE", (), [NAN, 2.0], 2.0),
    ("MIN", "STRING", (), ["b", "a"], "a"),
    ("MIN", "DATE", (), [None], None),
    ("MAX", "BIGINT", (), [3, None, 5], 5),
    ("MAX", "DOUBLE", (), [1.0, NAN, 2.0], NAN),
    ("MAX", "DECIMAL(4, 2)", (), [D("10.12"), D("-3.00")], D("10.12")),
    ("MAX", "BYTES", (), [b"B", b"A"], b"B"),
    ("MAX", "TIMESTAMP", (), [1, 2], 2),
    ("COUNT_DISTINCT", "STRING", (), ["one", "two", "one", None], 2),
    ("COUNT_DISTINCT", "ARRAY<INT>", (), [[1], [1], [2]], 2),
    ("COLLECT_LIST", "INT", (), [1, None, 1], [1, None, 1]),
    ("COLLECT_SET", "INT", (), [1, None, 1, None], [1, None]),
    ("COLLECT_SET", "MAP<STRING, INT>", (), [{"a": 1}, {"a": 1}], [{"a": 1}]),
    ("HISTOGRAM", "STRING", (), ["a", "b", "a", None], {"a": 2, "b": 1}),
    ("TOPK", "INT", (3,), [1, 5, None, 5, 2, 4], [5, 5, 4]),
    (
        "TOPK",
        "INT; STRING",
        (2,),
        [(1, "a"), (3, "c"), (None, "n"), (2, None)],
        [ROW, {"sort_col": 2, "col0": None}],
    ),
    (
        "TOPK",
        "INT; STRING",
        (2,),
        [(3, "c"), (3, "d"), (3, "e")],
        [ROW, {"sort_col": 3, "col0": "d"}],
    ),
    ("TOPKDISTINCT", "INT", (2,), [5, 5, 4, 3], [5, 4]),
    ("TOPKDISTINCT", "DECIMAL(2, 1)", (2,), [D("9.8"), D("9.9")], [D("9.9"), D("9.8")]),
    ("EARLIEST_BY_OFFSET", "INT", (), [None, 13, 14], 13),
    ("EARLIEST_BY_OFFSET", "INT", (False,), [None, 13], None),
    ("EARLIEST_BY_OFFSET", "INT", (2,), [None, 12, 13, 14], [12, 13]),
    ("EARLIEST_BY_OFFSET", "INT", (2, False), [None, 13, 14], [None, 13]),
    ("LATEST_BY_OFFSET", "INT", (), [12, None], 12),
    ("LATEST_BY_OFFSET", "INT", (False,), [12, None], None),
    ("LATEST_BY_OFFSET", "INT", (2,), [12, None, 13, 14], [13, 14]),
    ("LATEST_BY_OFFSET", "INT", (2, False), [12, 13, None], [13, None]),
    ("LATEST_BY_OFFSET", "INT", (2,), [None], []),
    ("ATTR", "STRING", (), ["1", "1"], "1"),
    ("ATTR", "STRING", (), ["1", None], None),
    ("ATTR", "DOUBLE", (), [NAN, NAN], NAN),
    ("STDDEV_SAMP", "INT", (), [50, 10, 3], 643.0),
    ("STDDEV_SAMP", "DOUBLE", (), [1.0], 0.0),
    ("STDDEV_SAMPLE", "BIGINT", (), [500, 100, 0], 264.5751311064591),
    ("STDDEV_SAMPLE", "DOUBLE", (), [-1.8, 2.3], 2.899137802864845),
    (
        "CORRELATION",
        "DOUBLE; DOUBLE",
        (),
        [(1.5, 8.0), (-1.0, -2.0), (-4.5, -1.0), (None, 1.0)],
        0.7580764521133173,
    ),
    ("CORRELATION", "BIGINT; BIGINT", (), [(1, 8)], NAN),
]


def same(actual, expected):
    if isinstance(expected, float):
        return math.isclose(actual, expected, rel_tol=1e-12) or (
            actual != actual and expected != expected
        )
    return actual == expected and type(actual) is type(expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case):
    name, types, literals, rows, expected = case
    instance, _ = aggregate(name, types, literals)
    assert same(result(instance, fold(instance, rows)), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_merge_of_parts_is_the_whole(case):
    name, types, literals, rows, expected = case
    instance, _ = aggregate(name, types, literals)
    for cut in range(len(rows) + 1):
        state = instance.merge(fold(instance, rows[:cut]), fold(instance, rows[cut:]))
        assert same(result(instance, state), expected), cut


@pytest.mark.parametrize("case", CASES, ids=str)
def test_undo_takes_a_row_back(case):
    name, types, literals, rows, expected = case
    instance, _ = aggregate(name, types, literals)
    if instance.undo is None or NAN in rows:
        return
    state = fold(instance, rows)
    for row in reversed(rows):
        values = row if isinstance(row, tuple) else (row,)
        if instance.skips_null and None in values:
            continue
        state = instance.step(state, *values)
        state = instance.undo(state, *values)
        assert same(result(instance, copy.deepcopy(state)), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_state_survives_storage(case):
    name, types, literals, rows, expected = case
    instance, _ = aggregate(name, types, literals)
    state = fold(instance, rows)
    if "DECIMAL" in types and not isinstance(state, float):
        return  # decimals are packed by the store
    stored = ormsgpack.unpackb(ormsgpack.packb(state))
    assert same(result(instance, stored), expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_result_is_not_changed_by_later_rows(case):
    name, types, literals, rows, _ = case
    instance, _ = aggregate(name, types, literals)
    state = fold(instance, rows)
    before = result(instance, state)
    kept = copy.deepcopy(before)
    fold(instance, rows, state)
    assert before == kept or before != before


@pytest.mark.parametrize("case", CASES, ids=str)
def test_states_are_changed_in_place_where_that_is_declared_only(case):
    name, types, literals, rows, _ = case
    instance, _ = aggregate(name, types, literals)
    states = [fold(instance, rows[:end]) for end in range(len(rows) + 1)]
    shown = [copied(state) for state in states]
    if "step" not in instance.in_place:
        for state in states:
            fold(instance, rows, state)
    if instance.undo is not None and "undo" not in instance.in_place:
        for state, row in zip(states[1:], rows, strict=True):
            values = row if isinstance(row, tuple) else (row,)
            if not (instance.skips_null and None in values):
                instance.undo(state, *values)
    for first in states:
        for later in states:
            instance.merge(first, later)
    assert repr(states) == repr(shown)


def test_states_changed_in_place():
    changed = {}
    for name, types, literals, _, _ in CASES:
        instance, _ = aggregate(name, types, literals)
        assert instance.sure == bool(instance.in_place)
        if instance.in_place:
            changed[name] = instance.in_place
    assert changed == {
        "COLLECT_LIST": ("step", "undo"),
        "COLLECT_SET": ("step",),
        "HISTOGRAM": ("step",),
        "COUNT_DISTINCT": ("step",),
    }


def test_every_aggregate_has_a_case():
    known = {function.name for function in BUILTINS.all() if function.kind == "AGGREGATE"}
    assert known == {case[0] for case in CASES}


def test_undo_is_where_tables_allow_it():
    undoable = {
        f.name
        for f in BUILTINS.all()
        if f.kind == "AGGREGATE"
        and any(
            bool(o.undo) if isinstance(o, AggregateFunction) else o.undoable for o in f.overloads
        )
    }
    assert undoable == {
        *("COUNT", "SUM", "SUM_LIST", "AVG", "COLLECT_LIST", "HISTOGRAM", "ATTR"),
        *("STDDEV_SAMP", "STDDEV_SAMPLE", "CORRELATION"),
    }


VALUES = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_infinity=False) | st.just(NAN),
    "DATE": st.integers(-(10**6), 10**6),
    "TIME": st.integers(0, 86_399_999),
    "TIMESTAMP": st.integers(-(10**15), 10**15),
    "STRING": st.text(max_size=5),
    "BYTES": st.binary(max_size=5),
    "DECIMAL": st.decimals(-999, 999, places=1),
    "ANY": st.none() | st.integers(),
    "T": st.integers() | st.none(),
}


def coded():
    for function in BUILTINS.all():
        for overload in function.overloads:
            if isinstance(overload, AggregateFunction) and overload.step_code:
                yield pytest.param(overload, id=f"{function.name}{overload.params}")


@pytest.mark.parametrize("instance", list(coded()))
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_code_equals_functions(instance, data):
    column = VALUES[instance.params[0].split()[0]] if instance.params else st.none()
    rows = data.draw(st.lists(column, max_size=4))
    cut = data.draw(st.integers(0, len(rows)))
    step = eval(f"lambda s, a: {instance.step_code.replace('{s}', 's').replace('{0}', 'a')}")
    merge = eval(f"lambda s, o: {instance.merge_code.replace('{s}', 's').replace('{o}', 'o')}")

    def run(function, values):
        state = instance.init()
        for value in values:
            state = function(state, value) if instance.params else function(state)
        return state

    plain_step = step if instance.params else (lambda s: step(s, None))
    parts = [run(instance.step, part) for part in (rows[:cut], rows[cut:])]
    coded_parts = [run(plain_step, part) for part in (rows[:cut], rows[cut:])]
    assert repr(parts) == repr(coded_parts)
    assert repr(instance.merge(*parts)) == repr(merge(*coded_parts))


def test_caps_come_from_the_settings():
    limits = {"ksql.functions.collect_list.limit": "1", "ksql.functions._global_.limit": "2"}
    instance, _ = aggregate("COLLECT_LIST", "INT", settings=limits)
    assert result(instance, fold(instance, [1, 2, 3])) == [1]
    assert instance.merge([1], [2]) == [1]
    instance, _ = aggregate("COLLECT_SET", "INT", settings=limits)
    assert result(instance, fold(instance, [1, 1, 2, 3])) == [1, 2]
    instance, _ = aggregate(
        "COLLECT_LIST", "INT", settings={"ksql.functions.collect_list.limit": "-1"}
    )
    assert result(instance, fold(instance, [1, 2])) == [1, 2]


def test_sum_of_decimals_overflows():
    instance, _ = aggregate("SUM", "DECIMAL(3, 1)")
    state = fold(instance, [D("99.0")])
    with pytest.raises(QueryFailed, match="Numeric field overflow"):
        instance.step(state, D("1.0"))
    assert result(instance, state) == D("99.0")


def test_collect_list_undoes_the_last_equal_entry():
    instance, _ = aggregate("COLLECT_LIST", "INT")
    assert instance.undo([1, 2, 1, 3], 1) == [1, 2, 3]
    assert instance.undo([2], 1) == [2]


def test_histogram_is_capped_and_refuses_unknown_keys():
    instance, _ = aggregate("HISTOGRAM", "STRING")
    state = fold(instance, [str(i) for i in range(1001)])
    assert len(result(instance, state)) == 1000
    assert "1000" not in state
    with pytest.raises(EvaluationError):
        instance.undo(state, "1000")
    assert "7" not in instance.undo(state, "7")


def test_attr_follows_undo():
    instance, _ = aggregate("ATTR", "STRING")
    state = fold(instance, ["1", "2"])
    assert result(instance, state) is None
    assert result(instance, instance.undo(state, "2")) == "1"
    assert instance.undo([], "x") == []


@pytest.mark.parametrize("literals", [(0,), (-1, True)])
def test_n_must_be_positive(literals):
    with pytest.raises(BadConstant, match="earliestN must be 1 or greater"):
        aggregate("EARLIEST_BY_OFFSET", "INT", literals)
    with pytest.raises(BadConstant, match="latestN must be 1 or greater"):
        aggregate("LATEST_BY_OFFSET", "INT", literals)


@pytest.mark.parametrize(
    ("name", "types"), [("TOPK", "INT"), ("TOPK", "INT; INT"), ("TOPKDISTINCT", "INT")]
)
def test_how_many_must_be_said(name, types):
    function = BUILTINS.get(name)
    chosen = resolve_overload(function, [*types_of(types), NULL])
    with pytest.raises(BadConstant, match="NULL is no number"):
        instantiate_aggregate(function, chosen.overload, chosen.params[:-1], (None,))


@pytest.mark.parametrize("name", ["COLLECT_LIST", "COLLECT_SET"])
def test_the_cap_must_be_a_number(name):
    key = f"ksql.functions.{name.lower()}.limit"
    with pytest.raises(BadConstant, match=f"{key} must be an integer, not 'many'"):
        aggregate(name, "INT", settings={key: "many"})


def test_count_distinct_knows_a_map_in_any_process():
    instance, _ = aggregate("COUNT_DISTINCT", "ARRAY<MAP<STRING, INT>>")
    names = "abcdefgh"
    one, other = (dict.fromkeys(order, 1) for order in (names, reversed(names)))
    state = fold(instance, [[one], [other]])
    assert result(instance, state) == 1
    # Python's order of a set is another one in each process; the stored hash must not be
    assert list(state) == ["69f9da4b9e2d246d"]


def test_count_distinct_of_many_is_close():
    instance, _ = aggregate("COUNT_DISTINCT", "BIGINT")
    left, right = fold(instance, range(20_000)), fold(instance, range(10_000, 30_000))
    assert isinstance(left, bytes)
    assert abs(result(instance, left) / 20_000 - 1) < 0.03
    assert abs(result(instance, instance.merge(left, right)) / 30_000 - 1) < 0.03
    small = fold(instance, range(5))
    assert result(instance, instance.merge(small, left)) == result(instance, left)
    assert instance.step(left, 1) is left


@pytest.mark.parametrize("name", ["STDDEV_SAMP", "STDDEV_SAMPLE"])
@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DOUBLE"])
def test_deviations_do_not_depend_on_how_rows_were_batched(name, kind):
    instance, _ = aggregate(name, kind)
    whole = result(instance, fold(instance, [1, 2, 4]))
    assert math.isclose(
        result(instance, instance.merge(fold(instance, [1, 2]), fold(instance, [4]))), whole
    )


def test_undo_to_empty():
    for name in ("STDDEV_SAMPLE", "AVG"):
        instance, _ = aggregate(name, "INT")
        assert result(instance, instance.undo(fold(instance, [5]), 5)) == 0.0


@pytest.mark.parametrize("name", ["STDDEV_SAMP", "STDDEV_SAMPLE"])
@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DOUBLE"])
@settings(max_examples=examples(200), deadline=None)
@given(data=st.data())
def test_deviations_are_never_negative_after_undo(name, kind, data):
    number = {"INT": st.integers(-(2**31), 2**31 - 1), "BIGINT": st.integers(-(2**62), 2**62)}
    numbers = number.get(kind, st.floats(-1e3, 1e3))
    first, other = data.draw(numbers), data.draw(numbers)
    instance, _ = aggregate(name, kind)
    state = instance.undo(fold(instance, [first, other, first]), other)
    assert result(instance, state) >= 0.0
    assert result(instance, instance.step(instance.undo(state, first), first)) >= 0.0


def test_deviation_of_equal_values_is_zero_after_undo():
    first, other = 671.5302078397394, -134.4658641898933
    for name in ("STDDEV_SAMP", "STDDEV_SAMPLE"):
        instance, _ = aggregate(name, "DOUBLE")
        state = instance.undo(fold(instance, [first, other, first]), other)
        assert result(instance, state) == 0.0


def test_stored_negative_sum_of_squares_is_zero():
    instance, _ = aggregate("STDDEV_SAMPLE", "DOUBLE")
    assert result(instance, [1343.06, 2, -1.2e-10]) == 0.0


def test_deviation_of_no_number_is_no_number_after_undo():
    instance, _ = aggregate("STDDEV_SAMPLE", "DOUBLE")
    state = instance.undo(fold(instance, [1.0, NAN, 2.0, 3.0]), 1.0)
    assert math.isnan(result(instance, state))


def test_undo_to_one_value_leaves_no_rest():
    instance, _ = aggregate("STDDEV_SAMP", "DOUBLE")
    state = fold(instance, [0.1, 1e9, 0.3])
    for value in (1e9, 0.3):
        state = instance.undo(state, value)
    assert state[2] == 0.0


@pytest.mark.parametrize(
    ("rows", "back"),
    [
        ([(2.2, -0.1), (-2.8, -1.8), (2.2, -0.1)], (-2.8, -1.8)),
        ([(-1.3, -2.6)] * 3, None),
        ([(1.5, 2.0), (1.5, 3.0)], None),
    ],
)
def test_correlation_without_spread_is_no_number(rows, back):
    instance, _ = aggregate("CORRELATION", "DOUBLE; DOUBLE")
    state = fold(instance, rows)
    if back is not None:
        state = instance.undo(state, *back)
    assert math.isnan(result(instance, state))


def test_state_types():
    _, chosen = aggregate("AVG", "INT")
    assert str(chosen.state) == "STRUCT<`SUM` INTEGER, `COUNT` BIGINT>"
    _, chosen = aggregate("TOPK", "INT; STRING", (1,))
    assert str(chosen.state) == "ARRAY<STRUCT<`sort_col` INTEGER, `col0` STRING>>"
    _, chosen = aggregate("SUM", "INT")
    assert chosen.state == chosen.returns
    for name in ("EARLIEST_BY_OFFSET", "LATEST_BY_OFFSET"):
        for alone in ((), (False,)):
            _, chosen = aggregate(name, "STRING", alone)
            assert str(chosen.state) == "STRUCT<`SEQ` BIGINT, `VAL` STRING>"
        for literals in ((2,), (2, True)):
            _, chosen = aggregate(name, "STRING", literals)
            assert str(chosen.state) == "ARRAY<STRUCT<`SEQ` BIGINT, `VAL` STRING>>"


ITEMS = {
    "INT": (-1, 2**31 - 1, 7),
    "BIGINT": (-1, 2**63 - 1, 7),
    "STRING": ("", "a", "b"),
    "BYTES": (b"", b"a", b"\xff"),
    "DATE": (1, 5, 3),
    "TIME": (1, 5, 3),
    "TIMESTAMP": (1, 5, 3),
}
UNORDERED = [
    *(("COUNT", types) for types in ("", "STRING")),
    *((name, kind) for name in ("SUM", "AVG") for kind in ("INT", "BIGINT")),
    *((name, kind) for name in ("MIN", "MAX") for kind in ITEMS),
    *(("CORRELATION", f"{kind}; {kind}") for kind in ("INT", "BIGINT")),
    *(("COUNT_DISTINCT", kind) for kind in ("INT", "STRING")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "types"), UNORDERED)
@given(data=st.data())
def test_unordered_aggregate_has_one_result_for_all_divisions(name, types, data):
    function, _ = aggregate(name, types)
    assert function.unordered
    kinds = types.split("; ") if types else []
    row = st.tuples(*(st.sampled_from(ITEMS[kind]) for kind in kinds))
    rows = data.draw(st.lists(row, max_size=12))
    parts: list[list[object]] = [[], [], []]
    for each in data.draw(st.permutations(rows)):
        parts[data.draw(st.integers(0, 2))].append(each)
    merged = function.init()
    for state in [stepwise(function, part) for part in parts]:
        before = copy.deepcopy(state)
        merged = function.merge(merged, state)
        assert state == before
    shown = function.result or (lambda state: state)
    assert repr(shown(merged)) == repr(shown(stepwise(function, rows)))


def stepwise(function, rows):
    state = function.init()
    for row in rows:
        state = function.step(state, *row)
    return state


@pytest.mark.parametrize(
    ("name", "types"),
    [
        *((name, "DOUBLE") for name in ("SUM", "AVG", "MIN", "MAX", "STDDEV_SAMPLE")),
        *((name, "DECIMAL(6, 2)") for name in ("SUM", "MIN", "MAX")),
        *((name, "STRING") for name in ("COLLECT_LIST", "COLLECT_SET", "HISTOGRAM")),
        *((f"{name}_BY_OFFSET", "STRING") for name in ("EARLIEST", "LATEST")),
    ],
)
def test_order_dependent_aggregate_is_not_unordered(name, types):
    function, _ = aggregate(name, types)
    assert not function.unordered
