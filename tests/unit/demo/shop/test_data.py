from __future__ import annotations

import json

import pytest

from server.demo.shop import data


@pytest.fixture(scope="module")
def shop():
    return data.make(1000)


def test_the_same_shop_in_every_run(shop):
    again = data.make(1000)
    for name in ("customers", "products", "orders", "payments", "clicks"):
        assert getattr(again, name).equals(getattr(shop, name))


def test_events_arrive_late_by_minutes(shop):
    for frame in (shop.orders, shop.payments, shop.clicks):
        behind = frame["time_ms"].cummax() - frame["time_ms"]
        assert behind.max() > data.MINUTE_MS
        assert behind.max() <= 5 * data.MINUTE_MS
        assert (behind > 0).sum() > 20


def test_changes_of_tables_are_in_order_and_at_no_events_time(shop):
    for frame in (shop.customers, shop.products):
        assert frame["time_ms"].is_monotonic_increasing
        assert set(frame["time_ms"] % 2) == {1}
    for frame in (shop.orders, shop.payments, shop.clicks):
        assert set(frame["time_ms"] % 2) == {0}


def test_the_cases_that_joins_have_to_bear(shop):
    assert shop.orders["customer_id"].isna().any()
    assert (shop.orders["customer_id"] == "c-unknown").any()
    assert (shop.orders["product_id"] == "p-unknown").any()
    assert shop.customers["country"].isna().any()
    assert shop.products["category"].isna().any()
    paid = shop.payments["order_id"].value_counts()
    assert set(paid) == {1, 2}
    assert len(paid) < 1000


def test_the_last_orders_close_windows(shop):
    late = shop.orders[shop.orders["time_ms"] >= data.LAST_MS]
    assert len(late) == 100
    assert late["time_ms"].min() == data.LAST_MS + 2 * data.HOUR_MS
    assert shop.orders["time_ms"].iloc[-1] == late["time_ms"].max()


def test_records(shop):
    topics = {topic: list(records) for topic, records in shop.records(1).items()}
    assert {topic: len(records) for topic, records in topics.items()} == {
        topic: len(getattr(shop, topic)) for topic in topics
    }
    gone = [r for r in topics["customers"] if r.value is None]
    assert len(gone) == shop.customers["country"].isna().sum()
    first = topics["products"][0]
    row = shop.products.iloc[0]
    assert (first.key, first.timestamp_ms) == (row["product_id"].encode(), row["time_ms"])
    assert json.loads(first.value) == {"category": row["category"], "price": row["cents"] / 100}
    assert all(record.value for record in topics["orders"])
