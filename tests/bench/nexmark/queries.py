"""The queries of Nexmark that the language says, and how their results are read and compared.

The statements are ``q*.sql`` next to this module, those of Flink SQL ``flink/q*.sql``. Left out:

- q6, q9, q19: there is no OVER, so neither the last ten rows of a group nor ROW_NUMBER.
- q10: results go to topics, not to files.
- q12: windows go by the time of records, never by the time of processing.
- q13: the side input is a file.
- q15, q16: COUNT_DISTINCT is about 1% off beyond 1,024 values.
- q23: a later addition to the standard.

Bids of one millisecond have no order, so the rows of q18 are compared by their times alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from json import loads
from pathlib import Path
from typing import Any

from tests.bench.nexmark import models
from tests.bench.nexmark.generator import Events
from tests.bench.nexmark.models import Row, Rows
from tests.bench.nexmark.topics import AUCTION, BID, PERSON

FOLDER = Path(__file__).parent

Fields = Mapping[str, Any]
Record = tuple[bytes | None, bytes | None]
"""Key and value."""


class WrongOutput(AssertionError):
    """A result has a row that it should not have, or lacks one."""


@dataclass(frozen=True)
class Query:
    """One query; ``key`` reads the columns that our results have in their keys."""

    name: str
    about: str
    model: Callable[..., Rows]
    topics: tuple[str, ...]
    columns: tuple[str, ...]
    key: Callable[[bytes], Fields] | None = None
    table: bool = False
    upserts: bool = False
    """Whether Flink's result is one row per key."""
    closes: bool = False
    """Whether the model needs to know that the input has ended."""

    @cached_property
    def statements(self) -> str:
        """Our statements."""
        return (FOLDER / f"{self.name}.sql").read_text(encoding="utf-8")

    @cached_property
    def flink(self) -> str:
        """Those of Flink SQL."""
        return (FOLDER / "flink" / f"{self.name}.sql").read_text(encoding="utf-8")

    def expected(self, events: Events, *, ended: bool) -> Rows:
        """Return the rows of the final result."""
        return self.model(events, ended=ended) if self.closes else self.model(events)

    def check(self, records: Iterable[Record], events: Events) -> int:
        """Compare our records with the model; return how many there were.

        Raises: WrongOutput.
        """
        return self._check(records, self.expected(events, ended=False), self.table, self.key)

    def check_flink(self, records: Iterable[Record], events: Events) -> int:
        """Compare those of Flink, which have every column in their values.

        Raises: WrongOutput.
        """
        return self._check(records, self.expected(events, ended=True), self.upserts, None)

    def _check(
        self,
        records: Iterable[Record],
        expected: Rows,
        table: bool,
        key: Callable[[bytes], Fields] | None,
    ) -> int:
        count = 0
        last: dict[bytes | None, bytes | None] = {}
        left = Counter(expected)
        for each, value in records:
            count += 1
            if table:
                last[each] = value
            else:
                self._take(left, self._row(each, value, key))
        for each, value in last.items():
            if value is not None:
                self._take(left, self._row(each, value, key))
        if missing := left.total():
            first = next(row for row, times in left.items() if times)
            raise WrongOutput(f"{self.name}: {missing} rows are missing, one is {first}")
        return count

    def _take(self, left: Rows, row: Row) -> None:
        if not left[row]:
            raise WrongOutput(f"{self.name}: {row} is no row of the result, or comes too often")
        left[row] -= 1

    def _row(
        self, key: bytes | None, value: bytes | None, read: Callable[[bytes], Fields] | None
    ) -> Row:
        if value is None:
            raise WrongOutput(f"{self.name}: a stream's record {key!r} has no value")
        fields = loads(value, parse_float=Decimal)
        if read is not None and key is not None:
            fields |= read(key)
        return tuple(fields[column] for column in self.columns)


def long_key(name: str) -> Callable[[bytes], Fields]:
    """Return the reader of keys that are a BIGINT, with a window after it or not."""
    return lambda key: {name: int.from_bytes(key[:8], "big", signed=True)}


