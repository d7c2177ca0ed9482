"""``python -m tests.crash.restart``: how long until ten queries run again after a kill -9."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.crash.site import Broker, Site
from tests.crash.world import EXACTLY_ONCE
from tests.kafka.records import produce, unique
from tests.kafka.servers import EARLIEST
from tests.waits import await_true

QUERIES = 10
ROUNDS = 3


def main() -> int:
    """Print the seconds from the start of the new process until every query runs."""
    with tempfile.TemporaryDirectory(prefix="ksql-restart-") as folder:
        place = Path(folder)
        site = Site(Broker(place / "kafka"), place, unique("restart") + "_")
        try:
            site.start()
            _create(site)
            for _ in range(ROUNDS):
                produce(site.broker.bootstrap, "SOURCE", [("k", {"N": 1})] * 100)
                site.kill()
                began = time.monotonic()
                site.start()
                await_true("all queries run", lambda: _all_run(site))
                sys.stdout.write(
                    f"{QUERIES} queries run {time.monotonic() - began:.1f} s after the start; "
                    f"no process was left {site.orphan_seconds[-1]:.1f} s after the kill\n"
                )
        finally:
            site.abandon()
            site.broker.stop()
    return 0


def _create(site: Site) -> None:
    site.http.ksql(
        "CREATE STREAM SOURCE (K STRING KEY, N INT) "
        "WITH (KAFKA_TOPIC='SOURCE', PARTITIONS=1, VALUE_FORMAT='JSON');"
    )
    for number in range(QUERIES):
        settings = EARLIEST | ({"processing.guarantee": EXACTLY_ONCE} if number % 2 else {})
        text = (
            f"CREATE STREAM D{number} AS SELECT K, N FROM SOURCE;"
            if number % 3
            else f"CREATE TABLE D{number} AS SELECT K, COUNT(*) AS C FROM SOURCE GROUP BY K;"
        )
        site.http.ksql(text, settings)


def _all_run(site: Site) -> bool:
    states = list(site.http.queries().values())
    return len(states) == QUERIES and set(states) == {"RUNNING"}


if __name__ == "__main__":
    sys.exit(main())
