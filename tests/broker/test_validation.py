"""Batches as a topic's configuration wants them."""

from __future__ import annotations

import pytest

from kwire.broker.configs import TOPIC, BatchRules, Configs
from kwire.broker.refused import Refused
from kwire.broker.validation import RecordsRefused, validated
from kwire.records import build, read_records
from kwire.schema import codes


def rules(**values: object) -> BatchRules:
    made = Configs()
    made.change(TOPIC, "t", [(name.replace("_", "."), 0, str(value)) for name, value in values.items()])
    return made.rules("t")


def test_times_must_be_near() -> None:
    data = build([(None, b"x"), (None, b"y")], timestamp=10_000_000)
    assert validated(rules(), ("t", 0), data, 10_000_000)[0] == data
    for now, where in ((10_000_000 - 3_600_001, "[-1, 9999999]"), (0, "[-1, 3600000]")):
        with pytest.raises(RecordsRefused) as refused:
            validated(rules(), ("t", 0), data, now)
        assert refused.value.code == codes.INVALID_TIMESTAMP
        assert refused.value.errors[0][1].endswith(where)
        assert len(refused.value.errors) == 2
    old = rules(message_timestamp_before_max_ms=5)
    assert validated(old, ("t", 0), data, 10_000_005)
    with pytest.raises(RecordsRefused):
        validated(old, ("t", 0), data, 10_000_006)
    stamped = rules(message_timestamp_type="LogAppendTime")
    assert validated(stamped, ("t", 0), data, 0)


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_compression_is_the_topics(wanted: str) -> None:
    given = build([(b"k", b"v" * 100)], compression="none" if wanted != "uncompressed" else "gzip", producer_id=5)
    data, header = validated(rules(compression_type=wanted), ("t", 0), given, 0)
    assert header.compression == wanted.replace("uncompressed", "none")
    (batch,) = read_records(data)
    assert (batch.producer_id, batch.crc_ok, batch.records[0].value) == (5, True, b"v" * 100)
    assert validated(rules(compression_type="producer"), ("t", 0), given, 0)[0] is given


@pytest.mark.parametrize(("kind", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 17), ("zstd", -50, 22)])
def test_and_so_is_its_level(kind: str, low: int, high: int) -> None:
    text = " ".join(f"{n * n % 997} and {n % 31}" for n in range(9_000)).encode()
    given = build([(b"k", text)])
    sizes = []
    for level in (low, high):
        data, _ = validated(rules(compression_type=kind, **{f"compression_{kind}_level": level}), ("t", 0), given, 0)
        assert read_records(data)[0].records[0].value == text
        sizes.append(len(data))
    assert sizes[0] > sizes[1]
    for level in (0 if kind == "gzip" else low - 200_000, high + 1):
        with pytest.raises(Refused, match="Value must be"):
            rules(**{f"compression_{kind}_level": level})


def test_size() -> None:
    with pytest.raises(Refused) as refused:
        validated(rules(max_message_bytes=10), ("t", 0), build([(None, b"x")]), 0)
    assert refused.value.code == codes.MESSAGE_TOO_LARGE
