"""The replicas of a table's rows: which servers hold them, how far each is, how one is read."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.cluster.replicas import frames, read_request
from ksql.cluster.replicas.cluster_status import (
    ENABLED,
    HeartbeatsOff,
    own_host,
    own_scheme,
    own_server,
)
from ksql.cluster.replicas.consistency import ConsistencyResolver, NotFollowed, TokenNotReached
from ksql.cluster.replicas.failover import Freshness, ReadProvenance
from ksql.cluster.replicas.partition_assignment import PartitionAssignment
from ksql.cluster.replicas.read_request import (
    MEDIA,
    PATH,
    PROCESSED,
    STANDINGS,
    Processed,
    ReadRejected,
    ReadRequest,
    ReadResult,
    Unreachable,
    status_form,
)
from ksql.cluster.replicas.replica_client import Peers
from ksql.cluster.replicas.replica_service import STANDBYS, ReplicaService
from ksql.cluster.replicas.replica_status import ReplicaStatus, StalenessLimits
from ksql.cluster.replicas.replicated import Caller, QueryReader
