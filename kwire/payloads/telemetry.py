"""Client metrics (KIP-714): what PushTelemetry carries, OTLP metrics as protobuf, compressed as a field beside it says.

The published opentelemetry-proto package reads them; it comes with the extra kwire[otlp]. Without it, or where the
bytes are not that, the field stays bytes with a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.codec.annotate import count_bytes
from kwire.codec.span import Span
from kwire.errors import KwireError
from kwire.records.compression import NAMES, decompress

LIMIT = 2 * 1024 * 1024  # bytes of metrics that are opened; as objects they take a hundred times as much


def metrics(span: Span, _data: bytes, around: Sequence[Span]) -> Span:
    """The Metrics field of PushTelemetryRequest: one leaf with the metrics as JSON over the plain bytes."""
    assert isinstance(span.value, bytes)
    codec = next((child.value for child in around[0].children if child.name == "CompressionType"), 0) if around else 0
    name = NAMES[codec] if isinstance(codec, int) and 0 <= codec < len(NAMES) else f"codec {codec}"
    try:
        plain = decompress(name, span.value, LIMIT)
    except KwireError as error:
        return span._replace(note=str(error))
    try:
        text, summary = _read(plain)
    except ImportError:
        return span._replace(text="OTLP metrics; pip install 'kwire[otlp]' shows them")
    except ValueError as error:
        return span._replace(note=f"not OTLP metrics: {error}")
    if name == "none":
        start = span.end - len(plain)
        return span._replace(text=summary, children=(Span("otlp", "text", start, span.end, text),))
    inside = Span("otlp", "text", 0, len(plain), text)
    return span._replace(text=f"{summary}, {name}, {count_bytes(len(plain))} inside", children=(inside,), buffer=plain)


def _read(plain: bytes) -> tuple[str, str]:
    """The metrics as JSON text, and how many there are. Raises ImportError, ValueError."""
    from google.protobuf.json_format import MessageToJson
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    found = MetricsData()
    try:
        found.ParseFromString(plain)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    count = sum(len(scope.metrics) for resource in found.resource_metrics for scope in resource.scope_metrics)
    return MessageToJson(found, indent=None), f"OTLP, {count} metric{'' if count == 1 else 's'}"
