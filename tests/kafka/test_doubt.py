"""A commit of which nobody knows whether it counts: the command topic tells, nothing is deleted."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException

from ksql.control.engine.ports import Command, CommandInDoubt
from ksql.control.log.log import KafkaCommandLog, NotCommitted
from ksql.kafka.admin import Admin
from ksql.kafka.errors import KafkaUnreachable
from ksql.kafka.settings import KafkaSettings
from tests.kafka.records import produce, read_all, unique
from tests.kafka.servers import hosted
from tests.waits import PATIENCE_S, await_true

GIVES_UP_S = 5.0
"""How long a client tries a commit that is not answered."""


def command(name):
    return Command(f"stream/`{name}`/create", f"CREATE STREAM {name};", ())


def opened(kafka, service_id):
    """A log that gives up soon, however long Kafka takes to open it."""
    seen = []
    log = KafkaCommandLog(kafka, service_id, 1, lambda offset, command: seen.append(command.id))
    log.open()
    log._sender._settings = replace(kafka, timeout_s=GIVES_UP_S)
    return log, seen


@pytest.fixture
def kafka(broker):
    return KafkaSettings(broker.bootstrap, timeout_s=PATIENCE_S)


def lose_the_answer(log, *, after):
    """The next commit times out: after Kafka has carried it out, or before it was asked."""
    writer = log._sender._writer
    commits = []

    class Silent:
        def __getattr__(self, name):
            return getattr(writer, name)

        def commit(self, *args):
            commits.append(1)
            if after and len(commits) == 1:
                writer.commit(*args)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True))

    log._sender._open_writer = Silent()


@pytest.mark.parametrize("after", [True, False])
def test_the_log_says_itself_whether_a_command_counts(kafka, after):
    service_id = unique("doubt") + "_"
    log, seen = opened(kafka, service_id)
    with log.begin() as transaction:
        transaction.append(command("A"))
    lose_the_answer(log, after=after)
    if after:
        with log.begin() as transaction:
            transaction.append(command("B"))
    else:
        with pytest.raises(NotCommitted), log.begin() as transaction:
            transaction.append(command("B"))
    with log.begin() as transaction:
        transaction.append(command("C"))
    log.catch_up()
    assert seen == []
    again, replayed = opened(kafka, service_id)
    assert [name[8] for name in replayed] == (["A", "B", "C"] if after else ["A", "C"])
    for each in (log, again):
        each.close()


def test_as_long_as_kafka_is_away_it_stays_in_doubt(kafka, monkeypatch):
    log, _ = opened(kafka, unique("doubt") + "_")
    lose_the_answer(log, after=True)
    usual = log._sender.reopen

    def away():
        raise KafkaUnreachable("nowhere", "no answer")

    monkeypatch.setattr(log._sender, "reopen", away)
    with pytest.raises(CommandInDoubt), log.begin() as transaction:
        transaction.append(command("A"))
    with pytest.raises(CommandInDoubt):
        log.catch_up()
    with pytest.raises(KafkaUnreachable):
        log.settle()
    monkeypatch.setattr(log._sender, "reopen", usual)
    assert log.settle()
    assert log.catch_up() == 2
    log.close()


def test_a_transaction_that_could_not_be_given_up_stops_no_later_statement(kafka, monkeypatch):
    log, seen = opened(kafka, unique("doubt") + "_")
    writer = log._sender._writer

    class Stuck:
        def __getattr__(self, name):
            return getattr(writer, name)

        def abort(self, *args):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))

    log._sender._open_writer = Stuck()
    with monkeypatch.context() as patch:
        usual = log._sender.send

        def send(*args, **kwargs):
            usual(*args, **kwargs)
            writer.flush(PATIENCE_S)
            raise OSError("odd")

        patch.setattr(log._sender, "send", send)
        with pytest.raises(OSError, match="odd"), log.begin() as transaction:
            transaction.append(command("A"))
    with log.begin() as transaction:
        transaction.append(command("B"))
    assert log.catch_up() == transaction.offset + 2
    assert seen == []
    log.close()


@pytest.mark.proof
def test_broker_that_hangs_during_the_commit(broker, kafka):
    """The request waits in the broker's socket while the client gives up."""
    service_id = unique("still") + "_"
    log, _ = opened(kafka, service_id)
    children = psutil.Process().children(recursive=True)
    (java,) = [
        p.pid for p in children if p.name() == "java" and "kafka.Kafka" in " ".join(p.cmdline())
    ]
    usual = log._sender._step
    going_on = threading.Timer(GIVES_UP_S + 3, os.kill, (java, signal.SIGCONT))

    def step(call):
        if call.__name__ == "commit":
            os.kill(java, signal.SIGSTOP)
            going_on.start()
        usual(call)

    log._sender._step = step
    counts = None
    try:
        with log.begin() as transaction:
            transaction.append(command("A"))
        counts = True
    except NotCommitted:
        counts = False
    except CommandInDoubt:
        log._sender._step = usual
    if counts is None:
        going_on.join()
        counts = log.settle()
    log._sender._step = usual
    with log.begin() as transaction:
        transaction.append(command("B"))
    _again, replayed = opened(kafka, service_id)
    assert [name[8] for name in replayed] == (["A", "B"] if counts else ["B"])


