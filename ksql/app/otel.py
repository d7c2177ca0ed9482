"""Gives spans to OpenTelemetry's SDK, which sends them by OTLP in a thread of its own.

A span without a parent takes the id of its request as that of its trace, so the log names it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ksql.core import TRACEPARENT, log_fields, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from ksql.core import Attributes

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_UNNAMED: Final = "unknown_service"


class _RequestIds(RandomIdGenerator):
    """Random ids, but that of the present request for a trace that begins in it."""

    def generate_trace_id(self) -> int:
        request = log_fields().get("request_id", "")
        return int(request, 16) if request else super().generate_trace_id()


def provider(service_id: str) -> TracerProvider:
    """Return the SDK's maker of tracers; variables of the environment may name the service."""
    resource = Resource.create({"ksql.service.id": service_id})
    if str(resource.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        resource = resource.merge(Resource({SERVICE_NAME: "ksql"}))
    return TracerProvider(resource=resource, id_generator=_RequestIds(), shutdown_on_exit=False)


def exporting(service_id: str) -> tuple[OtelTracer, Callable[[], None]]:
    """Return a tracer whose spans are sent by OTLP over HTTP, and what sends the last ones."""
    maker = provider(service_id)
    maker.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return OtelTracer(maker), maker.shutdown


class OtelTracer:
    """A ``ksql.core.Tracer`` over the SDK."""

    def __init__(self, maker: TracerProvider) -> None:
        self._tracer = maker.get_tracer("ksql")

    def begin(self, name: str, parent: str, attributes: Attributes) -> OtelSpan:
        return OtelSpan(
            self._tracer.start_span(
                name, _context(parent), kind=SpanKind.SERVER, attributes=_prefixed(attributes)
            )
        )

    def finished(
        self,
        name: str,
        parent: str,
        nanoseconds: tuple[int, int],
        attributes: Attributes,
        error: str = "",
    ) -> None:
        begun, ended = nanoseconds
        span = self._tracer.start_span(
            name, _context(parent), attributes=_prefixed(attributes), start_time=begun
        )
        _end(span, error, ended)


class OtelSpan:
    """A span that has begun."""

    def __init__(self, span: Span) -> None:
        self._span = span

    @property
    def header(self) -> str:
        context = self._span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def end(self, error: str) -> None:
        _end(self._span, error)


def _prefixed(attributes: Attributes) -> dict[str, str | int | bool]:
    """Return attributes as OpenTelemetry wants names: those of one product have its name first."""
    return {f"ksql.{name}": value for name, value in attributes.items()}


def _end(span: Span, error: str, ended: int | None = None) -> None:
    if error:
        span.set_status(Status(StatusCode.ERROR, without_secrets(error)))
    span.end(ended)


def _context(parent: str) -> Context:
    """Return a context with that parent alone, whatever else uses OpenTelemetry here."""
    empty = Context()
    return _PROPAGATOR.extract({TRACEPARENT: parent}, empty) if parent else empty
