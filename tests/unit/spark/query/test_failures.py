from __future__ import annotations

import pytest

from ksql.spark.query.failures import reason

PYTHON = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 3, in main
    process()
  File "stage.py", line 9, in __call__
    raise ValueError("x")
ksql.kafka.producers.worker_producer.DeliveryFailed: cannot write to topic "OUT"

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:561)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
JAVA = """[STREAM_FAILED] Query [id = 1] terminated with exception: boom SQLSTATE: XXKST
Caused by: java.lang.IllegalStateException: the store is gone
\tat a.b.C.d(C.scala:1)
"""

CALL = """An error occurred while calling o117.collectToPython.
: org.apache.spark.SparkException: Job 7 cancelled part of cancelled job group
\tat org.apache.spark.scheduler.DAGScheduler.handleJobCancellation(DAGScheduler.scala:2917)
"""


@pytest.mark.parametrize(
    ("trace", "text"),
    [
        (CALL, "Job 7 cancelled"),
        (PYTHON, 'cannot write to topic "OUT"'),
        (JAVA, "the store is gone"),
        ("plain words\nand more", "plain words"),
        ("Traceback (most recent call last)\n  File x\nKeyError", "KeyError"),
        (
            "KafkaIllegalStateException: Partitions [t-0] are gone. Some data may have been missed",
            "gone from the broker",
        ),
        (
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not "
            "host this topic-partition.",
            "a topic that the query reads does not exist",
        ),
    ],
)
def test_a_user_reads_one_sentence(trace, text):
    assert text in reason(trace)
    assert "\n" not in reason(trace)
    assert "Exception" not in reason(trace)


def test_a_reason_has_no_secrets():
    trace = "java.io.IOException: no answer of http://ada:m4rk3r@there, ssl.key.password=m4rk3r"
    assert reason(trace) == "no answer of http://***@there, ssl.key.password=***"


def test_a_record_that_is_too_late_is_named_with_the_way_behind_it():
    """The trace is Spark's: its error condition KAFKA_MALFORMED_RECORD_TIMESTAMP."""
    message = reason(
        "org.apache.spark.SparkException: Job aborted due to stage failure\n"
        "Caused by: java.lang.ArithmeticException: [KAFKA_MALFORMED_RECORD_TIMESTAMP] Record at "
        "topic my.topic partition 2 offset 41 has timestamp value 9223372036854776 that overflows "
        "when converting to Spark's microsecond-precision TimestampType.\n\tat a.b.C.d(C.scala:1)"
    )
    assert message.startswith(
        'topic "my.topic" has a record that cannot be read: partition 2, offset 41, '
        "timestamp 9223372036854776"
    )
    assert "before offset 42" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "error",
    [
        "Starting offset for my.topic-0 was 1 but consumer reset to 4.",
        "Partition my.topic-0 offset was changed from 7 to 2.",
        "Partitions my.topic-0,my.topic-1 have been deleted",
        "Could not read records in offset [1, 4) for topic partition my.topic-0",
    ],
)
def test_records_that_are_gone_are_named_by_their_partition(error):
    """The trace is Spark's: its error conditions KAFKA_DATA_LOSS, without their names."""
    said = reason(
        "org.apache.spark.SparkException: Job aborted due to stage failure\n"
        "Caused by: org.apache.spark.sql.kafka010.KafkaIllegalStateException: Some data may have "
        "been lost because they are not available in Kafka any more;\neither the data was aged out "
        "by Kafka or the topic may have been deleted before all the data in the\ntopic was "
        "processed.\nIf you don't want your streaming query to fail on such cases, set the source "
        f"option failOnDataLoss to false.\nReason: {error}\nand more of it\n\tat a.b.C.d(C.scala:1)"
    )
    assert "gone from the broker" in said
    assert f"cut by its retention): {error.rstrip('.')};" in said
    assert "and more" not in said