# --- the whole service


def declared(name):
    return (
        f"CREATE STREAM {name} (K STRING KEY, N INT) "
        f"WITH (KAFKA_TOPIC='{name}', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )


@pytest.mark.parametrize("after", [True, False])
def test_a_statement_in_doubt_deletes_nothing_and_is_settled_by_itself(
    server, http, monkeypatch, after
):
    source, sink = unique("src").upper(), unique("dst").upper()
    http.ksql(declared(source))
    log = server.service.node.log
    short = replace(log._sender._settings, timeout_s=GIVES_UP_S)
    monkeypatch.setattr(log._sender, "_settings", short)
    lose_the_answer(log, after=after)
    away = threading.Event()
    usual = log._sender.reopen

    def reopen():
        if not away.is_set():
            raise KafkaUnreachable("nowhere", "no answer")
        usual()

    monkeypatch.setattr(log._sender, "reopen", reopen)
    text = f"CREATE STREAM {sink} AS SELECT K, N FROM {source};"
    body = http.refused(text)
    assert body["error_code"] == 50300
    assert "not known yet whether the statement" in body["message"]
    assert http.refused(declared("OTHER"))["error_code"] == 50300
    assert sink in Admin(KafkaSettings(server.bootstrap)).topics()
    produce(server.bootstrap, source, [("k", {"N": 1})])
    await_true("the prepared query goes on", lambda: read_all(server.bootstrap, sink))
    away.set()
    await_true("it is settled", lambda: server.service.node.engine.settled)
    assert any(f"_{sink}_" in query for query in http.queries()) == after
    assert (sink in Admin(KafkaSettings(server.bootstrap)).topics()) == after
    status = http.client.get(f"/status/stream/`{sink}`/create").json()
    assert status["status"] == ("SUCCESS" if after else "ERROR")
    if not after:
        http.ksql(text)
    produce(server.bootstrap, source, [("k", {"N": 2})])
    expected = [1, 2]
    await_true(
        "all come out",
        lambda: [s.value["N"] for s in read_all(server.bootstrap, sink)] == expected,
    )


# --- what a command promises


def test_a_topic_that_a_drop_left_is_deleted_at_the_next_start_and_once(
    broker, runtime, tmp_path, monkeypatch
):
    service_id, name = unique("prom") + "_", unique("gone").upper()
    admin = Admin(KafkaSettings(broker.bootstrap))
    with hosted(broker.bootstrap, runtime, tmp_path / "state", service_id) as http:
        http.ksql(declared(name))
        with monkeypatch.context() as patch:
            patch.setattr(Admin, "delete", lambda *_: (_ for _ in ()).throw(OSError("killed")))
            patch.setattr("ksql.control.doubt_resolver.DoubtResolver.wake", lambda _self: None)
            http.ksql(f"DROP STREAM {name} DELETE TOPIC;")
            assert name in admin.topics()
    with hosted(broker.bootstrap, runtime, tmp_path / "state", service_id) as http:
        await_true("it is deleted", lambda: name not in admin.topics())
        http.ksql(declared(name))
    for _ in range(2):
        with hosted(broker.bootstrap, runtime, tmp_path / "state", service_id) as http:
            assert name in admin.topics()
            assert name in str(http.one("SHOW STREAMS;"))
