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
        log = tmp_path / "tries"
        with (
            log.open("w") as output,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, cwd=ROOT) as lookups,
        ):
            for outage_s in (0.2, 0.5, 1.0, 2.0, 0.2, 0.5, 1.0, 2.0):
                await_more_answers(log, lookups)
                way.cut()
                time.sleep(outage_s)  # the subject: questions are open for so long
                way.mend()
            await_more_answers(log, lookups)
            lookups.communicate(timeout=PATIENCE_S)
        assert lookups.returncode == 0
        member.close()


def await_more_answers(log, lookups):
    """Wait until three more questions have been answered."""
    goal = log.read_text().count("answered") + 3

    def answered():
        assert lookups.poll() is None, "the process has ended"
        return log.read_text().count("answered") >= goal

    await_true(f"{goal} answers", answered)
