"""Before anything is touched: state and Kafka belong together, and no other server has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ksql.app import belonging
from ksql.app.tenure import Tenure, open_tenure
from ksql.base.aside import Aside
from ksql.commands.log import topic_name

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
    return open_tenure(
        kafka,
        state,
        settings.number("ksql.internal.topic.replicas"),
        now_ms(),
        random_name(),
        on_lost,
        lambda: aside.expire(keep_ms),
    )
