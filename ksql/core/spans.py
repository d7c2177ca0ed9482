"""Spans of what the service does, where somebody traces it; nothing else is done or kept.

A tracer is switched on for the whole process. While there is none, a span costs one comparison.
Source: W3C Trace Context; docs/operations.md#traces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Protocol

from ksql.core.log_context import below, parent_span

Attributes = Mapping[str, str | int | bool]


class OpenSpan(Protocol):
    """A span that has begun; one that is never ended is shown nowhere."""

    @property
    def header(self) -> str:
        """The header traceparent that names it as the parent of further spans."""

    def end(self, error: str) -> None:
        """End it; an empty ``error`` says that all went well."""


class Tracer(Protocol):
    """Takes spans. ``parent`` is the header of the span around one; empty for a root."""

    def begin(self, name: str, parent: str, attributes: Attributes) -> OpenSpan:
        """Begin a span now."""

    def finished(
        self,
        name: str,
        parent: str,
        nanoseconds: tuple[int, int],
        attributes: Attributes,
        error: str = "",
    ) -> None:
        """Take a span whose begin and end, since the epoch, are in the past."""


_tracer: Tracer | None = None


def trace_with(tracer: Tracer | None) -> None:
    """Give all spans from now on to that tracer; None: to nobody."""
    global _tracer  # noqa: PLW0603 - as the handlers of logging, it is the process's
    _tracer = tracer


@contextmanager
def within_span(name: str, attributes: Attributes, unless: type[BaseException]) -> Iterator[None]:
    """Have a block be a span, the parent of those in it.

    A block that raises ``unless`` is tried again, and is none.
    """
    tracer = _tracer
    if tracer is None:
        yield
        return
    opened = tracer.begin(name, parent_span(), attributes)
    with below(opened.header):
        try:
            yield
        except unless:
            raise
        except BaseException as error:
            opened.end(str(error) or type(error).__name__)
            raise
        opened.end("")


def finished_span(
    name: str, milliseconds: tuple[int, int], attributes: Attributes, error: str = ""
) -> None:
    """Take what began and ended at those times since the epoch as a span of the present context."""
    if _tracer is not None:
        begun, ended = milliseconds
        times = begun * 1_000_000, max(begun, ended) * 1_000_000
        _tracer.finished(name, parent_span(), times, attributes, error)


def finished_root(name: str, milliseconds: tuple[int, int], attributes: Attributes) -> None:
    """Take such a span as the root of a trace, whatever request notices its end."""
    Context().run(finished_span, name, milliseconds, attributes)


def begun_span(name: str) -> Callable[[Attributes, str], None] | None:
    """Begin a span that another thread may end; None where nobody traces.

    Call what is returned with the attributes, and the error if there was one.
    """
    tracer = _tracer
    if tracer is None:
        return None
    context, began = copy_context(), time.time_ns()
    parent = parent_span()

    def end(attributes: Attributes, error: str) -> None:
        # a client's trace is in the context, which only one thread at a time may enter
        times = began, time.time_ns()
        context.copy().run(tracer.finished, name, parent, times, attributes, error)

    return end
