"""The ids that events of the log carry: of the request and of the statement that are at work.

They belong to a context (``contextvars``). A thread that continues a request's work is given its
context by ``carried``; a thread of its own has none.
Source: W3C Trace Context, the header traceparent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

TRACEPARENT: Final = "traceparent"
_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?")
_NOTHING: Final[Mapping[str, str]] = {}
_FIELDS: ContextVar[Mapping[str, str]] = ContextVar("log_fields", default=_NOTHING)
_TRACE: ContextVar[str] = ContextVar("traceparent", default="")
_PARENT: ContextVar[str] = ContextVar("parent_span", default="")


class Trace(NamedTuple):
    """A request's id, 32 hexadecimal digits, and the header that passes it on.

    ``parent`` is the header that the client has sent; empty if it was none.
    """

    id: str
    header: str
    parent: str = ""


def trace_of(header: str, random_hex: Callable[[int], str] = secrets.token_hex) -> Trace:
    """Return the trace of a request whose header is that; one that is not valid counts as none.

    Without one a new id is taken from ``random_hex``, which gets a number of bytes.
    """
    match = _FORM.fullmatch(header.strip())
    if match is not None and _is_valid(match):
        return Trace(match[2], match[0], match[0])
    new = random_hex(16)
    return Trace(new, f"00-{new}-{random_hex(8)}-00")


def _is_valid(match: re.Match[str]) -> bool:
    version, trace, parent, _flags, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return False
    return trace.strip("0") != "" and parent.strip("0") != ""


@contextmanager
def traced(trace: Trace) -> Iterator[None]:
    """Have the events of a block carry the request's id."""
    fields = _FIELDS.set({**_FIELDS.get(), "request_id": trace.id})
    header, parent = _TRACE.set(trace.header), _PARENT.set(trace.parent)
    try:
        yield
    finally:
        _PARENT.reset(parent)
        _TRACE.reset(header)
        _FIELDS.reset(fields)


@contextmanager
def below(header: str) -> Iterator[None]:
    """Have the span of that header be the parent of a block's, here and at other servers."""
    trace, parent = _TRACE.set(header), _PARENT.set(header)
    try:
        yield
    finally:
        _PARENT.reset(parent)
        _TRACE.reset(trace)


def parent_span() -> str:
    """Return the header of the span around the present work; empty if there is none."""
    return _PARENT.get()


def traceparent() -> str:
    """Return the header that passes the present request on; empty outside of any."""
    return _TRACE.get()


def log_fields() -> Mapping[str, str]:
    """Return the ids of the present context, by name."""
    return _FIELDS.get()


def note(**fields: str) -> None:
    """Have the events carry these ids until the present block of ``noting`` ends."""
    _FIELDS.set({**_FIELDS.get(), **fields})


@contextmanager
def noting() -> Iterator[None]:
    """Forget at the end of a block what was noted in it."""
    token = _FIELDS.set(_FIELDS.get())
    try:
        yield
    finally:
        _FIELDS.reset(token)


def carried(work: Callable[[], T]) -> Callable[[], T]:
    """Return some work that another thread does in the present context."""
    context = copy_context()
    return lambda: context.run(work)
