"""A read of a replica: the request to another server, its terms, and the replica's interface.

The forms have a version; a server answers only those that it knows.

Source: KIP-535.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast, get_args

from ksql.cluster.replicas.partition_assignment import Role
from ksql.cluster.replicas.replica_status import ReadPolicy, ReplicaStatus, StalenessLimits, State
from ksql.core import versioned_json
from ksql.views.stores import HiddenWindows, Stored, StoredRow

VERSION: Final = 1
PATH: Final = "/stores/read"
STANDINGS: Final = "/stores/standings"
PROCESSED: Final = "/stores/processed"
MEDIA: Final = "application/octet-stream"

Span = tuple[bytes | None, bytes | None]
"""The first key and the one after the last; None leaves that side open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """One read of a store: these keys or, if there are none, this span of keys."""

    query_id: str
    partition: int
    terms: ReadPolicy
    committed: bool = False
    keys: Sequence[bytes] | None = None
    span: Span = (None, None)

    def form(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        allowed, terms = self.terms.allowed, self.terms
        return {
            "version": VERSION,
            "query": self.query_id,
            "partition": self.partition,
            "committed": self.committed,
            "terms": {
                "running": terms.running,
                "limited": terms.limited,
                "atLeast": terms.at_least,
                "offsetLag": allowed.offset_lag,
                "timeLagMs": allowed.time_lag_ms,
            },
            "keys": None if self.keys is None else [_text(key) for key in self.keys],
            "span": [_text(end) for end in self.span],
        }

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> ReadRequest:
        """Return the ask of a form.

        Raises: ValueError, NewerVersion.
        """
        try:
            versioned_json.version_of(form, VERSION)
            terms, keys, (lo, hi) = form["terms"], form["keys"], form["span"]
            return cls(
                query_id=str(form["query"]),
                partition=int(form["partition"]),
                terms=ReadPolicy(
                    allowed=StalenessLimits(
                        offset_lag=_number(terms["offsetLag"]),
                        time_lag_ms=_number(terms["timeLagMs"]),
                    ),
                    running=bool(terms["running"]),
                    limited=bool(terms["limited"]),
                    at_least=int(terms["atLeast"]),
                ),
                committed=bool(form["committed"]),
                keys=None if keys is None else [base64.b64decode(key) for key in keys],
                span=(_bytes(lo), _bytes(hi)),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"the form lacks or has wrong: {error}") from error


def status_form(status: ReplicaStatus) -> dict[str, Any]:
    """Return the status of a replica as JSON has it."""
    return {
        "state": status.state,
        "role": status.role,
        "position": status.position,
        "offsetLag": status.offset_lag,
        "timeLagMs": status.time_lag_ms,
    }


def status_of(form: Mapping[str, Any]) -> ReplicaStatus:
    """Return the status of a replica of its form.

    Raises: ValueError.
    """
    state, role = form.get("state"), form.get("role")
    if state not in get_args(State) or role not in get_args(Role):
        raise ValueError(f"no standing: {state}, {role}")
    return ReplicaStatus(
        state=cast("State", state),
        role=cast("Role", role),
        position=int(form.get("position") or 0),
        offset_lag=_number(form.get("offsetLag")),
        time_lag_ms=_number(form.get("timeLagMs")),
    )


class Processed(NamedTuple):
    """Up to which offsets a query has processed its sources for good, by topic and partition.

    ``failure`` is its error, if it is in the state ERROR and goes no further for now.
    """

    offsets: Mapping[str, Mapping[int, int]]
    failure: str = ""


def processed_form(processed: Processed) -> dict[str, Any]:
    """Return how far a query has processed its sources as JSON has it."""
    topics = {
        topic: {str(partition): offset for partition, offset in parts.items()}
        for topic, parts in processed.offsets.items()
    }
    return {"version": VERSION, "processed": topics, "failure": processed.failure}


def processed_of(form: Mapping[str, Any]) -> Processed:
    """Return what a form says; servers of before name no failure.

    Raises: ValueError, NewerVersion.
    """
    versioned_json.version_of(form, VERSION)
    try:
        offsets = {
            str(topic): {int(partition): int(offset) for partition, offset in parts.items()}
            for topic, parts in form["processed"].items()
        }
        return Processed(offsets, str(form.get("failure") or ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the form lacks or has wrong: {error}") from error


def _number(value: object) -> int | None:
    return None if value is None else int(cast("int", value))


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class ReadRejected(Exception):
    """The replica may not answer on these terms."""

    def __init__(self, status: ReplicaStatus) -> None:
        super().__init__(status.text())
        self.status = status


class Unreachable(Exception):
    """The replica's server did not answer, or not to the end."""


def _unknown() -> None:
    return None


@dataclass(slots=True)
class ReadResult:
    """How far the replica is, and its answer as it comes: what of both ``ReadRequest`` asked for.

    Iterating raises Unreachable if the server does not answer to the end; ``close`` ends it early.
    Once it has come to its end, ``seen`` returns an offset after all that was in it. ``hidden``
    returns which windows a retention has hidden from it. Before that both may return None.
    """

    status: ReplicaStatus
    answers: Iterator[list[Stored | None]] | None = None
    rows: Iterator[list[StoredRow]] | None = None
    seen: Callable[[], int | None] = _unknown
    hidden: Callable[[], HiddenWindows | None] = _unknown


class ReplicaReader(Protocol):
    """The replicas that one server holds."""

    def read(self, ask: ReadRequest) -> ReadResult:
        """Begin a read.

        Raises: ReadRejected, Unreachable.
        """
