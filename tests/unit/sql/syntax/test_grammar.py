"""The grammar and its builders belong together."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import get_args

import pytest

from ksql.core.ident import RESERVED, quote
from ksql.sql.syntax import ast
from ksql.sql.syntax.build import BUILDERS
from ksql.sql.syntax.machine import grammar
from tests.parsing import parse, parse_expression

GOLDEN = Path(__file__).parents[3] / "golden/parse_statements.sql"


def test_every_builder_serves_a_rule_and_every_rule_has_one():
    built = set()
    for row in grammar().actions.values():
        for action in row.values():
            if not isinstance(action, int) and action.build is not None:
                built.add(action.origin)
    handed_on = {
        action.origin
        for row in grammar().actions.values()
        for action in row.values()
        if not isinstance(action, int) and action.build is None
    }
    rules = {name for name in built - handed_on if not name.startswith("_")}
    assert rules
    assert all(callable(build) for build in vars(BUILDERS).values())


def test_every_kind_of_statement_has_a_golden_pair():
    parsed = parse(
        GOLDEN.read_text("utf-8"), test_statements=True
    )  # queries have a file of their own
    assert {type(each.statement) for each in parsed} == set(get_args(ast.Statement)) - {ast.Query}


def test_keywords_of_the_grammar_that_are_reserved():
    keywords = set(grammar().lexer.keywords)
    assert {"SELECT", "FROM", "STREAM", "DECIMAL"} <= keywords & RESERVED
    assert {"EMIT", "KEY", "MAP", "ID"} <= keywords - RESERVED


@pytest.mark.parametrize(
    "name", ["A", "2ND", "1E5", "12", "1E", "a", "SELECT", "X Y", "_@1", "5E5X"]
)
def test_a_quoted_name_reads_back(name):
    assert parse_expression(quote(name)).name == name


def test_parsing_from_several_threads():
    statements = []

    def work(n):
        variables = {"v": f"s{n}"}
        for _ in range(20):
            [parsed] = parse("SELECT ${v}.a FROM ${v};", variables=variables)
            statements.append(parsed.statement.source.name == f"S{n}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statements == [True] * 160
