"""Exchanges as OpenTelemetry spans, sent over OTLP/HTTP: a trace for each connection, beneath its span one for each
exchange. Times are the capture's. What the collector does not take in time is dropped, and the traffic is not held up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from kwire import __version__
from kwire.errors import KwireError
from kwire.session.record import error_name
from kwire.wire.visible import clean

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo
    from kwire.session.exchange import Exchange

MISSING = "--otlp needs opentelemetry-sdk and its OTLP exporter: pip install 'kwire[trace]'"
QUEUE, AT_ONCE = 65_536, 2_048  # spans that wait to be sent, and of one request
MOST_NAMED = 20  # topics of an exchange, in its span


class Spans:
    """add(batch), close(connection), then finish(). Raises KwireError without the libraries or for what is no URL."""

    def __init__(self, url: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise KwireError(MISSING) from None
        exporter = OTLPSpanExporter(endpoint=endpoint(url))
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "kwire", "service.version": __version__}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, QUEUE, max_export_batch_size=AT_ONCE))
        self._tracer = self._provider.get_tracer("kwire", __version__)
        self._open: dict[int, tuple[Any, Any, ConnectionInfo]] = {}  # its span, and the context that holds it

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        for exchange in batch:
            self._add(exchange)

    def _add(self, exchange: Exchange) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        first, answer = exchange.first, exchange.response
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        span = self._tracer.start_span(
            f"{exchange.api}{version}", self._within(exchange.connection, exchange.time), SpanKind.CLIENT,
            _attributes(exchange), start_time=exchange.time,
        )  # fmt: skip
        if exchange.error is not None:
            span.set_status(Status(StatusCode.ERROR, error_name(exchange.error)))
        elif answer is None and not exchange.silent:
            span.set_status(Status(StatusCode.ERROR, "no answer"))
        span.end(max(first.last_time if answer is None else answer.last_time, exchange.time))

    def _within(self, connection: ConnectionInfo, time: int) -> Any:
        known = self._open.get(id(connection))
        if known is None:
            from opentelemetry.trace import set_span_in_context

            client, broker = connection.ends
            said = {"network.peer.address": broker, "client.address": client, "messaging.system": "kafka"}
            begun = min(connection.tcp.first_time, time)
            span = self._tracer.start_span(connection.name, None, attributes=said, start_time=begun)
            known = self._open[id(connection)] = span, set_span_in_context(span), connection
        return known[1]

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        known = self._open.pop(id(connection), None)
        if known is not None:
            known[0].set_attribute("kafka.client_id", clean(connection.client_id or ""))
            known[0].end(connection.tcp.last_time)

    def finish(self) -> None:
        """Sends what is left; connections that are open end here."""
        for span, _, connection in self._open.values():
            span.end(connection.tcp.last_time)
        self._open.clear()
        self._provider.shutdown()


def _attributes(exchange: Exchange) -> dict[str, Any]:
    """By the semantic conventions for messaging where they have a name for it."""
    about, request, response = exchange.about, exchange.request, exchange.response
    said: dict[str, Any] = {
        "messaging.system": "kafka", "kafka.api": exchange.api, "kafka.api_version": exchange.api_version,
        "kafka.correlation_id": exchange.correlation_id, "messaging.client.id": exchange.client_id,
        "messaging.consumer.group.name": ", ".join(about.groups[:MOST_NAMED]) or None,
        "messaging.destination.name": list(about.topics)[:MOST_NAMED],
        "server.address": exchange.connection.ends[1], "kafka.packet": exchange.first.packet,
        "kafka.request.size": None if request is None else request.size + 4,
        "kafka.response.size": None if response is None else response.size + 4,
        "error.type": None if exchange.error is None else error_name(exchange.error),
    }  # fmt: skip
    return {name: _clean(value) for name, value in said.items() if value not in (None, [])}


def _clean(value: Any) -> Any:
    if isinstance(value, list):
        return [clean(text) for text in value]
    return clean(value) if isinstance(value, str) else value


def endpoint(url: str) -> str:
    """Where spans go: a URL without a path is a collector's, whose path is /v1/traces. Raises KwireError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise KwireError(f"--otlp takes a URL of OTLP over HTTP, as http://localhost:4318, and not {url}")
    return urlunsplit(parts._replace(path="/v1/traces")) if parts.path in ("", "/") else url
