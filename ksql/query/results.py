"""The answers of a running query: a header, rows in batches, an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ksql.types.schema import Column


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
        """Rows as they come; blocks; ends with the query; raises KsqlError if it fails.

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
        """Lines as they come."""

    def close(self) -> None:
        """End it."""


class Counted(ResultStream, Protocol):
    """A query whose answer counts towards a limit of bytes."""

    def sent(self, size_bytes: int) -> None:
        """Count a piece of its answer."""


def is_counted(stream: ResultStream) -> TypeGuard[Counted]:
    """Return whether the bytes of its answer count."""
    return hasattr(stream, "sent")
