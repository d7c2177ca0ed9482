"""The texts of the terminal about a rebuild before it begins."""

from __future__ import annotations

from typing import Any

import pytest

from server.cli.rebuild_cost import bytes_text, duration_text, rebuild_text, sample_part
from tests.unit.cli.test_render import drawn

SOURCE = {"source": "RIDES", "topic": "rides", "records": 7000, "lost": 0}
TIMES: dict[str, Any] = {"rate": 50_000.0, "rateFrom": "assumed", "seconds": 600}


def lines(source: dict[str, Any], estimate: dict[str, Any] | None = None) -> list[str]:
    return rebuild_text([{**SOURCE, **source}], estimate).plain.splitlines()


def test_a_source_of_which_nothing_is_known() -> None:
    assert lines({"bytes": None}) == ["reads 7,000 records of RIDES (topic rides)"]


def test_what_retention_and_compaction_have_taken() -> None:
    gone = {"lost": 3, "begins": 1_793_613_600_000, "compacted": True, "bytes": 2048, "sampled": 9}
    assert lines(gone) == [
        "reads at most 7,000 records of RIDES (topic rides), about 2.0 KiB by 9 sampled records",
        "  topic rides begins at 2026-11-02T10:00:00Z; has lost 3 records at its beginning; "
        "is compacted: earlier records of a key may be gone",
    ]


def test_the_time_and_the_room() -> None:
    known = {"resultsSince": 0, "stateBytes": 5 << 20, "freeBytes": 3 << 40}
    assert lines({}, {**TIMES, **known})[1:] == [
        "the running query has results since 1970-01-01T00:00:00Z",
        "takes about 10 minutes at 50,000 records/s (assumed: the running query has read no large "
        "batch here)",
        "needs about 5.0 MiB for a second state; 3.0 TiB are free",
    ]


def test_room_that_is_not_known() -> None:
    known = {"stateBytes": 5, "freeBytes": None, "rateFrom": "measured"}
    assert lines({}, {**TIMES, **known})[-1] == "needs about 5 bytes for a second state"
    assert len(lines({}, TIMES)) == 2


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1023, "1,023 bytes"), (1 << 30, "1.0 GiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(("seconds", "text"), [(119, "119 s"), (120, "2 minutes")])
def test_durations(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


SAMPLE: dict[str, Any] = {
    "records": 100,
    "complete": True,
    "oldRows": 7,
    "newRows": 9,
    "different": 3,
    "rows": [
        {"key": {"K": "a"}, "old": {"N": "1"}, "new": {"N": None, "X": "2"}},
        {"key": {"K": "b"}, "old": None, "new": {"N": "1"}},
    ],
    "trouble": "",
}


def shown(**facts: Any) -> list[str]:
    text = drawn(sample_part({**SAMPLE, **facts}), 100)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_rows_that_differ() -> None:
    first, head, *rows, more = shown()
    assert first == ("over the last 100 records: 7 results before, 9 after; 3 differ")
    assert head.split() == ["Key", "Old", "row", "New", "row"]
    assert [row.split(maxsplit=2) for row in rows] == [
        ["K=a", "N=1", "N=null, X=2"],
        ["K=b", "-", "N=1"],
    ]
    assert more == "and 1 more"


def test_a_sample_that_was_cut_short() -> None:
    assert shown(rows=[], different=0, complete=False, trouble="it took too long") == [
        "over 100 records, no more in the time or room: 7 results before, 9 after; 0 differ",
        "ended by: it took too long",
    ]
