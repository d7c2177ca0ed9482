from __future__ import annotations

from collections import Counter

import pytest

from server.demo.shop import data, script
from server.demo.shop.expected import ExpectedShop
from server.demo.shop.lookups import lookups


@pytest.fixture(scope="module")
def rows_by_look():
    shop = data.make(1000)
    places = shop.orders[["order_id"]].assign(partition=0, offset=range(len(shop.orders)))
    return {each.result: each for each in lookups(ExpectedShop.of(shop, places).all())}


def test_a_look_at_each_result_has_rows(rows_by_look):
    assert list(rows_by_look) == list(script.QUERIES)
    for look in rows_by_look.values():
        assert look.rows.total() > 0
        assert f"FROM {look.result.lower()}" in look.sql


def test_the_best_products_are_five(rows_by_look):
    rows = list(rows_by_look["PRODUCT_DAYS"].rows.elements())
    assert len(rows) == 5
    assert all(list(row[4]) == sorted(row[4], reverse=True) for row in rows)
    assert rows_by_look["PRODUCT_DAYS"].ordered


def test_payments_show_an_order_without_and_one_with_two(rows_by_look):
    rows = rows_by_look["ORDER_PAYMENTS"].rows
    assert sorted(Counter(row[2] is None for row in rows.elements()).items()) == [
        (False, 2),
        (True, 1),
    ]


def test_times_are_read_by_people(rows_by_look):
    row = max(rows_by_look["REVENUE"].rows)
    assert (row[0], row[1]) == ("FR", "04 23:00:00")
