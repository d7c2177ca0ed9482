"""The shop's results computed a second time, by pandas from the same records.

Nothing of the service is used, except where each order lies in its topic.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from server.demo.expected import Rows, rows_of
from server.demo.shop.data import DAY_MS, HOUR_MS, Shop
from server.demo.shop.script import GRACE_MS, SESSION_GAP_MS, WITHIN_MS


@dataclass(frozen=True)
class ExpectedShop:
    """The shop's records; ``orders`` with the ``partition`` and ``offset`` of each."""

    shop: Shop
    orders: pd.DataFrame

    @classmethod
    def of(cls, shop: Shop, places: pd.DataFrame) -> ExpectedShop:
        """Join the orders with ``places``, which has the columns order_id, partition, offset."""
        return cls(shop, shop.orders.merge(places, on="order_id", validate="one_to_one"))

    def all(self) -> dict[str, Rows]:
        """Return the rows of each result, by its topic."""
        return {
            "ENRICHED": self.enriched(),
            "ORDER_PAYMENTS": self.order_payments(),
            "VISITS": self.visits(),
            "REVENUE": self.revenue(),
            "PRODUCT_DAYS": self.product_days(),
            "ORDER_LINES": self.order_lines(),
            "CATEGORIES": self.categories(),
        }

    def enriched(self) -> Rows:
        """Return time, customer, order, product, amount, country."""
        joined = self._with_countries()
        names = ["time_ms", "customer_id", "order_id", "product_id", "amount", "country"]
        return rows_of(joined[names])

    def order_payments(self) -> Rows:
        """Return time, order, amount, payment, method; none of both for an order without a match.

        Those that still wait for a match when the records end have no row.
        """
        orders = self._with_amounts()[["order_id", "amount", "time_ms"]]
        pairs = orders.merge(self.shop.payments, on="order_id", suffixes=("", "_paid"))
        pairs = pairs[(pairs["time_ms_paid"] - pairs["time_ms"]).abs() <= WITHIN_MS]
        unpaid = orders[~orders["order_id"].isin(pairs["order_id"])]
        unpaid = unpaid[unpaid["time_ms"] + WITHIN_MS + GRACE_MS < self._end_ms]
        pairs = pairs.assign(time_ms=pairs[["time_ms", "time_ms_paid"]].max(axis="columns"))
        names = ["time_ms", "order_id", "amount", "payment_id", "method"]
        unpaid = unpaid.assign(payment_id=None, method=None)
        return rows_of(pairs[names]) + rows_of(unpaid[names])

    def visits(self) -> Rows:
        """Return user, first click's time, last click's time, number, seconds."""
        clicks = self.shop.clicks.sort_values(["user_id", "time_ms"])
        begins = clicks.groupby("user_id")["time_ms"].diff().gt(SESSION_GAP_MS)
        clicks = clicks.assign(visit=begins.groupby(clicks["user_id"]).cumsum())
        table = clicks.groupby(["user_id", "visit"], as_index=False).agg(
            first_ms=("time_ms", "min"),
            last_ms=("time_ms", "max"),
            clicks=("page", "size"),
            stay_s=("stay_s", "sum"),
        )
        return rows_of(table.drop(columns="visit"))

    def revenue(self) -> Rows:
        """Return country, hour, number, sum; the windows that a later record has closed."""
        orders = self._with_countries().dropna(subset="country")
        orders = orders.assign(hour_ms=orders["time_ms"] // HOUR_MS * HOUR_MS)
        orders = orders[orders["hour_ms"] + HOUR_MS + GRACE_MS <= self._end_ms]
        table = orders.groupby(["country", "hour_ms"], as_index=False).agg(
            orders=("order_id", "size"), cents=("cents", "sum")
        )
        table["revenue"] = table.pop("cents") / 100
        return rows_of(table)

    def product_days(self) -> Rows:
        """Return product, day, number, pieces, sum, the three largest amounts."""
        orders = self._with_amounts()
        orders["day_ms"] = orders["time_ms"] // DAY_MS * DAY_MS
        table = orders.groupby(["product_id", "day_ms"], as_index=False).agg(
            orders=("order_id", "size"),
            pieces=("quantity", "sum"),
            cents=("cents", "sum"),
            largest=("amount", lambda amounts: tuple(amounts.nlargest(3))),
        )
        table["revenue"] = table.pop("cents") / 100
        names = ["product_id", "day_ms", "orders", "pieces", "revenue", "largest"]
        return rows_of(table[names])

    def order_lines(self) -> Rows:
        """Return order, product, category, amount by the price that is valid now."""
        lines = self._lines()
        return rows_of(lines[["order_id", "product_id", "category", "list_amount"]])

    def categories(self) -> Rows:
        """Return category, number, sum."""
        table = (
            self._lines()
            .groupby("category", as_index=False)
            .agg(orders=("order_id", "size"), list_cents=("list_cents", "sum"))
        )
        table["list_amount"] = table.pop("list_cents") / 100
        return rows_of(table)

    # --- parts of them

    @property
    def _end_ms(self) -> int:
        """The time of the last order, which closes what waits for it."""
        return int(self.orders["time_ms"].max())

    def _with_amounts(self) -> pd.DataFrame:
        return self.orders.assign(amount=self.orders["cents"] / 100)

    def _with_countries(self) -> pd.DataFrame:
        """Return the orders with the country that the customer has when the order's turn comes.

        That is its time, or, for an order that lies behind a later one, the later one's time.
        """
        orders = self._with_amounts().sort_values(["partition", "offset"])
        orders["turn_ms"] = orders.groupby("partition")["time_ms"].cummax()
        customers = self.shop.customers.rename(columns={"time_ms": "turn_ms"})
        return pd.merge_asof(
            orders.sort_values("turn_ms"), customers, on="turn_ms", by="customer_id"
        )

    def _lines(self) -> pd.DataFrame:
        """Return the orders with their products as these are after the last change."""
        products = self.shop.products.groupby("product_id").tail(1).dropna(subset="category")
        lines = self.orders[["order_id", "product_id", "quantity"]].merge(
            products[["product_id", "category", "cents"]], on="product_id"
        )
        lines["list_cents"] = (lines["quantity"] * lines["cents"]).astype("int64")
        lines["list_amount"] = lines["list_cents"] / 100
        return lines
