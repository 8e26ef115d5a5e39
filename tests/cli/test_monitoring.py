"""--metrics and --otlp: what a proxy's traffic says to Prometheus and to a collector of OpenTelemetry."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kwire import guide
from kwire.errors import Exit
from kwire.monitor.prometheus import NAMES
from kwire.testing import Broker

MAIN = [sys.executable, "-c", "from kwire.cli.main import main; main()", "proxy"]
METADATA = bytes.fromhex("0000000e 0003 0001 00000007 ffff ffffffff")
WAIT = 60


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Its URL, and the path and body of each POST that it got."""
    got: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            got.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join(WAIT)


def _proxied(*options: str) -> tuple[str, str]:
    """What the metrics say after ten requests to a proxy, if they are served, and what the proxy prints."""
    import socket

    with Broker() as broker:
        command = [*MAIN, broker.address, "--listen", "127.0.0.1:0", "--quiet", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if "listening" in line:
                    break
            [port] = re.findall(r"listening: 127\.0\.0\.1:(\d+)", said)
            with socket.create_connection(("127.0.0.1", int(port)), WAIT) as sock:
                for _ in range(10):
                    sock.sendall(METADATA)
                    assert sock.recv(10_000)
            served = re.findall(r"metrics at (\S+)", said)
            text = _until(served[0], 'kwire_exchanges_total{api="Metadata"') if served else ""
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=WAIT)
        finally:
            process.kill()
        assert process.returncode == Exit.OK, err
        return text, out


def _until(url: str, wanted: str) -> str:
    import time

    until = time.monotonic() + WAIT
    while True:
        with urllib.request.urlopen(url, timeout=WAIT) as answer:
            text: str = answer.read().decode()
        if re.search(re.escape(wanted) + r".*\} 10\.0", text) or time.monotonic() > until:
            return text
        time.sleep(0.1)


@pytest.mark.slow
def test_metrics_of_a_proxy() -> None:
    text, out = _proxied("--metrics", "127.0.0.1:0")
    assert out == ""
    found = dict(re.findall(r'^(\w+)\{api="Metadata",broker="[^"]+",client_id=""\} (\S+)$', text, re.MULTILINE))
    assert float(found["kwire_exchanges_total"]) == 10
    assert float(found["kwire_request_bytes_total"]) == 10 * len(METADATA)
    assert float(found["kwire_latency_seconds_count"]) == 10


@pytest.mark.slow
def test_spans_of_a_proxy(collector: tuple[str, list[tuple[str, bytes]]]) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    url, got = collector
    _proxied("--otlp", url)
    assert {path for path, _ in got} == {"/v1/traces"}
    spans = [
        span
        for _, body in got
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    asked = [span for span in spans if span.name == "Metadata v1"]
    [root] = [span for span in spans if not span.parent_span_id]
    assert len(asked) == 10
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert {span.parent_span_id for span in asked} == {root.span_id}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


@pytest.mark.parametrize(
    "options", [("--metrics", "9469"), ("--metrics", ":x"), ("--otlp", "localhost:4318"), ("--otlp", "ftp://x")]
)
def test_what_is_no_address_is_refused(options: tuple[str, str], kwire: Any) -> None:
    before = signal.getsignal(signal.SIGINT)
    ran = kwire("proxy", "127.0.0.1:1", "--listen", "127.0.0.1:0", *options)
    assert (ran.status, signal.getsignal(signal.SIGINT)) == (Exit.USAGE, before)
    assert options[0] in ran.err


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((Path(guide.__file__).parent / "grafana.json").read_text("utf-8"))
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"\bkwire_\w+", target["expr"])}  # fmt: skip
    asked |= set(re.findall(r"\bkwire_\w+", json.dumps(dashboard["templating"])))
    assert asked - set(NAMES) == set()
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in NAMES}
    told = set(re.findall(r"`(kwire_\w+)`", guide.page("monitoring").text))
    assert told == bases
