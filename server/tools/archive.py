"""Sees to the archives of the classes that Spark and the broker load: later starts are quicker.

Run by the set-up as ``python -m server.tools.archive``. Without the archives everything works,
and starts more slowly.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from ksql.core import StartError
from ksql.core.process import find_java, jar_files
from ksql.kafka.embedded import archive_of
from ksql.spark.session import prepared_stand


def main() -> int:
    """Write both archives if one is missing; return 1 with a message when that fails."""
    with tempfile.TemporaryDirectory(prefix="ksql-archive-") as folder:
        stand = prepared_stand(jar_files("spark"), Path(folder, "scratch"))
        broker = archive_of(find_java().path, jar_files("broker"))
        if stand.archive.exists() and broker.exists():
            return 0
        sys.stdout.write(
            "setup: noting the classes that Spark and Kafka load, for quicker starts\n"
        )
        sys.stdout.flush()
        from server.tools.classes import FAILURES, write  # noqa: PLC0415 takes seconds, rarely needed

        logging.getLogger().addHandler(logging.NullHandler())
        try:
            write(stand, broker, Path(folder))
        except FAILURES as error:
            reason = error.text() if isinstance(error, StartError) else str(error)
            sys.stderr.write(f"that failed, so Spark and Kafka start slowly: {reason}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
