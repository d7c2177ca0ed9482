"""The shape of the plan that a checkpoint belongs to, in a small file of it.

State is read by the plan that wrote it, or by one that may replace it. A directory that was copied
or renamed by hand may hold another's: the numbers would be read as if they were its own. The shape
is what no replacement changes. Checkpoints of versions without the file adopt the first plan that
continues them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.core import ServerError
from ksql.spark.checkpoint.checkpoint import TextsFile
from ksql.sql.plan import (
    Aggregate,
    EmitFinal,
    ForeignKeyJoin,
    Plan,
    QueryPlan,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    TimeWindow,
    sources,
)
from ksql.sql.plan.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_FILE: Final = TextsFile("shape.json", "shape", "its shape is")

Shape = dict[str, str]
"""What it is -> how it is, in words that are stored: add to them, never change them."""


class OtherPlan(ServerError):
    """A checkpoint that another plan has written."""

    def __init__(self, query_id: str, checkpoint: Path, then: Shape, now: Shape) -> None:
        differing = (name for name in now if name in then and then[name] != now[name])
        differences = "; ".join(
            f"{name}: {then[name]}, the query has {now[name]}" for name in differing
        )
        super().__init__(
            f"the checkpoint of query {query_id} belongs to another plan: {checkpoint}",
            detail=f"It was written by a query with {differences}. Its state would be read as this "
            "query's, and its offsets would skip records.",
            hint="Bring the query's own directory back and start again; or start once with "
            f"-o ksql.state.anew={query_id} (or =all) to start over, which moves it aside; or "
            f"TERMINATE {query_id}.",
        )


def shape_of(query_id: str, plan: QueryPlan, hidden: str = "") -> Shape:
    """Return the shape of a query's plan.

    It has no sink where that is the ``hidden`` topic of the query's version. A version writes to
    that topic before its cut-over, and as a former version again.
    """
    steps = [step for node in nodes(plan.sink) if (step := _step(node))]
    topic = plan.sink.topic or ""
    shape = {
        "id": query_id,
        **({} if topic and topic == hidden else {"sink": topic}),
        "topics": ", ".join(sorted({source.topic for source in sources(plan.sink)})),
        "steps": ", ".join(steps) or "none",
    }
    shape |= {"buckets": str(plan.buckets)} if steps else {}
    return shape | ({"lanes": str(plan.lanes)} if plan.lanes else {})


def adopt(query_id: str, checkpoint: Path, now: Shape) -> None:
    """Refuse a checkpoint of another shape; write what it does not say yet.

    Raises: OtherPlan, CheckpointDamaged, NewerCheckpoint, OSError.
    """
    then = read(checkpoint)
    if any(then.get(name, value) != value for name, value in now.items()):
        raise OtherPlan(query_id, checkpoint, then, now)
    if now.keys() - then.keys():
        write(checkpoint, {**then, **now})


def read(checkpoint: Path) -> Shape:
    """Return the shape that a checkpoint belongs to; empty if it does not say.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    return _FILE.read(checkpoint)


def write(checkpoint: Path, shape: Mapping[str, str]) -> None:
    """Write the shape down.

    Raises: OSError.
    """
    _FILE.write(checkpoint, shape)


def _step(node: Plan) -> str:
    match node:
        case Aggregate():
            return f"aggregate{_windows(node.window)}"
        case EmitFinal():
            return "final"
        case StreamStreamJoin():
            within = f"{node.window.before_ms} and {node.window.after_ms} ms"
            return f"stream-stream join within {within}"
        case StreamTableJoin():
            return "stream-table join"
        case TableTableJoin():
            return "table-table join"
        case ForeignKeyJoin():
            return "foreign-key join"
        case _:
            return ""


def _windows(window: TimeWindow | None) -> str:
    return f" {window.kind} {window.size_ms} by {window.advance_ms} ms" if window else ""
