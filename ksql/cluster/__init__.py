"""The servers of one service: who they are, who lives, and which of them leads."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.cluster import members
from ksql.cluster.cluster_client import ClusterClient, RemoteLeader
from ksql.cluster.group import GroupMembers, group_name, member_name
from ksql.cluster.heartbeats import Heartbeats
from ksql.cluster.members import ClusterStatus, HostStoreLags, Members, Server, SingleServer
