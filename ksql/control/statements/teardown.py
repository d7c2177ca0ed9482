"""The end of a cluster: all queries, the topics that are named, then the command topic.

Source: docs/rest.md#ksqlterminate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ksql.control.access import Need, Right, current
from ksql.control.planning.schemas import forget, subjects_of
from ksql.control.statements import distributed
from ksql.control.statements.execute import RequestFailed, session
from ksql.core import KsqlError, excerpt
from ksql.exec.dataflow import topic_acl
from ksql.java import EvaluationError
from ksql.java.regex import JavaRegex, compile_whole
from ksql.sql.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ksql.control.statements.entities import Entity
    from ksql.control.statements.services import Services
    from ksql.core import Settings
    from ksql.exec import Topics

_EVERYTHING: Final = ast.QueryControl("TERMINATE", None, everything=True)


class BadDeletionPattern(KsqlError):
    """A pattern for the names of topics that is no regular expression."""

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"Invalid pattern: {pattern}", detail=reason)


def _pattern(text: str) -> JavaRegex:
    try:
        return compile_whole(text)
    except EvaluationError as error:
        raise BadDeletionPattern(excerpt(text), str(error)) from error


def _fits(pattern: JavaRegex, name: str) -> bool:
    try:
        return pattern.search(name) is not None
    except EvaluationError as error:
        raise BadDeletionPattern(excerpt(pattern.pattern), str(error)) from error


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
    Raises: NotPermitted, BadDeletionPattern, RequestFailed.
    """
    current().demand((Need(Right.ADMIN, "source", "*"),), "TERMINATE CLUSTER;")
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
