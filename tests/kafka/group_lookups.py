"""A process that asks for a group's members all the time; its arguments: the brokers, the group.

Ends when its standard input does; prints how often it had an answer since it last had none.
"""

from __future__ import annotations

import contextlib
import select
import sys

from confluent_kafka import KafkaException

from ksql.kafka.coordinators import Coordinators
from ksql.kafka.settings import KafkaSettings

_LIMIT_S = 1.0


def main(bootstrap: str, group: str) -> None:
    coordinators = Coordinators(KafkaSettings(bootstrap))
    answers = 0
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        description = coordinators.ask(
            lambda client, **more: client.describe_consumer_groups([group], **more), _LIMIT_S
        )
        answers += 1
        with contextlib.suppress(KafkaException):
            description[group].result()
            continue
        answers = 0
    sys.stdout.write(f"{answers}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
