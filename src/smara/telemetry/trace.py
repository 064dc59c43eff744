"""Give every request and job a trace id, and a span.

A trace id stands in each log line that is written meanwhile, and comes from the caller if it sends
a ``traceparent`` of the W3C. Spans are sent where OpenTelemetry is set up.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from smara.core.startup.regex import regex
from smara.errors import MissingExtraError

_TRACE: ContextVar[str] = ContextVar("trace", default="")
_TRACEPARENT = regex(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_tracer: Any = None


def trace_id() -> str:
    """Return the id of the running request or job."""
    return _TRACE.get()


class WorkSpan:
    """The span of one request or job, told to OpenTelemetry."""

    def __init__(self, trace: str, inner: Any = None) -> None:
        self.trace = trace
        self._inner = inner

    def put(self, **facts: str | int | float) -> None:
        """Add facts; never texts of people."""
        if self._inner is not None:
            self._inner.set_attributes({f"smara.{name}": value for name, value in facts.items()})

    def fail(self, code: str) -> None:
        """Mark it as failed."""
        if self._inner is not None:
            from opentelemetry.trace import StatusCode

            self._inner.set_status(StatusCode.ERROR, code)


@contextmanager
def span(name: str, traceparent: str = "", **facts: str | int | float) -> Iterator[WorkSpan]:
    """Trace a request or job.

    Args:
        name: The kind of work, the same for all of its kind: ``job threads``.
        traceparent: The header of the caller; what is invalid is ignored.
        **facts: Numbers and names that are no texts of people.
    """
    found = _TRACEPARENT.fullmatch(traceparent.strip().lower())
    if _tracer is None:
        made = WorkSpan(found[1] if found else secrets.token_hex(16))
        token = _TRACE.set(made.trace)
        try:
            yield made
        finally:
            _TRACE.reset(token)
        return
    from opentelemetry.propagate import extract

    carrier = {"traceparent": found[0]} if found else {}
    with _tracer.start_as_current_span(name, context=extract(carrier)) as inner:
        made = WorkSpan(f"{inner.get_span_context().trace_id:032x}", inner)
        made.put(**facts)
        token = _TRACE.set(made.trace)
        try:
            yield made
        finally:
            _TRACE.reset(token)


def start_tracing(exporter: Any = None) -> None:
    """Send spans to the collector that the variables ``OTEL_…`` name.

    Args:
        exporter: Receives the spans instead, at once; for tests.

    Raises:
        MissingExtraError: If OpenTelemetry is not installed.
    """
    global _tracer
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

        if exporter is not None:
            processor: Any = SimpleSpanProcessor(exporter)
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            processor = BatchSpanProcessor(OTLPSpanExporter())
    except ImportError as error:
        raise MissingExtraError(
            "Tracing needs OpenTelemetry. Install it with `pip install 'smara[telemetry]'`, or "
            "set tracing = false.",
            extra="telemetry",
        ) from error
    # OTEL_SERVICE_NAME has the last word.
    provider = TracerProvider(resource=Resource.create().merge(_named()))
    provider.add_span_processor(processor)
    _tracer = provider.get_tracer("smara")


def _named() -> Any:
    """The name of the service, unless the environment gives one."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    given = Resource.create().attributes.get(SERVICE_NAME, "")
    is_given = given and not str(given).startswith("unknown_service")
    return Resource({}) if is_given else Resource({SERVICE_NAME: "smara"})


def stop_tracing() -> None:
    """Trace no more."""
    global _tracer
    _tracer = None
