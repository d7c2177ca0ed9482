"""The difference of two topics' rows: what is written brings one to the other, and no more."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from ksql.kafka.partition_rows import PartitionFiles, rows_of
from ksql.kafka.record_versions import HEADER
from ksql.kafka.topic_difference import Counts, difference

NOW_MS = 1_700_000_999_000
HIDDEN = "_confluent-ksql-default_query_CTAS_X_1-v3-changelog"
LATEST = st.dictionaries(
    st.sampled_from([b"a", b"b", b"c", b"d", b"e"]), st.sampled_from([None, b"", b"1", b"2"])
)


def rows(latest, topic=HIDDEN, foreign=()):
    return rows_of(messages(latest, topic, foreign), topic)


def messages(latest, topic=HIDDEN, foreign=()):
    """The records of a topic in the order of their keys' first records; later ones come first."""
    return {
        key: Message(
            topic=topic,
            partition=0,
            offset=100 - at,
            key=key,
            value=value,
            timestamp=(1, 1_000 + at),
            headers=None if key in foreign else [(HEADER, b"\x01")],
        )
        for at, (key, value) in enumerate(latest.items())
    }


def present(latest):
    return {key: value for key, value in latest.items() if value is not None}


@given(LATEST, LATEST)
def test_it_brings_the_rows_to_those_of_the_other_topic(there, here):
    records, counts, foreign = difference(rows(there), here, NOW_MS, "X")
    assert foreign == 0
    written = {key: value for key, value, _, _ in records}
    assert len(written) == len(records)
    assert present(here | written) == present(there)
    old, new = present(here), present(there)
    assert written.keys() == {k for k in old | new if old.get(k) != new.get(k)}
    assert counts == Counts(
        changed=len([k for k in old.keys() & new.keys() if old[k] != new[k]]),
        added=len(new.keys() - old.keys()),
        removed=len(old.keys() - new.keys()),
        equal=len([k for k in old.keys() & new.keys() if old[k] == new[k]]),
    )


@given(LATEST, LATEST, st.sets(st.sampled_from([b"a", b"b", b"c"])))
def test_keys_whose_rows_somebody_else_has_written_stay_as_they_are(there, here, others):
    records, _, foreign = difference(rows(there, foreign=others), here, NOW_MS, "X")
    left = {key for key in there.keys() & others if here.get(key) != there[key]}
    expected = {k: v for k, v in present(there).items() if k not in left}
    expected |= {k: v for k, v in present(here).items() if k in left}
    assert present(here | {key: value for key, value, _, _ in records}) == expected
    assert foreign == len(left)


def test_a_topic_of_users_has_no_version_in_its_records():
    there = rows({b"a": b"1"}, topic="X", foreign=[b"a"])
    assert difference(there, {}, NOW_MS, HIDDEN).counts == Counts(added=1)


def test_rows_come_in_the_order_of_their_topic_and_then_deletions():
    there = rows({b"a": b"1", b"b": b"2", b"c": None, b"d": b"4"})
    here: dict[bytes, bytes | None] = {b"c": b"3", b"d": b"4", b"e": b"5", b"f": None}
    assert difference(there, here, NOW_MS, "X").records == [
        (b"b", b"2", 1_001, None),
        (b"a", b"1", 1_000, None),
        (b"c", None, NOW_MS, None),
        (b"e", None, NOW_MS, None),
    ]


@given(LATEST, LATEST)
def test_files_hold_rows_as_they_were(there, here):
    with TemporaryDirectory() as directory:
        files = PartitionFiles(Path(directory))
        read = rows(there, foreign=[b"a"])
        files.write(3, read, (here, 17))
        assert files.rows(3) == read
        assert files.values(3) == (here, 17)


def test_headers_of_a_changelog_lose_their_version_alone():
    version = (HEADER, b"\x01")
    sent = {
        b"none": None,
        b"version": [version],
        b"own": [("h", None), version],
        b"foreign": [("h", b"x")],
    }
    there = {
        key: Message(
            topic=HIDDEN, partition=0, offset=1, key=key, timestamp=(1, 2), headers=headers
        )
        for key, headers in sent.items()
    }
    assert {key: row[3:] for key, row in rows_of(there, HIDDEN).items()} == {
        b"none": (None, True),
        b"version": (None, False),
        b"own": ([("h", None)], False),
        b"foreign": ([("h", b"x")], True),
    }
