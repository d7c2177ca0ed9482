"""The demo's course: declare, feed, replace while records come in, ask, check."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from ksql.kafka.producers import Sender
from server.cli.client import JsonObject
from server.demo import script, topics
from server.demo.data import Data, KafkaRecord
from server.demo.errors import Unexpected
from server.demo.expected import HOUR_MS, Check, Expected, Offsets, compare
from server.demo.feed import Feed
from server.demo.frame import Ticker
from server.demo.session import UserSession
from server.demo.show import Show
from server.demo.site import Site

_FEED_S = 25.0
_LEAST_PER_S = 200.0
_ASKED_CARRIERS = ("UA", "DL", "EV")
_ZONE = "America/New_York"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The work of one query, and whether its answer is right."""

    query_id: str
    sink: str
    rows_in: int
    rows_out: int
    check: Check


class Story:
    """One run on a running service."""

    def __init__(self, site: Site, show: Show, data: Data) -> None:
        self._site = site
        self._show = show
        self._data = data
        self._total = len(data.flights)
        self._session = UserSession(site.client, show)
        self._ids: dict[str, str] = {}
        self._switches: dict[str, Offsets] = {}

    def tell(self) -> list[Check]:
        """Run all of it; return what was compared, for the exit status."""
        self._declare()
        with (
            contextlib.closing(Sender(self._site.kafka)) as sender,
            contextlib.closing(self._feed_of(sender)) as feed,
        ):
            self._load_airlines(sender)
            self._first_records(feed)
            self._start_queries()
            self._feed(feed)
        read = self._settle()
        expected = self._expected()
        pulls = self._ask(expected)
        results = self._results(read, expected)
        self._summary(results, pulls)
        return [*(result.check for result in results), *pulls]

    # --- step by step

    def _declare(self) -> None:
        self._show.section("Two topics, declared as a stream and a table")
        for sql in script.SOURCES:
            self._session.run(sql)

    def _load_airlines(self, sender: Sender) -> None:
        for record in self._data.airline_records():
            _send(sender, "airlines", record)
        sender.flush()
        self._show.note(f"{len(self._data.airlines)} airlines sent to Kafka")

    def _feed_of(self, sender: Sender) -> Feed:
        per_second = max(self._total / _FEED_S, _LEAST_PER_S)
        return Feed(sender, "flights", self._data.flight_records(), per_second)

    def _first_records(self, feed: Feed) -> None:
        first = self._share(10)
        feed.start(first)
        feed.await_sent(first)
        self._show.note(f"{first:,} departures sent, the others will follow")

    def _start_queries(self) -> None:
        """Start a query after the other's first batch: all at once is much for a small machine."""
        self._show.section("Four queries, each a running Spark stream")
        for sink, sql in script.QUERIES.items():
            answer = self._session.run(sql)
            self._ids[sink] = query_id = answer["commandStatus"]["queryId"]
            with self._show.doing("reading the first departures"):
                self._session.await_begun(query_id)

    def _feed(self, feed: Feed) -> None:
        self._show.section("Records come in, and queries are replaced meanwhile")
        with (
            self._show.bar(self._total) as bar,
            Ticker(0.5, lambda: bar.update(feed.sent, self._rows_out())),
        ):
            self._scenes(feed)

    def _scenes(self, feed: Feed) -> None:
        share = self._share
        feed.allow(share(50))
        feed.await_sent(share(25))
        self._replace("DELAYED", script.DELAYED_MORE)
        feed.allow(share(75))
        feed.await_sent(share(40))
        self._refuse("DELAYED", script.DELAYED_ELSEWHERE, script.DELAYED_MORE)
        feed.await_sent(share(55))
        self._replace("HOURLY", script.HOURLY_WORST)
        feed.allow(self._total)
        feed.await_sent(share(80))
        self._session.pull(_pull_carriers())
        feed.await_sent(self._total)

    def _share(self, percent: int) -> int:
        return self._total * percent // 100

    def _replace(self, sink: str, sql: str) -> None:
        query_id = self._ids[sink]
        report = self._session.replace(sql, query_id)
        self._switches[sink] = _switch(report)

    def _refuse(self, sink: str, sql: str, running: str) -> None:
        query_id = self._ids[sink]
        self._session.refused(sql)
        state = self._session.reading(query_id).state
        if state != "RUNNING" or self._session.statement_of(query_id) != running:
            raise Unexpected(f"the query {query_id} did not survive the refused replacement")
        self._show.good(f"{query_id} runs as before")

    def _settle(self) -> dict[str, int]:
        with self._show.doing("waiting until the queries have read everything"):
            read = self._session.await_done(list(self._ids.values()))
        self._show.note("all records are in, and every query has read them all")
        return dict(read)

    def _expected(self) -> Expected:
        with self._show.doing("computing the same answers with pandas"):
            records = topics.read(self._site.kafka, "flights")
            return Expected.of(self._data, topics.places(records))

    def _ask(self, expected: Expected) -> list[Check]:
        self._show.section("Answers by key")
        carriers = Counter(
            row for row in expected.carriers().elements() if row[0] in _ASKED_CARRIERS
        )
        noon = self._noon()
        hours = Counter(
            (row[0], _local_hour(int(str(row[1]))), *row[2:])
            for row in expected.hourly(self._switches["HOURLY"]).elements()
            if row[0] == _ASKED_CARRIERS[0] and noon <= int(str(row[1])) < noon + 4 * HOUR_MS
        )
        return [
            self._session.compared("pull CARRIERS", _pull_carriers(), carriers),
            self._session.compared("pull HOURLY", _pull_hours(noon), hours),
        ]

    def _noon(self) -> int:
        """Return noon in New York on the last day that has four hours more."""
        last = int(self._data.flights["departed_ms"].iloc[-1])
        noon = last // (24 * HOUR_MS) * 24 * HOUR_MS + 17 * HOUR_MS
        return noon if noon + 4 * HOUR_MS <= last else noon - 24 * HOUR_MS

    def _results(self, read: dict[str, int], expected: Expected) -> list[Result]:
        with self._show.doing("comparing"):
            checks = self._checks(expected)
            ends = self._rows_out_by_sink()
        return [
            Result(
                query_id=query_id,
                sink=sink,
                rows_in=read[query_id],
                rows_out=ends[sink],
                check=checks[sink],
            )
            for sink, query_id in self._ids.items()
        ]

    def _checks(self, expected: Expected) -> dict[str, Check]:
        records = {sink: topics.read(self._site.kafka, sink) for sink in self._ids}
        hourly = topics.table_rows(
            records["HOURLY"], ("DEPARTURES", "DELAY", "AVERAGE", "WORST"), windowed=True
        )
        carriers = topics.table_rows(records["CARRIERS"], ("DEPARTURES", "MILES", "WORST"))
        delayed = topics.stream_rows(
            records["DELAYED"], ("ID", "CARRIER", "FLIGHT", "DEST", "DEP_DELAY")
        )
        named = topics.stream_rows(
            records["DEPARTURES"], ("AIRLINE", "TAILNUM", "ID", "FLIGHT", "ROUTE", "DEP_DELAY")
        )
        switches = self._switches
        return {
            "DELAYED": compare("DELAYED", expected.delayed(switches["DELAYED"]), delayed),
            "DEPARTURES": compare("DEPARTURES", expected.departures(), named),
            "HOURLY": compare("HOURLY", expected.hourly(switches["HOURLY"]), hourly),
            "CARRIERS": compare("CARRIERS", expected.carriers(), carriers),
        }

    def _summary(self, results: list[Result], pulls: list[Check]) -> None:
        self._show.section("Every answer, computed again with pandas")
        rows: list[tuple[object, ...]] = [
            (r.sink, r.query_id, r.rows_in, r.rows_out, r.check.rows, self._show.verdict(r.check))
            for r in results
        ]
        rows += [(p.what, "", "", "", p.rows, self._show.verdict(p)) for p in pulls]
        headers = ("result", "query", "rows in", "rows out", "compared", "pandas says")
        self._show.table(headers, rows, right=(2, 3, 4))
        for check in (*(result.check for result in results), *pulls):
            self._show.difference(check)

    # --- numbers

    def _rows_out_by_sink(self) -> dict[str, int]:
        ends = self._site.admin.end_offsets(self._ids)
        counts = dict.fromkeys(self._ids, 0)
        for (topic, _partition), end in ends.items():
            counts[topic] += end
        return counts

    def _rows_out(self) -> int:
        return sum(self._rows_out_by_sink().values())


