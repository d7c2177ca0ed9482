"""The state of a query that rests, copied out of its checkpoint for the tasks of another one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ksql.spark.checkpoint.stateschema import KEY_COLUMN, STATE_NAME, VALUE_COLUMN
from ksql.spark.task.kept_state import KEY, LABEL, VALUE

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def copy_state(session: SparkSession, checkpoint: Path, operator: int, target: Path) -> None:
    """Write the state of an operator, as of the last finished batch, into an empty directory.

    Raises: what Spark says of the state; OSError.
    """
    shutil.rmtree(target, ignore_errors=True)
    state = (
        session.read.format("statestore")
        .option("stateVarName", STATE_NAME)
        .option("operatorId", operator)
        .load(str(checkpoint))
    )
    entries = state.selectExpr(
        f"key.{LABEL} AS {LABEL}",
        f"user_map_key.{KEY_COLUMN} AS {KEY}",
        f"user_map_value.{VALUE_COLUMN} AS {VALUE}",
    )
    entries.write.partitionBy(LABEL).parquet(str(target))
