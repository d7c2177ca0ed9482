"""Kafka goes away and comes back while the coordinators of groups are asked."""

from __future__ import annotations

import subprocess
import sys
import time

from confluent_kafka import Consumer

from tests.kafka.network_outage import broker_with_a_way
from tests.kafka.records import create_topic
from tests.kafka.servers import ROOT
from tests.waits import PATIENCE_S, await_true


def test_questions_that_an_outage_left_open_do_not_end_the_process(tmp_path):
    with broker_with_a_way(tmp_path) as (bootstrap, by_the_way, way):
        create_topic(bootstrap, "t", 1)
        member = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
        member.subscribe(["t"])
        await_true("it is a member", lambda: member.poll(0.1) is None and member.assignment())
        command = [sys.executable, "-m", "tests.kafka.group_lookups", by_the_way, "g"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        ) as asking:
            for outage_s in (0.2, 0.5, 1.0, 2.0, 0.2, 0.5, 1.0, 2.0):
                time.sleep(0.7)
                way.cut()
                time.sleep(outage_s)
                way.mend()
            time.sleep(2.0)
            printed, _ = asking.communicate(timeout=PATIENCE_S)
        assert asking.returncode == 0
        assert int(printed) > 0
        member.close()
