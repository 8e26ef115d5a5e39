"""Client metrics: OTLP in every compression, and what is none."""

import json

import pytest

import kwire
from kwire.codec.annotate import annotate
from kwire.codec.library import builtin_library
from kwire.codec.span import Span
from kwire.payloads.open import open_payloads
from kwire.records.compression import NAMES, compress

NAME = "org.apache.kafka.consumer.fetch.rate"


def metrics() -> bytes:
    data = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2").MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name=NAME)
    metric.gauge.data_points.add().as_double = 1.5
    return bytes(data.SerializeToString())


def pushed(compression: int, content: bytes) -> Span:
    raw = kwire.encode("PushTelemetryRequest", 0, {"CompressionType": compression, "Metrics": content})
    span = annotate(builtin_library().plan("PushTelemetryRequest", 0), raw)
    opened = open_payloads(span, raw, "PushTelemetryRequest")
    return next(child for child in opened.children if child.name == "Metrics")


@pytest.mark.parametrize("codec", range(len(NAMES)))
def test_metrics_are_shown_as_json(codec: int) -> None:
    field = pushed(codec, compress(NAMES[codec], metrics()))
    (leaf,) = field.children
    assert str(field.text).startswith("OTLP, 1 metric")
    found = json.loads(str(leaf.value))
    assert found["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["name"] == NAME
    assert leaf.end == (field.end if codec == 0 else len(field.buffer or b""))


@pytest.mark.parametrize(("codec", "content"), [(1, b"no gzip"), (9, b"x"), (0, b"\xff\xff\xff")])
def test_what_is_none_stays_bytes_with_a_note(codec: int, content: bytes) -> None:
    field = pushed(codec, content)
    assert field.value == content
    assert field.children == ()
    assert field.note
