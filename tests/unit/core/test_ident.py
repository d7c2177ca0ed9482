from __future__ import annotations

import pytest

from ksql.core.ident import RESERVED, near, quote, quote_always, similar, string_literal
from ksql.core.records import persistent_query_id


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("A", "A"),
        ("A_1@X", "A_1@X"),
        ("2ND", "2ND"),
        ("12", "`12`"),
        ("1E5", "`1E5`"),
        ("a", "`a`"),
        ("", "``"),
        ("X Y", "`X Y`"),
        ("A`B", "`A``B`"),
        ("SELECT", "`SELECT`"),
        ("DATE", "DATE"),
        ("A\n", "`A\n`"),
    ],
)
def test_quote(name, written):
    assert quote(name) == written


def test_all_reserved_words_are_quoted():
    assert len(RESERVED) == 88
    assert all(quote(word) == f"`{word}`" for word in RESERVED)


def test_near_ignores_case_and_keeps_the_best_first():
    assert near("ordrs", ["ORDERS", "Users", "ORDER"], 2) == ("ORDERS", "ORDER")
    assert near("users", ["Users"]) == ("`Users`",)
    assert near("zzz", ["ORDERS"]) == ()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("CSAS", "CSAS_BAR_7"), ("CTAS", "CTAS_BAR_7"), ("INSERTQUERY", "INSERTQUERY_7")],
)
def test_query_ids(kind, expected):
    assert persistent_query_id(kind, "BAR", 7) == expected


def test_quotes_in_names_are_doubled():
    assert (quote_always("A"), quote_always("a`b")) == ("`A`", "`a``b`")
    assert (string_literal("it's"), string_literal("")) == ("'it''s'", "''")


def test_similar_names_are_as_they_are():
    assert similar("users", ["Users", "orders"]) == ("Users",)
    assert similar("users", ["usr"], least=0.7) == ("usr",)
    assert similar("users", ["usr"], least=0.8) == ()
