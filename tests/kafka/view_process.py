"""Follows a table until it is killed: ``python -m tests.kafka.view_process BOOTSTRAP DIRECTORY``.

It prints the position of the store whenever that has moved.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ksql.core.config import Settings
from ksql.core.files import Trash
from ksql.kafka.settings import KafkaSettings
from ksql.views.store_writer import PartitionStore
from ksql.views.view_maintainer import ViewMaintainer
from tests.unit.world import World
from tests.waits import await_true


@contextmanager
def following(
    bootstrap: str, topic: str, directory: Path, **properties: str
) -> Iterator[tuple[ViewMaintainer, PartitionStore]]:
    """What follows a counted table of one partition whose rows the test writes itself."""
    world = World(
        "CREATE STREAM S (K STRING KEY, A BIGINT) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
        f"CREATE TABLE T WITH (KAFKA_TOPIC='{topic}') AS SELECT K, COUNT(*) N FROM S GROUP BY K;"
    )
    source = world.catalog.source("T").queryable()
    tables = ViewMaintainer(
        KafkaSettings(bootstrap),
        directory / "stores",
        Trash(directory / "aside", lambda: 0),
        Settings(properties),
    )
    tables.follow(world.catalog)
    tables.start()
    try:
        table = await_true("the table is followed", lambda: tables.table(source))
        yield tables, table.parts[0]
    finally:
        tables.close()


def main() -> None:
    """Follow until it is killed."""
    bootstrap, topic, directory = sys.argv[1:]
    position = None
    with following(bootstrap, topic, Path(directory), **{"commit.interval.ms": "1"}) as (_, part):
        while True:
            if part.store.position() != position:
                position = part.store.position()
                sys.stdout.write(f"{position}\n")
                sys.stdout.flush()
            time.sleep(0.001)


if __name__ == "__main__":
    main()
