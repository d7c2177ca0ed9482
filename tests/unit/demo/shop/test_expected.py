from __future__ import annotations

from collections import Counter

import pandas as pd
import pytest

from server.demo.shop.data import DAY_MS, HOUR_MS, MINUTE_MS, Shop
from server.demo.shop.expected import ExpectedShop

END = 2 * HOUR_MS


def frame(columns, *rows):
    return pd.DataFrame(list(rows), columns=columns.split())


@pytest.fixture
def expected():
    """A late order behind a later one, a customer who moves between both, a guest, the end."""
    shop = Shop(
        customers=frame(
            "customer_id country time_ms", ("c2", "DE", -3), ("c1", "DE", -1), ("c1", "FR", 5001)
        ),
        products=frame(
            "product_id category cents time_ms",
            ("p1", "books", 100, -1),
            ("p1", "games", 250, 9),
            ("p2", "books", 500, -1),
            ("p2", None, None, 7),
        ),
        orders=frame(
            "order_id customer_id product_id quantity cents time_ms",
            ("o1", "c1", "p1", 2, 210, 4000),
            ("o2", "c2", "p1", 1, 100, 6000),
            ("o3", "c1", "p2", 1, 505, 4400),
            ("o4", None, "p1", 3, 300, 8000),
            ("o5", "c1", "p1", 1, 110, END),
        ),
        payments=frame(
            "order_id payment_id method time_ms",
            ("o1", 0, "card", 3000),
            ("o1", 1, "card", 4000 + 10 * MINUTE_MS),
            ("o2", 2, "card", 6001 + 10 * MINUTE_MS),
        ),
        clicks=frame(
            "user_id page stay_s time_ms",
            ("u1", "home", 5, 40 * MINUTE_MS),
            ("u2", "home", 7, 10),
            ("u1", "help", 6, 10 * MINUTE_MS),
            ("u1", "help", 1, 70 * MINUTE_MS + 1),
        ),
    )
    places = frame(
        "order_id partition offset", ("o1", 0, 0), ("o2", 1, 0), ("o3", 1, 1), ("o4", 0, 1),
        ("o5", 0, 2),
    )  # fmt: skip
    return ExpectedShop.of(shop, places)


def test_a_late_order_meets_the_customer_of_its_turn(expected):
    assert expected.enriched() == Counter(
        [
            (4000, "c1", "o1", "p1", 2.1, "DE"),
            (6000, "c2", "o2", "p1", 1.0, "DE"),
            (4400, "c1", "o3", "p2", 5.05, "FR"),
            (8000, None, "o4", "p1", 3.0, None),
            (END, "c1", "o5", "p1", 1.1, "FR"),
        ]
    )


def test_payments_within_the_bounds_and_orders_without(expected):
    assert expected.order_payments() == Counter(
        [
            (4000, "o1", 2.1, 0, "card"),
            (4000 + 10 * MINUTE_MS, "o1", 2.1, 1, "card"),
            (6000, "o2", 1.0, None, None),
            (4400, "o3", 5.05, None, None),
            (8000, "o4", 3.0, None, None),
        ]
    )


def test_visits_end_after_the_gap(expected):
    assert expected.visits() == Counter(
        [
            ("u1", 10 * MINUTE_MS, 40 * MINUTE_MS, 2, 11),
            ("u1", 70 * MINUTE_MS + 1, 70 * MINUTE_MS + 1, 1, 1),
            ("u2", 10, 10, 1, 7),
        ]
    )


def test_open_windows_have_no_revenue_yet(expected):
    assert expected.revenue() == Counter([("DE", 0, 2, 3.1), ("FR", 0, 1, 5.05)])


def test_days_of_products(expected):
    rows = expected.product_days()
    assert rows == Counter([("p1", 0, 4, 7, 7.2, (3.0, 2.1, 1.1)), ("p2", 0, 1, 1, 5.05, (5.05,))])
    assert DAY_MS > END


def test_lines_have_the_last_product(expected):
    assert expected.order_lines() == Counter(
        [
            ("o1", "p1", "games", 5.0),
            ("o2", "p1", "games", 2.5),
            ("o4", "p1", "games", 7.5),
            ("o5", "p1", "games", 2.5),
        ]
    )
    assert expected.categories() == Counter([("games", 4, 17.5)])
    assert list(expected.all()) == [
        "ENRICHED",
        "ORDER_PAYMENTS",
        "VISITS",
        "REVENUE",
        "PRODUCT_DAYS",
        "ORDER_LINES",
        "CATEGORIES",
    ]
