from __future__ import annotations

import pytest

from ksql.core.errors import StatementError
from ksql.sql.binder.windows import DAY_MS, sizes
from tests.parsing import parse


def clause(text):
    [parsed] = parse(f"SELECT COUNT(*) FROM S WINDOW {text} GROUP BY K EMIT CHANGES;")
    return parsed.statement.window


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TUMBLING (SIZE 1 HOUR)", ("TUMBLING", 3_600_000, 3_600_000, 82_800_000, DAY_MS)),
        ("TUMBLING (SIZE 2 DAYS)", ("TUMBLING", 2 * DAY_MS, 2 * DAY_MS, 0, 2 * DAY_MS)),
        (
            "TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS)",
            ("TUMBLING", 10_000, 10_000, 0, 10_000),
        ),
        (
            "HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS, GRACE PERIOD 5 SECONDS)",
            ("HOPPING", 30_000, 10_000, 5_000, 35_000),
        ),
        (
            "TUMBLING (SIZE 1 MINUTE, RETENTION 3 DAYS, GRACE PERIOD 1 DAY)",
            ("TUMBLING", 60_000, 60_000, DAY_MS, 3 * DAY_MS),
        ),
        (
            "SESSION (60 SECONDS, GRACE PERIOD 1 SECOND)",
            ("SESSION", 60_000, 0, 1_000, 61_000),
        ),
    ],
)
def test_defaults(text, expected):
    window = sizes(clause(text))
    assert (
        window.kind,
        window.size_ms,
        window.advance_ms,
        window.grace_ms,
        window.retention_ms,
    ) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TUMBLING (SIZE 0 SECONDS)", "Window size .sizeMs. must be larger than zero"),
        ("HOPPING (SIZE 1 SECOND, ADVANCE BY 0 SECONDS)", "is 1000 ms, but given .* is: 0 ms"),
        ("SESSION (0 SECONDS)", "Gap time cannot be zero or negative"),
        ("HOPPING (SIZE 1 SECOND, ADVANCE BY 2 SECONDS)", "but given .* is: 2000 ms"),
        (
            "TUMBLING (SIZE 10 SECONDS, RETENTION 12 SECONDS, GRACE PERIOD 5 SECONDS)",
            r"no smaller than its window size plus the grace period. "
            r"Got size=\[10000\], grace=\[5000\], retention=\[12000\]",
        ),
        (
            "SESSION (10 SECONDS, RETENTION 12 SECONDS, GRACE PERIOD 5 SECONDS)",
            r"no smaller than the session inactivity gap plus the grace period. "
            r"Got gap=\[10000\], grace=\[5000\], retention=\[12000\]",
        ),
    ],
)
def test_impossible_windows(text, message):
    with pytest.raises(StatementError, match=message) as caught:
        sizes(clause(text))
    assert caught.value.span is not None
