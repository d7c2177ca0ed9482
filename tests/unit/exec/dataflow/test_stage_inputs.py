from __future__ import annotations

import pytest

from ksql.exec.dataflow.program import Results
from ksql.exec.dataflow.stage_inputs import Encoder, Unwritable
from ksql.exec.operators.base import BadResult
from tests.unit.world import World

SETUP = """
CREATE STREAM S (K INT KEY, V INT) WITH (KAFKA_TOPIC='s', PARTITIONS=1, FORMAT='KAFKA');
CREATE STREAM O AS SELECT * FROM S;
"""


@pytest.mark.parametrize(
    ("key", "value", "target", "row"),
    [((2**40,), (1,), "key", (2**40,)), ((1,), (2**40,), "value", (2**40,))],
)
def test_a_result_that_cannot_be_written_is_reported_with_its_side(key, value, target, row):
    encoder = Encoder(World(SETUP).plan("O").sink)
    rows = Results.of([((5,), (6,), 1, None, None), (key, value, 2, None, None)])
    with pytest.raises(Unwritable, match="Unable to serialize record") as caught:
        encoder(rows)
    assert caught.value.entry is not None
    operator, _, details = caught.value.entry
    assert (operator, details) == ("serializer", BadResult(target, row))
