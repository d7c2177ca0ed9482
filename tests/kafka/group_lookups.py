"""A process that asks for a group's members all the time; its arguments: the brokers, the group.

It ends when its standard input does, and prints a line for each try, ``answered`` or ``failed``.
"""

from __future__ import annotations

import select
import sys

from confluent_kafka import KafkaException

from ksql.kafka.groups import Coordinators
from ksql.kafka.settings import KafkaSettings

_LIMIT_S = 1.0


def main(bootstrap: str, group: str) -> None:
    coordinators = Coordinators(KafkaSettings(bootstrap))
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        description = coordinators.ask(
            lambda client, **more: client.describe_consumer_groups([group], **more), _LIMIT_S
        )
        try:
            description[group].result()
        except KafkaException:
            outcome = "failed"
        else:
            outcome = "answered"
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
