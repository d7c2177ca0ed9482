"""The servers of one service: who they are, who lives, and which of them leads."""

from __future__ import annotations

from ksql.cluster import members
from ksql.cluster.cluster_client import ClusterClient, RemoteLeader
from ksql.cluster.group import GroupMembers, group_name, member_name
from ksql.cluster.heartbeats import Heartbeats
from ksql.cluster.members import Alone, ClusterStatus, HostStoreLags, Members, Server

__all__ = [
    "Alone",
    "ClusterClient",
    "ClusterStatus",
    "GroupMembers",
    "Heartbeats",
    "HostStoreLags",
    "Members",
    "RemoteLeader",
    "Server",
    "group_name",
    "member_name",
    "members",
]
