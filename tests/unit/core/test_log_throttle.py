from __future__ import annotations

import subprocess
import sys

from ksql.core.timing import LogThrottle


def test_frequent_event_is_logged_at_intervals():
    now = [50.0]
    seldom = LogThrottle(60.0, lambda: now[0])
    assert [seldom.due() for _ in range(4)] == [1, 0, 0, 0]
    now[0] += 60
    assert [seldom.due(), seldom.due()] == [4, 0]


def test_the_limit_of_descriptors_is_raised_to_what_may_be():
    program = (
        "import resource as r; from ksql.core.process_tuning import ENOUGH, raise_limit;"
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]; r.setrlimit(r.RLIMIT_NOFILE, (64, hard));"
        "most = ENOUGH if hard == r.RLIM_INFINITY else min(hard, ENOUGH);"
        "assert raise_limit() == most == r.getrlimit(r.RLIMIT_NOFILE)[0], most"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
