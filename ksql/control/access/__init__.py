"""The rights of users: on which objects, for which statements, and who asks at the moment."""

# mypy: implicit-reexport
from __future__ import annotations

from ksql.control.access.needs import Need, needs
from ksql.control.access.requester import (
    NotPermitted,
    Requester,
    acting,
    current,
    digest,
    seen_queries,
    sees_command,
)
from ksql.control.access.rights import ALL, EVERY, NONE, Grants, Pattern, Right, Rule
