"""How many queries a server answers."""

from __future__ import annotations

import pytest

from ksql.core.config import Settings
from ksql.core.errors import ServerError, TooManyRequests
from ksql.serving import limits
from ksql.serving.limits import Limits
from ksql.views.materialized_view import TableNotReady
from tests.unit.server.fakes import FakeStream, rows

ROWS = rows((1, "a"))


class Clock:
    def __init__(self):
        self.ms = 1_000_000

    def __call__(self):
        return self.ms


def pull():
    return FakeStream([ROWS], "pull", ends_with="Query Completed")


def of(clock=None, **properties):
    names = {name: str(value) for name, value in properties.items()}
    return Limits(Settings({getattr(limits, k): v for k, v in names.items()}), clock or Clock())


def refused(start):
    with pytest.raises(TooManyRequests) as caught:
        start()
    assert caught.value.code == 42900
    return caught.value.message


def test_a_query_passes_through():
    stream = of().pull(pull)
    assert (stream.kind, stream.columns, stream.query_id) == (
        "pull",
        FakeStream().columns,
        "transient_S_1",
    )
    assert (list(stream.batches()), stream.final_message) == ([ROWS], "Query Completed")
    stream.close()
    assert stream.query.ended.is_set()


@pytest.mark.parametrize("end", ["read", "closed", "left", "both"])
def test_so_many_run_at_a_time(end):
    service = of(CONCURRENT=2)
    first, _second = service.pull(pull), service.pull(pull)
    error = refused(lambda: service.pull(pull))
    assert error == (
        "Host is at concurrency limit for pull queries. "
        "Currently set to 2 maximum concurrent operations."
    )
    if end in ("read", "both"):
        assert list(first.batches()) == [ROWS]
    if end in ("closed", "both"):
        first.close()
        first.close()
    if end == "left":
        batches = first.batches()
        next(batches)
        batches.close()
    service.pull(pull)
    refused(lambda: service.pull(pull))  # one place was free, not two


def test_a_query_that_does_not_begin_takes_no_place():
    service = of(CONCURRENT=1)

    def fail():
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            service.pull(fail)
    service.pull(pull)


def test_so_many_begin_in_a_second():
    clock = Clock()
    service = of(clock, QPS=2)
    for _ in range(2):
        service.pull(pull).close()
    assert refused(lambda: service.pull(pull)) == (
        "Host is at rate limit for pull queries. Currently set to 2.0 qps."
    )
    clock.ms += 500
    service.pull(pull)


@pytest.mark.parametrize(("name", "kind"), [("PULL_BANDWIDTH", "pull"), ("PUSH_BANDWIDTH", "push")])
def test_so_much_is_sent_in_an_hour(name, kind):
    clock = Clock()
    service = of(clock, **{name: 1})
    start = {"pull": service.pull, "push": service.push}[kind]
    stream = start(pull)
    stream.sent(1_048_575)
    start(pull).sent(1)
    assert refused(lambda: start(pull)) == (f"Host is at bandwidth rate limit for {kind} queries.")
    other = {"pull": service.push, "push": service.pull}[kind]
    other(pull)
    clock.ms += 3_600_000
    start(pull)


def test_nothing_is_limited_unless_it_is_requested():
    service = limits.unlimited()
    for _ in range(1_000):
        service.pull(pull).sent(10**12)
        service.push(pull).sent(10**12)


def test_the_end_of_a_query_is_reported_once_and_whether_it_has_failed():
    ends: list[bool] = []
    stream = of().pull(pull, ends.append)
    assert ends == []
    list(stream.batches())
    stream.close()
    assert ends == [False]
    broken = of().pull(lambda: FakeStream([ROWS, ServerError("gone")], "pull"), ends.append)
    with pytest.raises(ServerError):
        list(broken.batches())
    broken.close()
    of().pull(pull, ends.append).close()  # left
    assert ends == [False, True, False]

    def fails():
        raise ServerError("no start")

    with pytest.raises(ServerError):
        of().pull(fails, ends.append)
    assert len(ends) == 3


def counted(limited):
    return dict(limited.metrics.requests.counts()), dict(limited.metrics.rows.counts())


def test_queries_and_their_rows_are_counted_once_they_have_ended():
    limited = of()
    stream = limited.pull(pull)
    assert counted(limited) == ({}, {})
    assert list(stream.batches()) == [ROWS]
    stream.close()
    assert counted(limited) == ({("pull", "done"): 1}, {("pull",): 1})
    assert sum(limited.metrics.pulls.histogram().counts) == 1


def test_queries_that_fail_or_are_refused_are_counted_as_such():
    limited = of(CONCURRENT=1)
    failing = limited.pull(lambda: FakeStream([ServerError("x")], "pull"))
    with pytest.raises(TooManyRequests):
        limited.pull(pull)
    with pytest.raises(ServerError):
        list(failing.batches())
    with pytest.raises(ServerError):
        limited.push(refused_by(ServerError("no topic")))
    with pytest.raises(TooManyRequests):
        limited.push(refused_by(TooManyRequests("many")))
    assert limited.metrics.requests.counts() == {
        ("pull", "refused"): 1,
        ("pull", "failed"): 1,
        ("push", "failed"): 1,
        ("push", "refused"): 1,
    }


def test_a_query_that_waits_for_its_table_counts_when_it_is_started():
    limited = of()
    with pytest.raises(TableNotReady):
        limited.pull(refused_by(TableNotReady("T")))
    assert counted(limited) == ({}, {})


def refused_by(error):
    def start():
        raise error

    return start
