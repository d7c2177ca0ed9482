"""The topics that a checkpoint's offsets belong to: Kafka's own ids, in a small file of it.

A topic that is deleted and recreated keeps its name, not its id. Its offsets begin again, so a
checkpoint of the former topic would leave out the first records of the new one. Checkpoints of
versions that kept no ids adopt those that they find at their next start.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Final

from ksql.core import ServerError
from ksql.kafka import Problems
from ksql.spark.checkpoint.checkpoint import TextsFile

_FILE: Final = TextsFile("topics.json", "topics", "its topics are")
NOBODYS: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's id of nothing: noted for a topic that went away before its id was known."""


class TopicRecreated(ServerError):
    """A topic that is no longer the one whose records the query has read."""

    def __init__(self, query_id: str, topics: Mapping[str, tuple[str, str]]) -> None:
        names = ", ".join(f'"{topic}"' for topic in topics)
        ids = ", ".join(
            f"{topic}: {_shown(then)}, now {now}" for topic, (then, now) in topics.items()
        )
        super().__init__(
            f"topic {names} was deleted and recreated since query {query_id} has read it",
            detail=f"Kafka's id of it has changed ({ids}). The query's offsets belong to the "
            "former topic: to continue at them would leave out the first records of the new one.",
            hint=f"Start once with -o ksql.state.anew={query_id} (or =all) to start over; or "
            f"TERMINATE {query_id}. A query that was made with "
            "ksql.query.fail.on.data.loss=false reads such a topic from its beginning.",
        )


class TopicGone(ServerError):
    """A topic that a query has read and that is not there any more."""

    def __init__(self, query_id: str, topics: Mapping[str, str]) -> None:
        names = ", ".join(f'"{topic}"' for topic in topics)
        ids = ", ".join(f"{topic}: {_shown(id_)}" for topic, id_ in topics.items())
        super().__init__(
            f"topic {names}, which query {query_id} reads, was deleted",
            detail=f"Kafka has no topic of that name (its id was {ids}). Records that the query "
            "had not read are lost; its state and results stay as they are.",
            hint=f"TERMINATE {query_id}; or make the topic again and start once with "
            f"-o ksql.state.anew={query_id} (or =all) to start over with it. A query that was "
            "made with ksql.query.fail.on.data.loss=false continues by itself as soon as there "
            "is such a topic, from its beginning.",
        )


class ResultGone(TopicGone):
    """The topic that a query writes to is not there any more."""

    def __init__(self, query_id: str, topic: str) -> None:
        ServerError.__init__(
            self,
            f'topic "{topic}", which query {query_id} writes, was deleted',
            detail="Kafka has no topic of that name: there is nowhere to write results. The "
            "query's state stays as it is; results that were in the topic are lost.",
            hint=f"TERMINATE {query_id}; or make the topic again, with as many partitions: the "
            "query continues by itself, and writes what changes from then on. Start once with "
            f"-o ksql.state.anew={query_id} (or =all) to compute all results again.",
        )


PROBLEMS: Final = Problems(gone=TopicGone, recreated=TopicRecreated, result_gone=ResultGone)


def _shown(id_: str) -> str:
    return "unknown" if id_ in ("", NOBODYS) else id_


def read(checkpoint: Path) -> dict[str, str]:
    """Return the id of each topic, as it was when the checkpoint's offsets were read.

    Raises: CheckpointDamaged, NewerCheckpoint, OSError.
    """
    return _FILE.read(checkpoint)


def write(checkpoint: Path, topics: Mapping[str, str]) -> None:
    """Write the ids down.

    Raises: OSError.
    """
    _FILE.write(checkpoint, dict(sorted(topics.items())))


def kept(then: Mapping[str, str], now: Mapping[str, str], begun: Set[str]) -> dict[str, str]:
    """Return the ids to write down: those that the brokers give, and those of other offsets."""
    old = {topic: id_ for topic, id_ in then.items() if topic in begun}
    return old | {topic: id_ for topic, id_ in now.items() if id_}
