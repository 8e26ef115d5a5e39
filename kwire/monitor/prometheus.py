"""The meters as Prometheus reads them: an HTTP server in a thread, whose answers are made when they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kwire import __version__
from kwire.errors import KwireError
from kwire.monitor.meters import BOUNDS, Histogram, Meters, cumulated

LABELS = ("api", "client_id", "broker")
MISSING = "--metrics needs prometheus_client: pip install 'kwire[metrics]'"
COUNTERS = {  # metric: (what Meters calls it, labels, help)
    "kwire_exchanges": ("exchanges", LABELS, "Requests with their answers, and those without one."),
    "kwire_request_bytes": ("sent", LABELS, "Bytes of requests, size prefix included."),
    "kwire_response_bytes": ("got", LABELS, "Bytes of responses, size prefix included."),
    "kwire_unanswered": ("unanswered", LABELS, "Requests that wanted an answer and got none."),
    "kwire_errors": ("errors", (*LABELS, "error"), "Answers with an error, by the first one in them."),
    "kwire_throttled": ("throttled", LABELS, "Answers that throttle the client."),
    "kwire_throttle_seconds": ("throttle", LABELS, "How long clients were told to wait."),
    "kwire_rebalances": ("rebalances", ("group",), "Generations of groups, and epochs of their members."),
    "kwire_findings": ("findings", ("detector", "severity", "client_id"), "What kwire doctor finds, minute by minute."),
}  # fmt: skip
HISTOGRAMS = {
    "kwire_latency_seconds": ("latency", "From a request's last byte to its answer's first one."),
    "kwire_held_seconds": ("held", "The same of requests that brokers keep until something happens: Fetch, JoinGroup."),
}
NAMES = (
    *(f"{name}_total" for name in (*COUNTERS, "kwire_connections_closed")),
    *(f"{name}_{end}" for name in HISTOGRAMS for end in ("bucket", "sum", "count")), "kwire_build_info",
)  # fmt: skip # as dashboards and rules have them


class Exporter:
    """Serves meters at an address, port 0 being any free one, until close(). lock: held while they change. Raises
    KwireError without prometheus_client, OSError for a port that is taken."""

    def __init__(self, meters: Meters, host: str, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry, start_http_server
        except ImportError:
            raise KwireError(MISSING) from None
        self._meters = meters
        self.lock = threading.Lock()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server, self._thread = start_http_server(port, host, registry)
        self.port: int = self._server.server_port

    def collect(self) -> list[Any]:
        """As the client library asks for it."""
        with self.lock:
            return [*self._counters(), *self._histograms(), *self._rest()]

    def describe(self) -> list[Any]:
        """Nothing, so that registering asks for no values."""
        return []

    def _counters(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily

        for name, (attribute, labels, what) in COUNTERS.items():
            family = CounterMetricFamily(name, what, labels=labels)
            values: Mapping[Any, float] = getattr(self._meters, attribute)
            for label, value in values.items():
                family.add_metric([label] if isinstance(label, str) else list(label), value)
            yield family

    def _histograms(self) -> Iterator[Any]:
        from prometheus_client.core import HistogramMetricFamily

        for name, (attribute, what) in HISTOGRAMS.items():
            family = HistogramMetricFamily(name, what, labels=LABELS)
            found: Mapping[Any, Histogram] = getattr(self._meters, attribute)
            for label, histogram in found.items():
                family.add_metric(list(label), _buckets(histogram.counts), histogram.total)
            yield family

    def _rest(self) -> Iterable[Any]:
        from prometheus_client.core import CounterMetricFamily, InfoMetricFamily

        closed = CounterMetricFamily("kwire_connections_closed", "Connections that are over.")
        closed.add_metric([], self._meters.connections)
        return closed, InfoMetricFamily("kwire_build", "This kwire.", value={"version": __version__})

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    bounds = [*(repr(bound) for bound in BOUNDS), "+Inf"]
    return list(zip(bounds, cumulated(counts), strict=True))
