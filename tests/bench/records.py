"""Reading the records of a 1 MB batch beside kafka-python, in one run: as objects, as columns, and the codec alone.

    pip install '.[bench]' && python tests/bench/records.py

Each row is the median of rounds in which all contenders take turns, in milliseconds a batch, with kafka-python's time
over theirs, the median of the ratios within a round. All read every record before anything is timed; kwire's objects
check the checksum as well, which its columns and kafka-python's objects do not.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from kwire.records import build, read_records
from kwire.records.columns import columns
from kwire.records.compression import decompress

ROUNDS = 15
COUNT = 8700  # records of about 100 bytes in value and key: 1 MB
HEADER = 61
WORDS = [b'"order": 100', b'"state": "paid"', b'"city": "Berlin"', b'"sum": 17.50', b'"items": [1, 2]', b"{}", b", "]

Timed = Callable[[], Any]


def some_records(varied: bool) -> list[tuple[bytes, bytes]]:
    """Pairs of 100 bytes, or of 60 to 140."""
    draw = random.Random(1)
    out = []
    for n in range(COUNT):
        size = draw.randrange(60, 141) if varied else 100
        key = b"key-%06d" % n
        text = b"".join(draw.choices(WORDS, k=20)) + draw.randbytes(8)
        out.append((key, (text * 2)[: size - len(key)]))
    return out


def timed(call: Timed, number: int) -> float:
    """Milliseconds a call."""
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number * 1e3


def row(label: str, contenders: dict[str, Timed]) -> None:
    """All contenders in turn, round after round."""
    numbers = {"kafka-python": 1, "objects": 2, "columns": 10, "codec": 10}
    rounds = [{name: timed(call, numbers[name]) for name, call in contenders.items()} for _ in range(ROUNDS)]
    cells = [f"{label:<24}"]
    for name in contenders:
        cell = f"{name} {statistics.median(one[name] for one in rounds):7.3f} ms"
        if name in ("objects", "columns"):
            ratio = statistics.median(one["kafka-python"] / one[name] for one in rounds)
            cell += f" ({ratio:4.1f} ×)"
        cells.append(cell)
    print("   ".join(cells))


def kafka_python(raw: bytes) -> int:
    """Every record as an object; how many there were."""
    from kafka.record.memory_records import MemoryRecords

    batches, count = MemoryRecords(raw), 0
    while batches.has_next():
        for _ in batches.next_batch():
            count += 1
    return count


def bench(varied: bool, codec: str) -> None:
    raw = build(some_records(varied), timestamp=1_700_000_000_000, compression=codec)
    packed = raw[HEADER:]
    counts = (kafka_python(raw), len(read_records(raw)[0].records), len(columns(raw).offsets))
    if counts != (COUNT,) * 3:
        raise SystemExit(f"{codec}: the contenders do not agree on the records: {counts}")
    contenders: dict[str, Timed] = {
        "kafka-python": lambda: kafka_python(raw),
        "objects": lambda: read_records(raw),
        "columns": lambda: columns(raw),
    }
    if codec != "none":
        contenders["codec"] = lambda: decompress(codec, packed)
    sizes = "60-140 bytes" if varied else "100 bytes"
    row(f"{sizes}, {codec}, {len(raw) / 1e6:.2f} MB", contenders)


def main() -> None:
    for varied in (False, True):
        for codec in ("none", "lz4", "zstd"):
            bench(varied, codec)


if __name__ == "__main__":
    main()
