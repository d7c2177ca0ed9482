"""Checks that the sides of each join have as many partitions, where they meet under one key.

Source: docs/sql/joins.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.core.errors import StatementError
from ksql.core.ident import quote_always
from ksql.sql.plan.nodes import ForeignKeyJoin, Join, Plan
from ksql.sql.plan.walk import nodes, sources

if TYPE_CHECKING:
    from collections.abc import Mapping


class PartitionsDiffer(StatementError):
    """A join of topics with different numbers of partitions."""

    def __init__(self, left: str, right: str, partitions: Mapping[str, int]) -> None:
        one, other = quote_always(left), quote_always(right)
        super().__init__(
            f"Can't join {one} with {other} since the number of partitions don't match. "
            f"{one} partitions = {partitions[left]}; {other} partitions = {partitions[right]}. "
            "Please repartition either one so that the number of partitions match.",
        )


def check_partitions(plan: Plan, partitions: Mapping[str, int]) -> None:
    """Check all joins of a plan; ``partitions`` by the name of the source.

    The sides of a foreign-key join never have to agree: their rows are always moved.

    Raises: PartitionsDiffer.
    """
    for node in reversed(list(nodes(plan))):
        if isinstance(node, Join) and not isinstance(node, ForeignKeyJoin):
            left, right = sources(node.left)[0].name, sources(node.right)[0].name
            if partitions[left] != partitions[right]:
                raise PartitionsDiffer(left, right, partitions)
