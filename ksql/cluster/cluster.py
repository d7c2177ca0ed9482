"""The state of a service's servers on the wire.

Source: ksqlDB developer guide, REST API, endpoint /clusterStatus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ksql.control.statements.entities import TopicPartition


@dataclass(frozen=True, slots=True)
class LagInfo:
    """How far a store's partition is behind its topic."""

    current_offset_position: int
    end_offset_position: int
    offset_lag: int


@dataclass(frozen=True, slots=True)
class StateStoreLags:
    """The lags of one store, by partition."""

    lag_by_partition: Mapping[str, LagInfo]


@dataclass(frozen=True, slots=True)
class HostStoreLags:
    """The lags of a server's stores, by ``query#store``."""

    state_store_lags: Mapping[str, StateStoreLags] = field(default_factory=dict)
    update_time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveStandby:
    """The stores and partitions of a query that a server holds."""

    active_stores: tuple[str, ...] = ()
    active_partitions: tuple[TopicPartition, ...] = ()
    stand_by_stores: tuple[str, ...] = ()
    stand_by_partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One server."""

    host_alive: bool
    last_status_update_ms: int
    active_standby_per_query: Mapping[str, ActiveStandby]
    host_store_lags: HostStoreLags


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All servers, by ``host:port``."""

    cluster_status: Mapping[str, HostStatus]
