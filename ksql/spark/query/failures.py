"""A failed query's reason in a sentence: no Java and no Python stack trace reaches a user."""

from __future__ import annotations

import re

from ksql.core import LATEST_MS, KsqlError, QueryFailed, without_secrets

_CAUSE = re.compile(
    r"^(?:Caused by: |: )?(?:[\w.$]+\.)?(\w+(?:Error|Exception|Failed|Failure|Exit)): (.+)$",
    re.MULTILINE,
)
_DATA_LOST = re.compile(
    r"data (?:may have been|was) (?:lost|missed)|DATA_LOSS|partitions? .{0,80}gone", re.IGNORECASE
)
_NO_TOPIC = re.compile(r"UnknownTopicOrPartition|does not host this topic-partition", re.IGNORECASE)

_TOO_LATE = re.compile(
    r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value (-?\d+)"
)

_LOST = (
    "records that the query has not read yet are gone from the broker (a topic was deleted, "
    "recreated or cut by its retention){}; set ksql.query.fail.on.data.loss to false to continue "
    "with what is left"
)
_LOST_WHERE = re.compile(
    r"may have been lost.*?Reason:\s*(\S[^\n]*?)\.?\s*?$", re.DOTALL | re.MULTILINE
)
_DIED = (
    "a worker process of the query died: a user function may have ended or crashed it, or was ended"
    " with it for taking more time (ksql.udf.timeout.ms) or memory (ksql.udf.memory.max.bytes) than"
    " it may and not letting itself be interrupted"
)
_WORKER_DIED = re.compile(r"Python worker exited unexpectedly")
_MISSING = "a topic that the query reads does not exist"


class RecordTooLate(QueryFailed):
    """A record whose time Spark's source cannot read."""

    def __init__(self, topic: str, partition: str, offset: str, time: str) -> None:
        super().__init__(
            f'topic "{topic}" has a record that cannot be read: partition {partition}, '
            f"offset {offset}, timestamp {time}",
            detail=f"No query can read a timestamp beyond {LATEST_MS} ms; its producer may write "
            "microseconds or nanoseconds",
            hint=f"Delete the records of that partition before offset {int(offset) + 1} with "
            "kafka-delete-records; docs/operations.md says what that means for the query.",
        )


def cause(problem: BaseException) -> str:
    """Return why something failed: its own words, or the reason out of a chain of stack traces."""
    return problem.text() if isinstance(problem, KsqlError) else reason(str(problem))


def reason(trace: str) -> str:
    """Return the sentence that a user needs, out of a chain of stack traces, without secrets."""
    return without_secrets(_reason(trace))


def _reason(trace: str) -> str:
    if late := _TOO_LATE.search(trace):
        return str(RecordTooLate(*late.groups()))
    if _DATA_LOST.search(trace):
        where = _LOST_WHERE.search(trace)
        return _LOST.format(f": {where[1]}" if where else "")
    if _NO_TOPIC.search(trace):
        return _MISSING
    python = trace.rfind("Traceback (most recent call last)")
    if python >= 0:
        return _last_line_of_traceback(trace[python:])
    if _WORKER_DIED.search(trace):
        return _DIED
    causes = _CAUSE.findall(trace)
    return causes[-1][1].strip() if causes else trace.strip().split("\n", 1)[0]


def _last_line_of_traceback(text: str) -> str:
    for line in text.splitlines()[1:]:
        if line and not line[0].isspace():
            name, _, message = line.partition(": ")
            return message.strip() or name.strip()
    return text.splitlines()[0]
