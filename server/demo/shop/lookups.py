"""One look at each result by a pull query, and the rows that it has to show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from server.demo.expected import Row, Rows
from server.demo.shop.data import DAY_MS, HOUR_MS, LAST_MS

_ORDERS = ("o00001", "o00002", "o00003")
_USER, _COUNTRY = "u00001", "FR"
_LAST_DAY_MS, _EVENING_MS = LAST_MS - DAY_MS, LAST_MS - 4 * HOUR_MS
_TOP = 5


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question to the service, and its answer."""

    result: str
    sql: str
    rows: Rows
    ordered: bool = False


def lookups(results: Mapping[str, Rows]) -> list[Lookup]:
    """Return a look at each result; ``results`` has all rows of each, as ``Expected`` has them."""
    return [
        _at_enriched(results["ENRICHED"]),
        _at_payments(results["ORDER_PAYMENTS"]),
        _at_visits(results["VISITS"]),
        _at_revenue(results["REVENUE"]),
        _at_products(results["PRODUCT_DAYS"]),
        _at_lines(results["ORDER_LINES"]),
        Lookup("CATEGORIES", "SELECT * FROM categories;", results["CATEGORIES"]),
    ]


def _at_enriched(rows: Rows) -> Lookup:
    sql = (
        "SELECT order_id, customer_id, country, product_id, amount\n"  # noqa: S608 - our own names
        f"  FROM enriched WHERE order_id IN {_ORDERS};"
    )
    return Lookup("ENRICHED", sql, _of(rows, lambda row: row[2] in _ORDERS, (2, 1, 5, 3, 4)))


def _at_payments(rows: Rows) -> Lookup:
    """Look at the first order without a match and at the first one with two."""
    by_order = Counter(str(row[1]) for row in rows.elements())
    unpaid = min(str(row[1]) for row in rows if row[3] is None)
    twice = min(order_id for order_id, count in by_order.items() if count > 1)
    sql = (
        "SELECT order_id, amount, payment_id, method\n"  # noqa: S608 - likewise
        f"  FROM order_payments WHERE order_id IN {(unpaid, twice)};"
    )
    rows = _of(rows, lambda row: row[1] in (unpaid, twice), (1, 2, 3, 4))
    return Lookup("ORDER_PAYMENTS", sql, rows)


def _at_visits(rows: Rows) -> Lookup:
    sql = (
        f"SELECT {_time('WINDOWSTART')} AS first,\n"  # noqa: S608 - likewise
        f"       {_time('WINDOWEND')} AS last, clicks, stay_s\n"
        f"  FROM visits WHERE user_id = '{_USER}' ORDER BY WINDOWSTART;"
    )
    mine = [row for row in rows.elements() if row[0] == _USER]
    shown = Counter((_clock(row[1]), _clock(row[2]), *row[3:]) for row in mine)
    return Lookup("VISITS", sql, shown, ordered=True)


def _at_revenue(rows: Rows) -> Lookup:
    sql = (
        f"SELECT country, {_time('WINDOWSTART')} AS hour,\n"  # noqa: S608 - likewise
        f"       orders, revenue\n"
        f"  FROM revenue WHERE country = '{_COUNTRY}'"
        f" AND WINDOWSTART >= '{_iso(_EVENING_MS)}'\n  ORDER BY WINDOWSTART;"
    )
    evening = [row for row in rows if row[0] == _COUNTRY and _ms(row[1]) >= _EVENING_MS]
    shown = Counter((row[0], _clock(row[1]), *row[2:]) for row in evening)
    return Lookup("REVENUE", sql, shown, ordered=True)


def _at_products(rows: Rows) -> Lookup:
    sql = (
        "SELECT product_id, orders, pieces, revenue, largest\n"  # noqa: S608 - likewise
        f"  FROM product_days WHERE WINDOWSTART = '{_iso(_LAST_DAY_MS)}'\n"
        f"  ORDER BY revenue DESC LIMIT {_TOP};"
    )
    day = [row for row in rows if row[1] == _LAST_DAY_MS]
    best = sorted(day, key=lambda row: -float(str(row[4])))[:_TOP]
    return Lookup("PRODUCT_DAYS", sql, _of(Counter(best), lambda _: True, (0, 2, 3, 4, 5)), True)


def _at_lines(rows: Rows) -> Lookup:
    sql = f"SELECT * FROM order_lines WHERE order_id IN {_ORDERS};"  # noqa: S608 - likewise
    return Lookup("ORDER_LINES", sql, _of(rows, lambda row: row[0] in _ORDERS, (0, 1, 2, 3)))


def _of(rows: Rows, test: Callable[[Row], bool], columns: tuple[int, ...]) -> Rows:
    return Counter(tuple(row[i] for i in columns) for row in rows.elements() if test(row))


def _time(column: str) -> str:
    return f"FORMAT_TIMESTAMP(FROM_UNIXTIME({column}), 'dd HH:mm:ss')"


def _clock(time_ms: object) -> str:
    return _moment(time_ms).strftime("%d %H:%M:%S")


def _iso(time_ms: int) -> str:
    return _moment(time_ms).strftime("%Y-%m-%dT%H:%M")


def _moment(time_ms: object) -> datetime:
    return datetime.fromtimestamp(_ms(time_ms) / 1000, UTC)


def _ms(time_ms: object) -> int:
    return int(str(time_ms))
