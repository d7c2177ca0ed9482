"""Python's search for cyclic garbage, fitted to a server.

By default it looks through the newest objects after every 700 of them, and from time to time
through all that the process has. A batch of records is thousands of objects without a cycle, and a
server's own objects stay until its end. The search doubled the cost of a stored record.
"""

from __future__ import annotations

import gc
from typing import Final

RARELY: Final = (50_000, 20, 100)
"""After how many new objects, and after how many searches among newer ones."""


def spare() -> None:
    """Search more rarely from now on."""
    gc.set_threshold(*RARELY)


def settle() -> None:
    """Leave out of later searches what there is now: the server has started."""
    gc.freeze()
