"""The servers of one service: who they are, who lives, and which of them leads."""

from __future__ import annotations

from ksql.cluster import members
from ksql.cluster.cluster_client import ClusterClient, RemoteLeader
from ksql.cluster.group import GroupMembers, group_name, member_name
from ksql.cluster.heartbeats import Heartbeats
from ksql.cluster.members import ClusterStatus, HostStoreLags, Members, Server, SingleServer

__all__ = [
    "ClusterClient",
    "ClusterStatus",
    "GroupMembers",
    "Heartbeats",
    "HostStoreLags",
    "Members",
    "RemoteLeader",
    "Server",
    "SingleServer",
    "group_name",
    "member_name",
    "members",
]
