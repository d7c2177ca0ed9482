"""The demo as a user of the service: statements over HTTP, shown as they are sent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from server.cli.client import Client, JsonObject, Row, RowsHeader, ServerFailure, WrittenNumber
from server.demo.errors import QueryInTrouble, Unexpected
from server.demo.expected import Check, Rows, compare
from server.demo.script import SETTINGS
from server.demo.show import Show

_POLL_S = 0.2
_PATIENCE_S = 180.0
_CATCH_UP_S = 15.0


@dataclass(frozen=True, slots=True)
class Reading:
    """How far a query has read its topics."""

    state: str
    read: int
    there: int
    errors: tuple[str, ...]


class UserSession:
    """One user."""

    def __init__(self, client: Client, show: Show) -> None:
        self._client = client
        self._show = show

    def run(self, sql: str, purpose: str = "") -> JsonObject:
        """Send a statement and show it with its answer; before it what it is for, if given.

        Raises: ServerFailure, Unreachable.
        """
        self._show.statement(f"-- {purpose}\n{sql}" if purpose else sql)
        answer = self._ask(sql)
        status = answer["commandStatus"]
        self._show.good(status["message"])
        return answer

    def replace(self, sql: str, query_id: str) -> JsonObject:
        """Send a replacement, show the service's report, and return it.

        Raises: ServerFailure, Unreachable; Unexpected when the query did not keep its id.
        """
        self._show.statement(sql)
        answer = self._ask(sql)
        report: JsonObject | None = answer.get("upgrade")
        if report is None:
            raise Unexpected("the service did not report on the replacement")
        self._show.report(report)
        now = answer["commandStatus"]["queryId"]
        if now != query_id:
            raise Unexpected(f"the query {query_id} became {now}")
        self._show.good(f"the query is still {now}")
        return report

    def refused(self, sql: str) -> ServerFailure:
        """Send a replacement that must be refused, and show why it was.

        Raises: Unexpected when it was not.
        """
        self._show.statement(sql)
        try:
            self._ask(sql)
        except ServerFailure as refusal:
            self._show.bad(refusal.message)
            return refusal
        raise Unexpected("the service accepted a replacement that changes the source")

    def pull(self, sql: str, *, ordered: bool = False) -> list[tuple[object, ...]]:
        """Ask for rows, and show them: as they come if the query orders them, else sorted.

        Raises: ServerFailure, Unreachable.
        """
        self._show.statement(sql)
        headers, rows = self.rows(sql)
        self._show.table(headers, rows if ordered else sorted(rows, key=str))
        return rows

    def compared(self, what: str, sql: str, expected: Rows, *, ordered: bool = False) -> Check:
        """Ask until the store has read what the query wrote last; show and compare the answer.

        Raises: ServerFailure, Unreachable.
        """
        deadline = time.monotonic() + _CATCH_UP_S
        while time.monotonic() < deadline:
            if Counter(self.rows(sql)[1]) == expected:
                break
            time.sleep(_POLL_S)
        return compare(what, expected, Counter(self.pull(sql, ordered=ordered)))

    def rows(self, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
        """Ask for rows, without showing anything: columns and values."""
        headers: list[str] = []
        rows: list[tuple[object, ...]] = []
        with self._client.query(sql, SETTINGS, {}) as batches:
            for event in (event for batch in batches for event in batch):
                match event:
                    case RowsHeader(columns=columns):
                        headers = [name for name, _ in columns]
                    case Row(values=values):
                        rows.append(tuple(map(_value, values)))
                    case _:
                        pass
        return headers, rows

    def reading(self, query_id: str) -> Reading:
        """Return how far the query is."""
        described = self._ask(f"EXPLAIN {query_id};")["queryDescription"]
        offsets = [row for task in described["tasksMetadata"] for row in task["topicOffsets"]]
        return Reading(
            described["state"],
            sum(row["committedOffset"] for row in offsets),
            sum(row["endOffset"] for row in offsets),
            tuple(error["errorMessage"] for error in described["queryErrors"]),
        )

    def statement_of(self, query_id: str) -> str:
        """Return the statement that a running query was made by."""
        queries = self._ask("SHOW QUERIES;")["queries"]
        return next((q["queryString"] for q in queries if q["id"] == query_id), "")

    def await_begun(self, query_id: str) -> None:
        """Wait until the query has finished a batch.

        Raises: QueryInTrouble when nothing happens for long.
        """
        self._await(query_id, lambda now: now.read > 0)

    def await_done(self, query_ids: Sequence[str]) -> Mapping[str, int]:
        """Wait until the queries have read all there is; how many records each has read.

        Raises: QueryInTrouble when nothing happens for long.
        """
        read_counts = {}
        for query_id in query_ids:
            now = self._await(query_id, lambda now: now.read == now.there > 0)
            read_counts[query_id] = now.read
        return read_counts

    def _await(self, query_id: str, reached: Callable[[Reading], bool]) -> Reading:
        """Wait for a reading; a failed query is tried again, so only a long rest is trouble."""
        last, reported, since = -1, 0, time.monotonic()
        while not reached(now := self.reading(query_id)):
            if len(now.errors) > reported:
                reported = len(now.errors)
                self._show.bad(f"{query_id} failed and will be tried again: {now.errors[-1]}")
            if now.read != last:
                last, since = now.read, time.monotonic()
            elif time.monotonic() - since > _PATIENCE_S:
                what = f"stands still at {now.read:,} of {now.there:,} records"
                raise QueryInTrouble(query_id, what, now.errors)
            time.sleep(_POLL_S)
        return now

    def _ask(self, sql: str) -> JsonObject:
        return self._client.execute(sql, SETTINGS)[0]


def _value(value: object) -> object:
    """Return a float for a number that is not whole, which comes as the server wrote it."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    return float(value) if isinstance(value, WrittenNumber) else value