def _send(sender: Sender, topic: str, record: KafkaRecord) -> None:
    sender.send(topic, record.key, record.value, timestamp=record.timestamp_ms)


def _switch(report: JsonObject) -> Offsets:
    """Return the first offset of the new plan in each partition of ``flights``."""
    offsets = report["switch"]["offsets"].get("flights", {})
    return {int(partition): offset for partition, offset in offsets.items()}


def _local_hour(start_ms: int) -> str:
    start = pd.Timestamp(start_ms, unit="ms", tz="UTC").tz_convert(_ZONE)
    return f"{start.day} {start:%b %H:%M}"


def _pull_carriers() -> str:
    names = ", ".join(f"'{name}'" for name in _ASKED_CARRIERS)
    return f"SELECT * FROM carriers WHERE carrier IN ({names});"  # noqa: S608 - our own names


def _pull_hours(start_ms: int) -> str:
    first, end = (
        pd.Timestamp(ms, unit="ms").strftime("%Y-%m-%dT%H:%M")
        for ms in (start_ms, start_ms + 4 * HOUR_MS)
    )
    return (
        "SELECT carrier,\n"  # noqa: S608 - likewise
        f"       FORMAT_TIMESTAMP(FROM_UNIXTIME(WINDOWSTART), 'd MMM HH:mm', '{_ZONE}') AS hour,\n"
        "       departures, delay, average, worst\n"
        "  FROM hourly\n"
        f"  WHERE carrier = '{_ASKED_CARRIERS[0]}'"
        f" AND WINDOWSTART >= '{first}' AND WINDOWSTART < '{end}';"
    )
