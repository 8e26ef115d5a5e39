"""What sniff and proxy share to be watched by Prometheus and OpenTelemetry: --metrics, --metrics-values, --otlp."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from kwire.cli.captures import Command, bundled, with_options

if TYPE_CHECKING:
    from kwire.monitor.meters import Meters
    from kwire.monitor.prometheus import Exporter
    from kwire.monitor.spans import Spans
    from kwire.session.batch import ExchangeBatch
    from kwire.session.connection_info import ConnectionInfo


def monitoring_options(command: Command) -> Command:
    """Who else is told: the command gets it as monitoring."""
    options = [
        click.option("--metrics", metavar="[HOST]:PORT",
                     help="Serve metrics for Prometheus there; :9469 is on all addresses."),
        click.option("--metrics-values", type=click.IntRange(1), default=100, metavar="N", show_default=True,
                     help="So many client ids, brokers and groups get metrics of their own; the others are \"other\"."),
        click.option("--otlp", metavar="URL", help="Send exchanges as OpenTelemetry spans: http://localhost:4318."),
    ]  # fmt: skip
    return with_options(bundled(command, "monitoring", Monitoring), options)


class Monitoring(NamedTuple):
    """What monitoring_options gave."""

    metrics: str | None
    metrics_values: int
    otlp: str | None

    @property
    def wanted(self) -> bool:
        """Whether anybody is told."""
        return bool(self.metrics or self.otlp)

    @contextlib.contextmanager
    def started(self) -> Iterator[Monitors]:
        """Serves and sends until the block ends."""
        monitors = Monitors()
        try:
            if self.otlp:
                from kwire.monitor.spans import Spans

                monitors.spans = Spans(self.otlp)
            if self.metrics:
                from kwire.monitor.meters import Meters
                from kwire.monitor.prometheus import Exporter

                host, port = _address(self.metrics)
                monitors.meters = Meters(self.metrics_values)
                monitors.exporter = Exporter(monitors.meters, host, port)
                where = f"{host or '0.0.0.0'}:{monitors.exporter.port}"
                print(f"kwire: metrics at http://{where}/metrics", file=sys.stderr, flush=True)
            yield monitors
        finally:
            monitors.finish()


class Monitors:
    """Told of batches and of connections that are over."""

    def __init__(self) -> None:
        self.meters: Meters | None = None
        self.exporter: Exporter | None = None
        self.spans: Spans | None = None

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if self.meters is not None and self.exporter is not None:
            with self.exporter.lock:
                self.meters.add(batch)
        if self.spans is not None:
            self.spans.add(batch)

    def close(self, connection: ConnectionInfo) -> None:
        """A connection that is over."""
        if self.meters is not None and self.exporter is not None:
            with self.exporter.lock:
                self.meters.close(connection)
        if self.spans is not None:
            self.spans.close(connection)

    def beside(self, other: Callable[[ConnectionInfo], None]) -> Callable[[ConnectionInfo], None]:
        """What tells another one too of connections that are over."""

        def close(connection: ConnectionInfo) -> None:
            other(connection)
            self.close(connection)

        return close

    def finish(self) -> None:
        """All is over."""
        if self.exporter is not None:
            self.exporter.close()
        if self.spans is not None:
            self.spans.finish()


def _address(text: str) -> tuple[str, int]:
    """Host and port; no host is all addresses."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--metrics takes an address as :9469 or 127.0.0.1:9469, and not {text}")
    return host.strip("[]"), int(port)
