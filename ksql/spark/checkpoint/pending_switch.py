"""The plan that a switch of an earlier version has tried, as it lies next to the checkpoint.

That version ran the new plan's first batch before its command was in the log, and may have died in
it. The old plan continues then, but that batch is not its own: the new plan finishes it first.
Nobody writes the file any more: a trial has no effect today.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ksql.core import versioned_json
from ksql.core.error_table import TRIAL_UNREADABLE
from ksql.core.structs import Structs
from ksql.spark.checkpoint import checkpoint
from ksql.sql.catalog.forms import FORMS
from ksql.sql.catalog.model import PersistentQuery

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ksql.spark.query.query_supervisor import QuerySupervisor

_log = logging.getLogger(__name__)

_VERSIONS: Final[versioned_json.Fields] = {1: frozenset({"query"})}
_STRUCTS: Final = Structs(FORMS)
_DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def read(checkpoint: Path) -> PersistentQuery | None:
    """Return the plan that was tried last, by a version that ran it for that.

    Raises: OSError, TRIAL_UNREADABLE.
    """
    file = _file(checkpoint)
    if not file.exists():
        return None
    try:
        _, body = versioned_json.read(file.read_text(encoding="utf-8"), _VERSIONS)
        query = _STRUCTS.build(body["query"])
        if not isinstance(query, PersistentQuery):
            raise TypeError("it holds no query")
    except (versioned_json.NewerVersion, *_DAMAGE) as error:
        raise TRIAL_UNREADABLE(file=file, reason=str(error)) from error
    return query


def clear(checkpoint: Path) -> None:
    """Remove the plan: another one continues from here."""
    _file(checkpoint).unlink(missing_ok=True)


def end(
    place: Path,
    query: PersistentQuery,
    host: Callable[[PersistentQuery], QuerySupervisor],
    limit_s: float,
) -> None:
    """Let a plan finish the batch that it began in a trial, before another plan continues.

    A server of an earlier version has died in a switch then. If that plan cannot finish it, the
    query's own must.

    Raises: OSError, TRIAL_UNREADABLE.
    """
    tried = read(place)
    if tried is None:
        return
    if tried.plan != query.plan and checkpoint.half_done(place):
        _finish(host(tried), limit_s)
    clear(place)


def _finish(query: QuerySupervisor, limit_s: float) -> None:
    try:
        done = query.finish_batch(limit_s)
    except Exception:  # noqa: BLE001 - the plan that continues runs the batch and fails itself
        _log.exception("batch_not_finished", extra={"query_id": query.query_id})
    else:
        _log.info("trial_ended", extra={"query_id": query.query_id, "finished": done})
    finally:
        query.stop()


def _file(checkpoint: Path) -> Path:
    return checkpoint / "trial.json"
