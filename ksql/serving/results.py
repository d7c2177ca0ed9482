"""The answers of a running query: a header, rows in batches, an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ksql.cluster.replicas import Freshness
    from ksql.core import Token
    from ksql.core.types import Column


class ResultRow(NamedTuple):
    """One row; values in column order, run-time representation.

    A tombstone has only its key columns set.
    """

    values: tuple[Any, ...]
    tombstone: bool = False


class ResultStream(Protocol):
    """A running query's answer; used by one reader."""

    kind: Literal["pull", "push"]
    columns: tuple[Column, ...]

    @property
    def final_message(self) -> str | None:
        """``Limit Reached`` or ``Query Completed``, once ``batches`` has ended."""

    @property
    def query_id(self) -> str | None:
        """The id under which it can be ended."""

    def batches(self) -> Iterator[list[ResultRow]]:
        """Yield rows as they come; block; end with the query; raise KsqlError if it fails.

        A push query yields an empty list at least every 500 ms, so that a reader notices a client
        that left.
        """

    def close(self) -> None:
        """End the query; idempotent; may be called from another thread."""


class TextStream(Protocol):
    """PRINT's answer: lines of text; the same rules as ``ResultStream``."""

    kind: Literal["print"]

    @property
    def query_id(self) -> str | None:
        """The id under which it can be ended."""

    def lines(self) -> Iterator[list[str]]:
        """Yield lines as they come."""

    def close(self) -> None:
        """End it."""


class SizedStream(ResultStream, Protocol):
    """A query whose answer counts towards a limit of bytes."""

    def sent(self, size_bytes: int) -> None:
        """Count a piece of its answer."""


def is_dated(stream: ResultStream) -> bool:
    """Return whether the answer should say which replicas it is of."""
    return bool(getattr(stream, "dated", False))


def freshness_of(stream: ResultStream) -> list[Freshness]:
    """Return the replicas that an answer is of, once it has ended; may ask Kafka how far they were.

    Raises: KsqlError.
    """
    freshness: list[Freshness] = getattr(stream, "freshness", [])
    return freshness


def host_of(stream: ResultStream) -> str:
    """Return which server's replica the rows given last are of; nothing if not one of another's."""
    host: Callable[[], str] | None = getattr(stream, "host", None)
    return "" if host is None else host()


def token_of(stream: ResultStream) -> Callable[[], Token] | None:
    """Return what says, after an answer's end, what its client has seen; None if it has not asked.

    It may ask Kafka where topics end, and raises KsqlError.
    """
    token: Callable[[], Token] | None = getattr(stream, "token", None)
    return token


def notes_of(stream: ResultStream) -> list[str]:
    """Return notes on the rows that an answer lacks, as far as it has been read."""
    notes: Callable[[], list[str]] = getattr(stream, "notes", list)
    return notes()


def marks_deletes(stream: ResultStream) -> bool:
    """Return whether its reader wants deletions also in a form that has no mark for them."""
    return bool(getattr(stream, "marks_deletes", False))


def is_counted(stream: ResultStream) -> TypeGuard[SizedStream]:
    """Return whether the bytes of its answer count."""
    return hasattr(stream, "sent")


def is_quick(stream: ResultStream | TextStream) -> TypeGuard[ResultStream]:
    """Return whether its rows are few and there at once, so that who starts it may take them."""
    return bool(getattr(stream, "quick", False))


def is_brief(stream: ResultStream | TextStream) -> TypeGuard[ResultStream]:
    """Return whether its rows are few and need not be sent as they come, but may be waited for."""
    return bool(getattr(stream, "brief", False))