def json_key(key: bytes) -> Fields:
    """Return the columns of a key in JSON."""
    fields: dict[str, Any] = loads(key)
    return fields


_BID = ("AUCTION", "BIDDER", "PRICE", "DATE_TIME", "EXTRA")
QUERIES = (
    Query("q0", "pass through", models.q0, (BID,), _BID),
    Query("q1", "currency conversion", models.q1, (BID,), _BID),
    Query("q2", "selection", models.q2, (BID,), ("AUCTION", "PRICE")),
    Query(
        "q3",
        "local item suggestion: join of tables",
        models.q3,
        (AUCTION, PERSON),
        ("ID", "NAME", "CITY", "STATE"),
        key=long_key("ID"),
        table=True,
    ),
    Query(
        "q4",
        "average price of categories: join, two aggregates",
        models.q4,
        (BID, AUCTION),
        ("CATEGORY", "AVERAGE"),
        key=long_key("CATEGORY"),
        table=True,
        upserts=True,
    ),
    Query(
        "q5",
        "hot items: windows that hop, two aggregates, join",
        models.q5,
        (BID,),
        ("ITEM", "UNTIL", "NUM"),
        key=json_key,
        table=True,
        closes=True,
    ),
    Query(
        "q7",
        "highest bid: window, join",
        models.q7,
        (BID,),
        ("AUCTION", "PRICE", "BIDDER", "DATE_TIME", "EXTRA"),
        key=long_key("PRICE"),
        closes=True,
    ),
    Query(
        "q8",
        "new users: join, aggregate",
        models.q8,
        (PERSON, AUCTION),
        ("ID", "NAME", "START_TIME"),
        key=json_key,
        table=True,
    ),
    Query(
        "q11",
        "user sessions",
        models.q11,
        (BID,),
        ("BIDDER", "BID_COUNT", "START_TIME", "END_TIME"),
        key=long_key("BIDDER"),
        table=True,
    ),
    Query(
        "q14",
        "calculation",
        models.q14,
        (BID,),
        ("AUCTION", "BIDDER", "PRICE", "BID_TIME_TYPE", "DATE_TIME", "EXTRA", "C_COUNTS"),
    ),
    Query(
        "q17",
        "auction statistics by day",
        models.q17,
        (BID,),
        (
            *("AUCTION", "BID_DAY", "TOTAL_BIDS", "RANK1_BIDS", "RANK2_BIDS", "RANK3_BIDS"),
            *("MIN_PRICE", "MAX_PRICE", "AVG_PRICE", "SUM_PRICE"),
        ),
        key=json_key,
        table=True,
        upserts=True,
    ),
    Query(
        "q18",
        "last bid of each person and auction",
        models.q18,
        (BID,),
        ("BIDDER", "AUCTION", "DATE_TIME"),
        key=json_key,
        table=True,
        upserts=True,
    ),
    Query(
        "q20",
        "bids with their auctions: join",
        models.q20,
        (BID, AUCTION),
        (
            *("AUCTION", "BIDDER", "PRICE", "CHANNEL", "URL", "BID_TIME", "BID_EXTRA"),
            *("ITEM_NAME", "DESCRIPTION", "INITIAL_BID", "RESERVE", "AUCTION_TIME", "EXPIRES"),
            *("SELLER", "CATEGORY", "AUCTION_EXTRA"),
        ),
        key=long_key("AUCTION"),
    ),
    Query(
        "q21",
        "channel id: pattern",
        models.q21,
        (BID,),
        ("AUCTION", "BIDDER", "PRICE", "CHANNEL", "CHANNEL_ID"),
    ),
    Query(
        "q22",
        "folders of addresses",
        models.q22,
        (BID,),
        ("AUCTION", "BIDDER", "PRICE", "CHANNEL", "DIR1", "DIR2", "DIR3"),
    ),
)
BY_NAME = {query.name: query for query in QUERIES}
