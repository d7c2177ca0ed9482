"""Spans for OpenTelemetry, where ``ksql.tracing.enable`` asks for them.

The SDK's own variables (``OTEL_..``) say where spans go and how many are kept. Only ``otel.py``
imports it, and only then.
Source: docs/operations.md#traces; OpenTelemetry specification, semantic conventions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from ksql.core import Settings, StartError, trace_with
from ksql.core.process import call_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Tracer

ENABLED: Final = "ksql.tracing.enable"
_FLUSH_S: Final = 2.0


class TracingNotInstalled(StartError):
    """Spans are asked for, and what sends them is not installed."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"{ENABLED} is true, but OpenTelemetry is not installed",
            detail=f"The module {missing} is missing.",
            hint=f"Install it: pip install 'ksql-spark[otel]'. Or set {ENABLED}=false.",
        )


def open_tracing(settings: Settings) -> Callable[[], None]:
    """Have spans sent if the settings ask for them; return what ends that.

    The end sends what is left, for two seconds at most.
    Raises: TracingNotInstalled.
    """
    if not settings.flag(ENABLED):
        return untraced
    try:
        otel = importlib.import_module("ksql.app.otel")
    except ModuleNotFoundError as error:
        raise TracingNotInstalled(error.name or "opentelemetry") from error
    tracer: Tracer
    flush: Callable[[], None]
    tracer, flush = otel.exporting(settings.text("ksql.service.id"))
    trace_with(tracer)

    def close() -> None:
        trace_with(None)
        call_within("tracing-end", flush, _FLUSH_S)

    return close


def untraced() -> None:
    """End nothing: no spans are sent."""
