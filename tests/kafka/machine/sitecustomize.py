"""Another machine, as far as Python can tell: another time, another uptime, another id.

Every Python process of a server that ``tests.kafka.skewed_server`` starts loads this, as it lies on
``PYTHONPATH``: the server, and the workers of its Spark. What is written in other languages (its
JVM, Kafka's client) sees the machine as it is.
"""

from __future__ import annotations

import io
import os
import time

AHEAD_S = int(os.environ["KSQL_TEST_AHEAD_S"])
_BOOT = "/proc/sys/kernel/random/boot_id"
_usual_s, _usual_ns, _usual_clock, _usual_open = (
    time.time,
    time.time_ns,
    time.clock_gettime,
    io.open,
)


def seconds() -> float:
    return _usual_s() + AHEAD_S


def nanoseconds() -> int:
    return _usual_ns() + AHEAD_S * 1_000_000_000


def clock(which: int) -> float:
    return _usual_clock(which) + AHEAD_S


def opened(file, *args, **options):
    if not isinstance(file, int) and os.fspath(file) == _BOOT:
        return io.StringIO(f"ahead by {AHEAD_S}")
    return _usual_open(file, *args, **options)


# by name: Spark's workers, which have this as well, are sent functions as such
time.time, time.time_ns, time.clock_gettime, io.open = seconds, nanoseconds, clock, opened
