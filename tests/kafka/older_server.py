"""``ksql server`` as a version with another store format runs it; in place of the command.

``python -m tests.kafka.older_server elder OPTIONS..``: a version that knows the format without
times only, and like the first one states none in its stores.

``python -m tests.kafka.older_server paced FILE OPTIONS..``: today's version, whose copies of stores
rest after their first row until that file exists.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

from ksql.views.stores import formats
from ksql.views.stores.formats import FORMATS, Formats
from ksql.views.stores.migrating_store import StoreCopy
from ksql.views.stores.rocks import Rocks
from server.main import main


def be_elder() -> None:
    """Write stores as the format without times has them."""
    mock.patch.object(formats, "KNOWN", Formats({0: FORMATS[0]}, {})).start()
    mock.patch.object(Rocks, "check_format", return_value=None).start()


def rest_until(file: Path) -> None:
    """Copy a row of each store, and the others once the file is there."""
    usual = StoreCopy.step

    def paced(copy: StoreCopy, *_: Any) -> int:
        if copy.done and not file.exists():
            time.sleep(0.01)
            return 0
        return usual(copy, 1)

    mock.patch.object(StoreCopy, "step", paced).start()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["elder", *options]:
            be_elder()
        case ["paced", file, *options]:
            rest_until(Path(file))
        case _:
            raise SystemExit("elder, or paced and a file")
    sys.exit(main(options))
