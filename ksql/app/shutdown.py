"""The end of a service: everything is closed in order, and nothing may hold that up.

The end of a cluster: all queries, the topics that are named, then the order of truth itself.

Source: docs/rest.md#ksqlterminate.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from ksql.control.planning.schemas import forget, subjects_of
from ksql.control.statements import distributed
from ksql.control.statements.execute import RequestFailed, session
from ksql.core.errors import KsqlError, excerpt
from ksql.core.process.background import call_within
from ksql.exec.dataflow import topic_acl
from ksql.java.regex import JavaRegex, compile_whole
from ksql.java.values import EvaluationError
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.cluster.group import GroupMembers
    from ksql.kafka.embedded.broker import EmbeddedBroker
    from ksql.spark.session.runtime import SparkRuntime

    Closer = Callable[[], object]
    from collections.abc import Sequence

    from ksql.control.statements.entities import Entity
    from ksql.control.statements.services import Services
    from ksql.core.config import Settings
    from ksql.exec.ports import Topics


_log = logging.getLogger(__name__)
_STOP_S = 4.0
_SHARED_STOP_S = 90.0
_PROCESS_STOP_S = 5.0
_LEAST_S = 0.3
WITHDRAWAL_S = 1.0
_TAKEN_OVER_S = 2.5
"""The others look once a second who is there, and begin to fill the stores that come to them."""


def end(
    closers: list[Closer],
    runtime: SparkRuntime | None,
    broker: EmbeddedBroker | None,
    *,
    shared: bool,
) -> None:
    """Close everything, the last one first, and end the processes; the very first one comes last.

    Spark ends before the broker, which it may still be writing to. A process that does not end is
    killed.
    ``shared``: Spark keeps running for other services, so that batches must be finished.
    """
    first, rest = closers[:1], closers[1:]
    calm = close_all(rest, _SHARED_STOP_S if shared else _STOP_S)
    if runtime is not None and not (calm and close_all([runtime.close], _PROCESS_STOP_S)):
        runtime.kill()
    if broker is not None and not close_all([broker.stop], _PROCESS_STOP_S):
        broker.kill()
    close_all(first, _STOP_S)


def hand_over(members: GroupMembers) -> None:
    """Leave the servers of the service, and wait until the others read in this one's place."""
    if len(members.alive()) > 1:
        members.leave(WITHDRAWAL_S)
        time.sleep(_TAKEN_OVER_S)


def close_all(closers: list[Closer], patience_s: float) -> bool:
    """Close them, the last one first, emptying the list.

    What has not ended when the time is over is left to itself, and those after it still get a
    moment each.

    Returns: whether all have ended in time.
    """
    deadline = time.monotonic() + patience_s
    in_time = True
    while closers:
        in_time &= _close(closers.pop(), max(_LEAST_S, deadline - time.monotonic()))
    return in_time


def _close(close: Closer, patience_s: float) -> bool:
    name = getattr(close, "__qualname__", repr(close))
    try:
        ended = call_within(f"stop {name}", close, patience_s)
    except Exception as error:  # noqa: BLE001 - the others must be ended all the same
        reason = error.text() if isinstance(error, KsqlError) else str(error)
        _log.warning("stop_failed", extra={"what": name, "reason": reason})
        _log.debug("stop_failed", exc_info=True)
        return True
    if not ended:
        _log.warning("stop_cut_short", extra={"what": name, "seconds": round(patience_s, 1)})
    return ended


_EVERYTHING: Final = ast.QueryControl("TERMINATE", None, everything=True)


class BadPattern(KsqlError):
    """A pattern for the names of topics that is no regular expression."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"Invalid pattern: {pattern}", detail=reason)


def _pattern(text: str) -> JavaRegex:
    try:
        return compile_whole(text)
    except EvaluationError as error:
        raise BadPattern(excerpt(text), str(error)) from error


def _fits(pattern: JavaRegex, name: str) -> bool:
    try:
        return pattern.search(name) is not None
    except EvaluationError as error:
        raise BadPattern(excerpt(pattern.pattern), str(error)) from error


def end_cluster(
    services: Services,
    settings: Settings,
    topics: Topics,
    command_topic: str,
    delete_topics: Sequence[str],
    ended: Callable[[], object],
) -> list[Entity]:
    """End all queries, those of SOURCE tables too; delete the sink topics that patterns match.

    What queries kept for themselves is deleted with them, the command topic at last. ``ended`` is
    called between: from then on a missing command topic is no surprise.
    Raises: BadPattern, RequestFailed.
    """
    patterns = [_pattern(text) for text in delete_topics]
    catalog = services.engine.catalog
    sinks = {s.topic for s in catalog.sources.values() if s.created_by is not None}
    named = [t for t in sinks if any(_fits(p, t) for p in patterns)]
    doomed = [topic for topic in named if topic_acl.may_delete(topic, settings)]
    subjects = [
        subject
        for source in catalog.sources.values()
        if source.topic in doomed
        for subject in subjects_of(source)
    ]
    answer = _end_queries(services, settings)
    ended()
    topics.delete([*doomed, command_topic])
    forget(subjects, services.engine.registry)
    return [answer]


def _end_queries(services: Services, settings: Settings) -> Entity:
    request = session(services, settings, {}, {})
    request.text = "TERMINATE ALL;"
    try:
        return distributed.execute(_EVERYTHING, request)
    except KsqlError as error:
        raise RequestFailed(error, request.text) from error
