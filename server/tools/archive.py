"""Sees to the archive of the classes of Spark's JVM, which makes each later start quicker.

Run by the set-up as ``python -m server.tools.archive``. Without the archive everything works,
and starts more slowly.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from ksql.core import StartError
from ksql.core.process import jar_files
from ksql.spark.session import prepared_stand


def main() -> int:
    """Write the archive if there is none; return 1 with a message when that fails."""
    with tempfile.TemporaryDirectory(prefix="ksql-archive-") as folder:
        stand = prepared_stand(jar_files("spark"), Path(folder, "scratch"))
        if stand.archive.exists():
            return 0
        sys.stdout.write("setup: noting the classes that Spark loads, for quicker starts\n")
        sys.stdout.flush()
        from server.tools.classes import FAILURES, write  # noqa: PLC0415 takes seconds, rarely needed

        logging.getLogger().addHandler(logging.NullHandler())
        try:
            write(stand, Path(folder))
        except FAILURES as error:
            reason = error.text() if isinstance(error, StartError) else str(error)
            sys.stderr.write(f"that failed, so Spark starts slowly: {reason}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
