"""The embedded broker: it keeps its data, and never outlives whoever started it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ksql.core.process.lock import DirectoryBusy
from ksql.core.records import LATEST_MS
from ksql.kafka.embedded.broker import BrokerFailed, EmbeddedBroker, PortInUse
from ksql.kafka.embedded.broker_config import AFTER_MAX_MS
from tests.waits import PATIENCE_S, await_true


def create_topic(bootstrap, name):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)


def produce(bootstrap, topic, records):
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value, timestamp in records:
        producer.produce(topic, value, timestamp=timestamp, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def read(bootstrap, topic, count):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, timeout=PATIENCE_S)
        return [(message.value(), message.timestamp()[1]) for message in messages]
    finally:
        consumer.close()


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # nobody has taken note of it
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pid):
    await_true(f"process {pid} has gone", lambda: not is_running(pid))


@pytest.mark.proof  # a minute
def test_keeps_its_data_port_and_old_event_times_over_a_restart(tmp_path):
    far_ahead = 4_102_444_800_000
    records = [(b"epoch", 1), (b"2013", 1_357_034_400_000), (b"2100", far_ahead)]
    first = EmbeddedBroker(tmp_path)
    bootstrap = first.start()
    create_topic(bootstrap, "kept")
    produce(bootstrap, "kept", records)
    pid = first.pid
    first.stop()

    assert not is_running(pid)
    assert (first.alive, first.pid, first.bootstrap) == (False, 0, "")
    with EmbeddedBroker(tmp_path) as second:
        assert second.bootstrap == bootstrap
        assert read(second.bootstrap, "kept", 3) == records


def test_refuses_records_that_are_too_late_for_every_query(broker):
    create_topic(broker.bootstrap, "late")
    answers = {}
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for time_ms in (0, AFTER_MAX_MS, LATEST_MS + 1):
        producer.produce(
            "late",
            b"x",
            partition=0,
            timestamp=time_ms,
            on_delivery=lambda error, _, at=time_ms: answers.update({at: error}),
        )
        assert producer.flush(PATIENCE_S) == 0
    assert answers.pop(LATEST_MS + 1).name() == "INVALID_TIMESTAMP"
    assert answers == {0: None, AFTER_MAX_MS: None}


@pytest.mark.proof
def test_takes_another_port_when_the_former_one_is_taken(tmp_path):
    with EmbeddedBroker(tmp_path) as first:
        former = first.bootstrap
        create_topic(former, "kept")
        produce(former, "kept", [(b"here", 5)])
    host, port = former.split(":")
    with socket.create_server((host, int(port))), EmbeddedBroker(tmp_path) as second:
        assert second.bootstrap != former
        assert read(second.bootstrap, "kept", 1) == [(b"here", 5)]


def test_a_second_service_over_the_same_directory_is_refused(broker):
    with pytest.raises(DirectoryBusy, match=f"process {os.getpid()}"):
        EmbeddedBroker(broker.log_file.parent.parent).start()
    assert broker.alive


def test_a_taken_port_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=str(port)):
            EmbeddedBroker(tmp_path, port=port).start()


def test_a_failed_start_reports_kafkas_own_reason(tmp_path):
    with EmbeddedBroker(tmp_path):
        pass
    meta = tmp_path / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(BrokerFailed) as failed:
        EmbeddedBroker(tmp_path).start()
    assert failed.value.detail.startswith("Stored node id 7 doesn't match")
    meta.write_text(meta.read_text().replace("node.id=7", "node.id=1"))
    with EmbeddedBroker(tmp_path) as mended:
        assert mended.alive


def test_a_jvm_that_cannot_start_is_reported(tmp_path):
    with pytest.raises(BrokerFailed) as failed:
        EmbeddedBroker(tmp_path, heap_mb=1).start()
    assert "heap" in failed.value.detail


PARENT = """
import os, sys, time
from pathlib import Path
from ksql.kafka.embedded.broker import EmbeddedBroker
broker = EmbeddedBroker(Path(sys.argv[1]))
broker.start()
print(broker.pid, flush=True)
if len(sys.argv) > 2 and os.fork() == 0:
    print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    "end",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.proof),
        pytest.param(signal.SIGINT, marks=pytest.mark.proof),
    ],
)
def test_it_ends_with_its_parent_however_that_ends(tmp_path, end):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(end)
        try:
            parent.wait(PATIENCE_S)
        finally:
            parent.kill()
    # A lock file left behind stops nobody; the next start waits for a JVM that is just ending.
    with EmbeddedBroker(tmp_path) as successor:
        assert not is_running(pid)
        assert successor.alive


def test_a_forked_child_that_holds_the_pipe_does_not_keep_it_alive(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), "fork"], stdout=subprocess.PIPE
    ) as parent:
        pid, forked = int(parent.stdout.readline()), int(parent.stdout.readline())
        try:
            parent.kill()
            parent.wait(PATIENCE_S)
            wait_until_gone(pid)
        finally:
            os.kill(forked, signal.SIGKILL)


@pytest.mark.proof  # a minute
def test_a_full_disk_is_reported_and_its_end_survived(small_disk):
    filler = small_disk / "filler"
    with EmbeddedBroker(small_disk / "kafka") as broker:
        bootstrap = broker.bootstrap
        create_topic(bootstrap, "kept")
        produce(bootstrap, "kept", [(b"before", 5)])
        with filler.open("wb") as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 16)):
                file.flush()
        producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 500})
        deadline = time.monotonic() + PATIENCE_S
        while broker.alive:
            assert time.monotonic() < deadline, "it lives on a full disk"
            producer.produce("kept", os.urandom(10_000), partition=0)
            producer.flush(1)
        assert "the disk is full" in broker.ending()
        with pytest.raises((BrokerFailed, OSError)):
            broker.revive()
        assert "the disk is full" in broker.ending()
        filler.unlink()
        broker.revive()
        assert broker.bootstrap == bootstrap
        assert read(bootstrap, "kept", 1) == [(b"before", 5)]


def test_killed_broker_restarts_on_its_port_with_its_data(tmp_path):
    with EmbeddedBroker(tmp_path) as broker:
        bootstrap = broker.bootstrap
        create_topic(bootstrap, "kept")
        produce(bootstrap, "kept", [(b"here", 5)])
        os.kill(broker.pid, signal.SIGKILL)
        await_true("the broker has died", lambda: not broker.alive)
        assert broker.ending() == "ended by signal 9"
        broker.revive()
        assert (broker.alive, broker.bootstrap) == (True, bootstrap)
        assert read(bootstrap, "kept", 1) == [(b"here", 5)]
