from __future__ import annotations

import pytest

from ksql.core.config import Settings
from tests.unit.world import SETTINGS, World

S = "CREATE STREAM S (K STRING KEY, A ARRAY<INT>) WITH (KAFKA_TOPIC='s', PARTITIONS=1);"
R = S.replace("STREAM S", "STREAM R").replace("'s'", "'r'")


@pytest.mark.parametrize(
    ("switch", "text", "message"),
    [
        (
            "ksql.headers.columns.enabled",
            "CREATE STREAM H (A INT, B BYTES HEADER('b')) WITH (KAFKA_TOPIC='s');",
            "Cannot create Stream because schema with headers columns is disabled.",
        ),
        (
            "ksql.lambdas.enabled",
            "CREATE STREAM X AS SELECT K, TRANSFORM(A, Q => Q + 1) AS B FROM S;",
            "Lambda functions are disabled.",
        ),
        (
            "ksql.lambdas.enabled",
            "INSERT INTO R SELECT * FROM S WHERE ARRAY_LENGTH(FILTER(A, Q => Q > 1)) > 0;",
            "Lambda functions are disabled.",
        ),
        (
            "ksql.suppress.enabled",
            "CREATE TABLE X AS SELECT K, COUNT(*) AS C FROM S "
            "WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY K EMIT FINAL;",
            "Suppression is currently disabled. "
            "You can enable it by setting ksql.suppress.enabled to true",
        ),
    ],
)
def test_disabled_features(switch, text, message):
    world = World(S, R)
    assert world.engine.dry_run(world.parse(text), text, world.settings).changes
    world.settings = Settings({**SETTINGS, switch: "false"})
    assert world.refuse(text).message == message
