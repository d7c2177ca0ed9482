"""The progress of persistent queries, asked of the server that runs them, and topics' ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.cluster.replicas.consistency import NotFollowed
from ksql.cluster.replicas.replica_reader import ReadRejected, Unreachable
from ksql.kafka.errors import UnknownTopic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ksql.app.monitor import SparkMonitor
    from ksql.cluster.members import Members
    from ksql.cluster.replicas.peers import Peers
    from ksql.cluster.replicas.read_request import Processed
    from ksql.core.token import Place
    from ksql.kafka.admin import Admin


class AllEnds:
    """The ends of topics, with what is not committed yet: ``consistency.ReadableEnds``.

    A broker acknowledges a transaction before its records can be read as committed.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def __call__(self, topics: Iterable[str]) -> Mapping[Place, int]:
        """Return the ends of those topics that there are."""
        ends: dict[Place, int] = {}
        for topic in topics:
            try:
                ends |= self._admin.end_offsets([topic], committed=False)
            except UnknownTopic:
                continue  # nothing is in it
        return ends


class Progress:
    """How far queries have processed their sources; for any number of threads."""

    def __init__(self, here: SparkMonitor, members: Members, peers: Peers) -> None:
        self._here = here
        self._members = members
        self._peers = peers

    def of(self, query_id: str, credentials: str) -> Processed:
        """Return how far one query is; no offsets while it has not finished a batch.

        ``credentials``: those of the client, as the header Authorization has them.

        Raises: NotFollowed if nobody can say it at the moment.
        """
        server = self._members.leader()
        if server is None:
            raise NotFollowed("no server is the leader of the service at the moment")
        if server == self._members.me:
            return self._here.processed(query_id)
        try:
            return self._peers.processed(server, query_id, credentials)
        except ReadRejected as turned:
            raise NotFollowed(f"{server}, which is the leader, starts or ends") from turned
        except Unreachable as problem:
            raise NotFollowed(f"{server}, which is the leader: {problem}") from problem
