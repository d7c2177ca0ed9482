from __future__ import annotations

from pathlib import Path

import pytest

from ksql.core.records import LATEST_MS
from ksql.kafka.embedded.broker_config import java_options, log_properties, server_properties
from ksql.kafka.embedded.jvm_child import last_meaningful_line


def parsed(text):
    return dict(line.split("=", 1) for line in text.splitlines())


def test_listeners_are_on_the_loopback_interface_only():
    settings = parsed(server_properties(Path("/data"), 9092, 9093))
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:9093"


def test_old_records_are_taken_and_kept():
    settings = parsed(server_properties(Path("/data"), 1, 2))
    assert settings["log.retention.ms"] == "-1"
    assert settings["log.message.timestamp.before.max.ms"] == str(2**63 - 1)


def test_records_that_are_too_late_for_every_query_are_refused_for_centuries():
    settings = parsed(server_properties(Path("/data"), 1, 2))
    bound = int(settings["log.message.timestamp.after.max.ms"])
    year_2000, year_2600 = 946_684_800_000, 19_880_899_200_000
    assert year_2000 + bound < year_2600 + bound <= LATEST_MS
    assert bound > LATEST_MS * 99 // 100  # the others are taken


def test_a_backslash_in_a_path_survives_java():
    assert parsed(server_properties(Path("a\\b"), 1, 2))["log.dirs"] == "a\\\\b"
    assert parsed(log_properties(Path("a\\b")))["appender.file.fileName"] == "a\\\\b"


def test_the_heap_is_bounded():
    assert "-Xmx200m" in java_options(200, Path("log4j2.properties"))


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", "It ended without a word."),
        ("starting\nall is well\n", "all is well"),
        (
            "2026-01-02 03:04:05,678 ERROR KafkaServer: no luck\n"
            "java.io.IOException: outer\n\tat a.B.c(D.java:1)\n"
            "Caused by: java.net.BindException: Address already in use\n"
            "\tat e.F.g(H.java:2)\n\t... 3 more\n",
            "Address already in use",
        ),
        (
            "Error occurred during initialization of VM\nToo small maximum heap\n",
            "Too small maximum heap",
        ),
        ("2026-01-02 03:04:05,678 ERROR KafkaServer: failed to bind\nbye", "failed to bind"),
    ],
)
def test_the_last_words_are_what_a_person_needs(log, line):
    assert last_meaningful_line(log) == line
