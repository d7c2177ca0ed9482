"""Before anything is touched: state and Kafka belong together, and no other server has them."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from ksql.app import belonging
from ksql.app.tenure import Tenure
from ksql.base.aside import Aside
from ksql.commands.log import topic_name
from ksql.kafka.claims import Claim, KafkaClaims

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.app.state import StateDir
    from ksql.base.config import Settings
    from ksql.kafka.admin import Admin
    from ksql.kafka.settings import KafkaSettings


def prepare(
    settings: Settings,
    kafka: KafkaSettings,
    admin: Admin,
    state: StateDir,
    *,
    now_ms: Callable[[], int],
    random_name: Callable[[], str],
    on_lost: Callable[[str], None],
) -> Tenure:
    """Check that they belong together; the tenure must still be acquired.

    Raises: StateInDanger, KafkaUnreachable, KafkaDenied, KafkaRefused.
    """
    aside = Aside(state.aside, now_ms)
    topic = topic_name(state.identity.service_id)
    found = belonging.look(admin, kafka.bootstrap, admin.cluster_id(), topic)
    belonging.check(state, found, settings.text("ksql.state.adopt"), aside)
    keep_ms = settings.number("ksql.state.aside.retention.ms")
    identity = state.identity
    me = Claim(
        id=random_name(),
        host=platform.node(),
        pid=os.getpid(),
        state_dir=str(state.root),
        state_id=identity.state_id,
        since_ms=now_ms(),
    )
    replicas = settings.number("ksql.internal.topic.replicas")
    claims = KafkaClaims(kafka, identity.service_id, replicas)
    claims.open()
    return Tenure(
        claims,
        me,
        identity.service_id,
        state.lease,
        on_lost=on_lost,
        chore=lambda: aside.expire(keep_ms),
    )
