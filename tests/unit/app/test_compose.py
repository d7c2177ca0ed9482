from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ksql.app import compose
from ksql.core.config import Settings
from ksql.kafka.settings import KafkaSettings


def client(properties: dict[str, str]) -> dict[str, str]:
    client_ = KafkaSettings.from_properties({"bootstrap.servers": "kafka:9092"} | properties)
    return compose.java_client(client_)


def test_the_java_client_gets_the_address_and_what_opens_the_door() -> None:
    given = {"security.protocol": "SASL_SSL", "ssl.endpoint.identification.algorithm": "https"}
    assert client(given) == given | {"bootstrap.servers": "kafka:9092"}


@pytest.mark.parametrize("prefix", ["", "ksql.streams.", "ksql.streams.consumer."])
def test_queries_read_at_the_level_that_was_set_whoever_reads(prefix: str) -> None:
    given = {"bootstrap.servers": "kafka:9092", f"{prefix}isolation.level": "read_uncommitted"}
    kafka = KafkaSettings.from_properties(given)
    for settings in (compose.java_client(kafka), compose.range_client(kafka)):
        assert settings["isolation.level"] == "read_uncommitted"


def test_workers_read_what_is_committed_if_nothing_else_was_set() -> None:
    settings = compose.range_client(KafkaSettings("kafka:9092"))
    assert settings["isolation.level"] == "read_committed"


def test_a_file_that_does_not_load_is_reported_and_the_others_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "ext"
    folder.mkdir()
    good = "from ksql.functions.udf import udf\n@udf\ndef km(m: int) -> float:\n    return m / 1\n"
    (folder / "good.py").write_text(good, encoding="utf-8")
    (folder / "bad.py").write_text("raise ValueError('no')\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        _sources, functions = compose.user_functions(Settings(), tmp_path)
    assert [one.name for one in functions] == ["KM"]
    assert [getattr(record, "file", "") for record in caplog.records] == ["bad.py"]


def test_limits_are_given_in_seconds() -> None:
    assert compose.limits(Settings({"ksql.udf.timeout.ms": "250"})).seconds == 0.25


@pytest.mark.parametrize(
    ("master", "reader", "jvm_reads", "plans_only"),
    [
        ("local[*]", "workers", False, True),
        ("local[*]", "spark", True, False),
        ("spark://there:7077", "spark", True, True),
    ],
)
def test_the_driver_only_plans_unless_its_tasks_read_the_records(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    reader: str,
    jvm_reads: bool,
    plans_only: bool,
) -> None:
    monkeypatch.setattr(compose, "jar_files", lambda _: ())
    given = {"ksql.spark.master": master, "ksql.spark.source.reader": reader}
    spark = compose.spark_settings(Settings(given), tmp_path)
    assert (spark.jvm_reads, spark.driver_plans_only) == (jvm_reads, plans_only)
