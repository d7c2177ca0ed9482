"""The number of files and sockets that this process may have open."""

from __future__ import annotations

import resource
from typing import Final

ENOUGH: Final = 1_048_576
"""Descriptors: where the system sets no end, this many are asked for."""


def raise_limit() -> int:
    """Raise the soft limit of descriptors as far as the hard one; return what holds then.

    A process started by hand or by systemd often has 1,024, of which stores, Kafka and Spark take
    their part as well.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        return limit
    return ENOUGH if soft == resource.RLIM_INFINITY else soft
