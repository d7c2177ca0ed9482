"""The demo shop's three days of events, the same in every run, with an Avro writer of its own.

The frames of events are in the order of arrival: some events reach Kafka minutes after their time.
Times of events are even, those of changes of tables are odd: no two are equal, so it is clear which
was first.

Orders are written in AVRO by code that the service does not share.

Source: Apache Avro 1.12, "Binary Encoding"; Confluent's wire format.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from server.demo.data import KafkaRecord, plain

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "PlacedOrder",
        "namespace": "shop",
        "fields": [
            {"name": "customer_id", "type": ["null", "string"], "default": None},
            {"name": "product_id", "type": "string"},
            {"name": "quantity", "type": "int"},
            {
                "name": "amount",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            },
        ],
    }
)
_NULL, _STRING = b"\x00", b"\x02"  # branches 0 and 1 of the union
_PREFIX = struct.Struct(">bI")  # zero byte and the schema's id


def order(
    schema_id: int, customer_id: str | None, product_id: str, quantity: int, cents: int
) -> bytes:
    """Return an order's value, in the form of ``SCHEMA``."""
    customer = _NULL if customer_id is None else _STRING + _text(customer_id)
    body = customer + _text(product_id) + number(quantity) + _decimal(cents)
    return _PREFIX.pack(0, schema_id) + body


def number(value: int) -> bytes:
    """Return an int or a long: zigzag, then seven bits a byte, the lowest first."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def _text(value: str) -> bytes:
    return _counted(value.encode())


def _decimal(unscaled: int) -> bytes:
    """Return a decimal's bytes: the unscaled number in two's complement, big endian."""
    return _counted(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))


def _counted(content: bytes) -> bytes:
    return number(len(content)) + content


SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
FIRST_MS = 1_772_409_600_000  # 2 March 2026, a Monday, UTC
DAYS = 3
LAST_MS = FIRST_MS + DAYS * DAY_MS
COUNTRIES = ("DE", "ES", "FR", "IT", "NL", "PL", "SE")
CATEGORIES = ("books", "garden", "games", "kitchen", "music", "sports")

_SEED = 20_260_302
_METHODS = ("card", "invoice", "transfer")
_PAGES = ("home", "search", "product", "basket", "help")
_LATE_SHARE, _MOST_LATE_MS = 0.2, 5 * MINUTE_MS
_MOVED_SHARE, _LEFT_SHARE, _REPRICED_SHARE, _WITHDRAWN_SHARE = 0.3, 0.05, 0.4, 0.1
_UNKNOWN_SHARE, _GUEST_SHARE = 0.02, 0.01
_PAID_SOON_SHARE, _PAID_LATE_SHARE, _PAID_TWICE_SHARE = 0.85, 0.07, 0.03
_CLICKS_PER_ORDER, _CLICKS_PER_USER = 2.5, 50
_CLOSING_AFTER_MS, _CLOSING_ORDERS = 2 * HOUR_MS, 100


@dataclass(frozen=True)
class Shop:
    """All records: changes of tables in the order of time, events in the order of arrival.

    Attributes:
        customers: customer_id, country (none: the customer has left), time_ms.
        products: product_id, category, cents (none of both: withdrawn), time_ms.
        orders: order_id, customer_id (none: a guest), product_id, quantity, cents, time_ms.
        payments: order_id, payment_id, method, time_ms.
        clicks: user_id, page, stay_s, time_ms.
    """

    customers: pd.DataFrame
    products: pd.DataFrame
    orders: pd.DataFrame
    payments: pd.DataFrame
    clicks: pd.DataFrame

    def records(self, schema_id: int) -> dict[str, Iterator[KafkaRecord]]:
        """Return the records of each topic; ``schema_id`` is that of an order's schema."""
        return {
            "customers": _json_records(self.customers, "customer_id", ("country",)),
            "products": self._product_records(),
            "orders": self._order_records(schema_id),
            "payments": _json_records(self.payments, "order_id", ("payment_id", "method")),
            "clicks": _json_records(self.clicks, "user_id", ("page", "stay_s")),
        }

    def _order_records(self, schema_id: int) -> Iterator[KafkaRecord]:
        names = ("order_id", "time_ms", "customer_id", "product_id", "quantity", "cents")
        for order_id, time_ms, *values in _rows(self.orders, names):
            yield KafkaRecord(str(order_id).encode(), order(schema_id, *values), time_ms)

    def _product_records(self) -> Iterator[KafkaRecord]:
        priced = self.products.assign(price=self.products["cents"] / 100)
        return _json_records(priced, "product_id", ("category", "price"))


