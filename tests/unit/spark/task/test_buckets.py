from __future__ import annotations

import pytest

from ksql.spark.task.partitioner import bucket_labels, spark_partition


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16, 200])
def test_each_bucket_has_a_partition_of_its_own(count):
    labels = bucket_labels(count)
    assert [spark_partition(label, count) for label in labels] == list(range(count))


def test_labels_never_change():
    """State lies where its label says: a changed label would lose it."""
    assert bucket_labels(4) == LABELS_OF_FOUR


# hash(0), hash(1) .. of Spark: -1670924195, -559580957, 1765031574, -1823081949
@pytest.mark.parametrize(
    ("label", "hashed"), [(0, 933211791), (1, -559580957), (2, 1765031574), (3, -1823081949)]
)
def test_hash_is_sparks(label, hashed):
    assert spark_partition(label, 1 << 31) == hashed % (1 << 31)


LABELS_OF_FOUR = (12, 6, 2, 0)
