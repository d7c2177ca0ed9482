"""Records of changelogs state their version, in a header behind those that they have."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ksql.kafka.record_versions import (
    HEADER,
    VERSION,
    NewerRecord,
    check_versions,
    is_changelog,
    versioned,
)

CHANGELOG = "_confluent-ksql-default_query_CST_T_1-topic-changelog"


def message(headers):
    return SimpleNamespace(headers=lambda: headers, offset=lambda: 7)


def check(topic, *stated):
    check_versions({(topic, 2): {b"%d" % n: message(version) for n, version in enumerate(stated)}})


def test_the_version_follows_the_headers_of_the_source():
    records = [(b"k", b"v", 5, None), (b"k", None, 6, [("a", b"1")])]
    assert list(versioned(records)) == [
        (b"k", b"v", 5, [(HEADER, b"\x01")]),
        (b"k", None, 6, [("a", b"1"), (HEADER, b"\x01")]),
    ]
    check(CHANGELOG, *(headers for *_, headers in versioned(records)))


def test_which_topics_are_changelogs():
    assert is_changelog(CHANGELOG)
    assert not is_changelog("T-changelog")
    assert not is_changelog("_confluent-ksql-default__command_topic")


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("other", b"\xff")],
        [(HEADER, None)],
        [(HEADER, b"\x09"), (HEADER, bytes((VERSION,)))],  # the first is the source's own
    ],
)
def test_versions_that_are_known(headers):
    check(CHANGELOG, headers)


def test_a_later_version_is_refused_with_its_place():
    with pytest.raises(NewerRecord, match=r"version 9.*partition 2, offset 7") as caught:
        check(CHANGELOG, None, [(HEADER, b"\x09")])
    assert caught.value.topic == CHANGELOG


def test_the_headers_of_other_topics_are_their_users():
    check("t", [(HEADER, b"\x09")])
