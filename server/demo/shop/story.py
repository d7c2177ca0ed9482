"""The shop's course: records, sources, queries, one look at each result, the comparison."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from ksql.core import RawRecord
from ksql.formats import Schema
from ksql.kafka import registry_of
from ksql.kafka.producers import Sender
from ksql.sql.catalog import Topic
from server.demo import topics
from server.demo.expected import Check, Rows, compare
from server.demo.session import UserSession
from server.demo.shop import data, script
from server.demo.shop.data import MINUTE_MS, Shop
from server.demo.shop.expected import ExpectedShop
from server.demo.shop.lookups import Lookup, lookups
from server.demo.show import Show
from server.demo.site import Site

PARTITIONS = 4

READERS: dict[str, Callable[[Sequence[RawRecord]], Rows]] = {
    "ENRICHED": lambda records: topics.stream_rows(
        records, ("ORDER_ID", "PRODUCT_ID", "AMOUNT", "COUNTRY")
    ),
    "ORDER_PAYMENTS": lambda records: topics.stream_rows(
        records, ("AMOUNT", "PAYMENT_ID", "METHOD")
    ),
    "VISITS": lambda records: topics.table_rows(records, ("CLICKS", "STAY_S"), session=True),
    "REVENUE": lambda records: topics.table_rows(records, ("ORDERS", "REVENUE"), windowed=True),
    "PRODUCT_DAYS": lambda records: topics.table_rows(
        records, ("ORDERS", "PIECES", "REVENUE", "LARGEST"), windowed=True
    ),
    "ORDER_LINES": lambda records: topics.table_rows(
        records, ("PRODUCT_ID", "CATEGORY", "LIST_AMOUNT")
    ),
    "CATEGORIES": lambda records: topics.table_rows(records, ("ORDERS", "LIST_AMOUNT")),
}
"""How the rows of each result are read from its records, in the form that ``ExpectedShop`` has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryCheck:
    """The work of one query, and whether its rows are right."""

    query_id: str
    records_read: int
    records_written: int
    check: Check


class Story:
    """One run on a running service."""

    def __init__(self, site: Site, show: Show, shop: Shop) -> None:
        self._site = site
        self._show = show
        self._shop = shop
        self._session = UserSession(site.client, show)
        self._ids: dict[str, str] = {}

    def tell(self) -> list[Check]:
        """Run all of it; return what was compared, for the exit status."""
        self._send_records()
        self._declare()
        self._start_queries()
        read = self._settle()
        expected = self._expected()
        shown = self._compare_lookups(lookups(expected))
        results = self._results(read, expected)
        self._summary(results, shown)
        return [*(result.check for result in results), *shown]

    # --- step by step

    def _send_records(self) -> None:
        self._show.section("The records of all days, before there is any query")
        schema_id = registry_of(self._site.registry).register(
            "orders-value", Schema("AVRO", data.SCHEMA)
        )
        self._show.note(f"the schema of orders is registered with the id {schema_id}")
        with contextlib.closing(Sender(self._site.kafka)) as sender:
            for topic, records in self._shop.records(schema_id).items():
                self._site.admin.create(Topic(topic, PARTITIONS))
                for record in records:
                    sender.send(topic, record.key, record.value, timestamp=record.timestamp_ms)
                sender.flush()
        headers = ("topic", "partitions", "records", "late records", "late by at most")
        self._show.table(headers, self._sent(), right=(4,))

    def _sent(self) -> list[tuple[object, ...]]:
        """Return how many records each topic has, how many come late, and by how much."""
        shop = self._shop
        frames = {
            "customers": shop.customers,
            "products": shop.products,
            "orders": shop.orders,
            "payments": shop.payments,
            "clicks": shop.clicks,
        }
        return [
            (topic, PARTITIONS, len(frame), *_lateness(frame["time_ms"]))
            for topic, frame in frames.items()
        ]

    def _declare(self) -> None:
        self._show.section("The topics, declared as streams and tables")
        for sql in script.SOURCES:
            self._session.run(sql)

    def _start_queries(self) -> None:
        self._show.section("Queries over all that is there; some read what others write")
        for sink, sql in script.QUERIES.items():
            answer = self._session.run(sql, script.PURPOSES[sink])
            self._ids[sink] = answer["commandStatus"]["queryId"]

    def _settle(self) -> dict[str, int]:
        """Wait for the queries in their order: a reader comes after what it reads."""
        with self._show.doing("waiting until the queries have read everything"):
            read = self._session.await_done(list(self._ids.values()))
        self._show.note("every query has read all records")
        return dict(read)

    def _expected(self) -> dict[str, Rows]:
        with self._show.doing("computing the same results with pandas"):
            places = _places(topics.read(self._site.kafka, "orders"))
            return ExpectedShop.of(self._shop, places).all()

    def _compare_lookups(self, shown: Sequence[Lookup]) -> list[Check]:
        self._show.section("One look at each result")
        return [
            self._session.compared(
                f"look at {look.result}", look.sql, look.rows, ordered=look.ordered
            )
            for look in shown
        ]

    def _results(self, read: dict[str, int], expected: dict[str, Rows]) -> list[QueryCheck]:
        with self._show.doing("comparing"):
            return [
                self._result(query_id, sink, read[query_id], expected[sink])
                for sink, query_id in self._ids.items()
            ]

    def _result(self, query_id: str, sink: str, read: int, expected: Rows) -> QueryCheck:
        records = topics.read(self._site.kafka, sink)
        return QueryCheck(
            query_id=query_id,
            records_read=read,
            records_written=len(records),
            check=compare(sink, expected, READERS[sink](records)),
        )

    def _summary(self, results: Sequence[QueryCheck], shown: Sequence[Check]) -> None:
        self._show.section("Every result, computed again with pandas from the same records")
        rows: list[tuple[object, ...]] = [
            (
                result.check.what,
                result.query_id,
                result.records_read,
                result.records_written,
                self._show.outcome(result.check),
            )
            for result in results
        ]
        rows += [(check.what, "", "", "", self._show.outcome(check)) for check in shown]
        headers = ("result", "query", "records in", "records out", "pandas says")
        self._show.table(headers, rows, right=(2, 3, 4))
        for check in (*(result.check for result in results), *shown):
            self._show.difference(check)


def _lateness(times_ms: pd.Series) -> tuple[int, str]:
    """Return how many records are older than one that was sent before them, and by how much."""
    behind_ms = times_ms.cummax() - times_ms
    return int((behind_ms > 0).sum()), f"{behind_ms.max() / MINUTE_MS:.1f} min"


def _places(records: Sequence[RawRecord]) -> pd.DataFrame:
    """Return where each order lies: order_id, partition, offset."""
    return pd.DataFrame(
        [((record.key or b"").decode(), record.partition, record.offset) for record in records],
        columns=["order_id", "partition", "offset"],
    )
