"""Programs with patterns have budgets of their own."""

from __future__ import annotations

import contextlib

from ksql.core.types.model import STRING
from ksql.exec.expressions import compile
from ksql.exec.expressions.compile import compile_expr
from ksql.functions.instantiate import instantiate_scalar
from ksql.functions.registry import BUILTINS
from ksql.java.regex import matcher as budgets
from ksql.java.regex.matcher import Budget
from ksql.sql.binder.infer import bind
from ksql.sql.binder.scope import NO_COLUMNS
from ksql.sql.syntax.parser import parse_one, split
from tests.unit.functions.overloads import nth

REGEXP, DATE = "REGEXP_EXTRACT('a', 'ba')", "PARSE_DATE('2020', 'yyyy')"


def run(text):
    [raw] = split(f"INSERT INTO s VALUES ({text});")
    [value] = parse_one(raw).statement.values
    compiled = compile_expr((), bind(value, NO_COLUMNS, BUILTINS), BUILTINS, {}, "x")
    return lambda: compiled((), None)


def test_a_program_spends_from_its_own_budget():
    outer = Budget()
    budgets.use(outer)
    first, second, plain = run(REGEXP), run(f"LEN({REGEXP}) + 1"), run("UCASE('a')")
    plain()
    assert budgets.current() is outer
    first()
    own = budgets.current()
    second()
    assert budgets.current() not in (outer, own)
    first()
    assert budgets.current() is own
    run(DATE)()
    assert budgets.current() not in (outer, own)


def test_every_function_that_matches_with_patterns_is_named(monkeypatch):
    """What spends from a budget is found by trying all functions of texts."""
    matching, tried = set(), [""]
    usual = Budget.limit_s

    def note(self):
        matching.add(tried[-1])
        return usual(self)

    monkeypatch.setattr(Budget, "limit_s", note)
    texts = ["a1", "(?=a)a\\1", "uuuuH[H][H][H][H][H]", "[yyyy][MM][dd][HH][mm][ss]"]
    for function in BUILTINS.all():
        tried.append(function.name)
        for number in range(len(function.overloads)):
            for count in (2, 3):
                for text in texts:
                    attempt(function, number, [texts[0], text, "a"][:count])
    assert matching <= compile.FUNCTIONS
    assert {"REGEXP_REPLACE", "PARSE_TIMESTAMP"} <= matching


def attempt(function, number, args):
    """Call it, though most functions want something else."""
    with contextlib.suppress(Exception):
        instantiate_scalar(function, nth(function, number), [STRING] * len(args)).row(*args)