def _rows(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(plain(frame[name]) for name in names), strict=True)


def _json_records(frame: pd.DataFrame, key: str, names: Sequence[str]) -> Iterator[KafkaRecord]:
    """Yield records in JSON; one whose first field is missing is a deletion."""
    for name, time_ms, *values in _rows(frame, (key, "time_ms", *names)):
        value = json.dumps(dict(zip(names, values, strict=True))).encode()
        yield KafkaRecord(str(name).encode(), None if values[0] is None else value, time_ms)


def make(orders: int) -> Shop:
    """Return the shop with that many orders, and two and a half times as many clicks."""
    return _Maker(orders).make()


class _Maker:
    """Draws everything from one generator of random numbers, in a fixed order."""

    def __init__(self, orders: int) -> None:
        self._random = random.Random(_SEED)  # noqa: S311 - the same numbers in every run
        self._count = orders
        self._customer_ids = _ids("c", max(orders // 10, 100))
        self._product_ids = _ids("p", max(orders // 100, 20))

    def make(self) -> Shop:
        """Draw all frames."""
        customers, products = self._customers(), self._products()
        orders = self._orders()
        payments = self._payments(orders)
        closing = self._closing_orders()
        return Shop(
            customers=customers.sort_values("time_ms", ignore_index=True),
            products=products.sort_values("time_ms", ignore_index=True),
            orders=pd.concat([self._arrived(orders), closing], ignore_index=True),
            payments=self._arrived(payments),
            clicks=self._arrived(self._clicks()),
        )

    # --- tables

    def _customers(self) -> pd.DataFrame:
        rows: list[tuple[object, ...]] = []
        for customer_id in self._customer_ids:
            rows.append((customer_id, self._one_of(COUNTRIES), self._before()))
            if self._happens(_MOVED_SHARE):
                rows.append((customer_id, self._one_of(COUNTRIES), self._change()))
            if self._happens(_LEFT_SHARE):
                rows.append((customer_id, None, self._change()))
        return pd.DataFrame(rows, columns=["customer_id", "country", "time_ms"])

    def _products(self) -> pd.DataFrame:
        rows: list[tuple[object, ...]] = []
        for product_id in self._product_ids:
            rows.append((product_id, self._one_of(CATEGORIES), self._price(), self._before()))
            if self._happens(_REPRICED_SHARE):
                rows.append((product_id, self._one_of(CATEGORIES), self._price(), self._change()))
            if self._happens(_WITHDRAWN_SHARE):
                rows.append((product_id, None, None, self._change()))
        frame = pd.DataFrame(rows, columns=["product_id", "category", "cents", "time_ms"])
        return frame.astype({"cents": "Int64"})

    # --- events

    def _orders(self) -> pd.DataFrame:
        rows = [self._order(order_id, self._event()) for order_id in _ids("o", self._count)]
        return _order_frame(rows)

    def _closing_orders(self) -> pd.DataFrame:
        """Draw orders two hours after all others: they close what waits for a later record."""
        customer_ids = self._customer_ids[:_CLOSING_ORDERS]
        return _order_frame(
            [
                (f"z{number:05}", customer_id, self._product_ids[0], 1, self._price(), time_ms)
                for number, customer_id in enumerate(customer_ids)
                for time_ms in [LAST_MS + _CLOSING_AFTER_MS + number * SECOND_MS]
            ]
        )

    def _order(self, order_id: str, time_ms: int) -> tuple[object, ...]:
        customer_id: str | None = self._one_of(self._customer_ids)
        product_id = self._product_ids[int(self._popular() * len(self._product_ids))]
        if self._happens(_GUEST_SHARE):
            customer_id = None
        elif self._happens(_UNKNOWN_SHARE):
            customer_id = "c-unknown"
        if self._happens(_UNKNOWN_SHARE):
            product_id = "p-unknown"
        quantity = self._random.randint(1, 5)
        return order_id, customer_id, product_id, quantity, quantity * self._price(), time_ms

    def _payments(self, orders: pd.DataFrame) -> pd.DataFrame:
        rows: list[tuple[object, ...]] = []
        for order_id, time_ms in zip(orders["order_id"], orders["time_ms"].tolist(), strict=True):
            for delay_ms in self._payment_delays():
                method = self._one_of(_METHODS)
                rows.append((order_id, len(rows), method, time_ms + delay_ms))
        return pd.DataFrame(rows, columns=["order_id", "payment_id", "method", "time_ms"])

    def _payment_delays(self) -> list[int]:
        """Draw how long after the order it is paid: soon, too late for the join, never, twice."""
        drawn = self._random.random()
        if drawn < _PAID_SOON_SHARE:
            delays = [self._even(30 * SECOND_MS, 9 * MINUTE_MS)]
        elif drawn < _PAID_SOON_SHARE + _PAID_LATE_SHARE:
            delays = [self._even(11 * MINUTE_MS, 30 * MINUTE_MS)]
        else:
            return []
        if self._happens(_PAID_TWICE_SHARE):
            delays.append(self._even(30 * SECOND_MS, 20 * MINUTE_MS))
        return delays

    def _clicks(self) -> pd.DataFrame:
        count = int(self._count * _CLICKS_PER_ORDER)
        users = _ids("u", max(count // _CLICKS_PER_USER, 10))
        rows: list[tuple[object, ...]] = []
        while len(rows) < count:
            user, time_ms = self._one_of(users), self._event()
            for _ in range(1 + int(self._random.expovariate(1 / 6))):
                rows.append((user, self._one_of(_PAGES), self._random.randint(1, 90), time_ms))
                time_ms += 2 * int(self._random.expovariate(1 / (3 * MINUTE_MS)))
        columns = ["user_id", "page", "stay_s", "time_ms"]
        return pd.DataFrame(rows[:count], columns=columns)

    def _arrived(self, events: pd.DataFrame) -> pd.DataFrame:
        """Return the events in the order in which they arrive, some of them late."""
        delays = [
            self._even(0, _MOST_LATE_MS) if self._happens(_LATE_SHARE) else 0
            for _ in range(len(events))
        ]
        arrival = (events["time_ms"] + pd.Series(delays, index=events.index)).sort_values(
            kind="stable"
        )
        return events.loc[arrival.index].reset_index(drop=True)

    # --- numbers

    def _happens(self, share: float) -> bool:
        return self._random.random() < share

    def _one_of(self, values: Sequence[str]) -> str:
        return self._random.choice(values)

    def _popular(self) -> float:
        """Draw from 0 to less than 1, small numbers far more often."""
        return self._random.random() ** 3

    def _price(self) -> int:
        return self._random.randint(99, 19_999)

    def _even(self, first_ms: int, end_ms: int) -> int:
        return self._random.randrange(first_ms, end_ms, 2)

    def _event(self) -> int:
        return self._even(FIRST_MS, LAST_MS)

    def _change(self) -> int:
        return self._event() + 1

    def _before(self) -> int:
        return self._even(FIRST_MS - DAY_MS, FIRST_MS) + 1


def _ids(letter: str, count: int) -> list[str]:
    return [f"{letter}{number:05}" for number in range(count)]


def _order_frame(rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    columns = ["order_id", "customer_id", "product_id", "quantity", "cents", "time_ms"]
    return pd.DataFrame(rows, columns=columns)
