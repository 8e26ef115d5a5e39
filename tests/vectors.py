"""What the official classes wrote, as fixtures/ keeps it, and ways to damage it."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

FIXTURES = Path(__file__).parents[1] / "fixtures"
ODD = (0, 1, 2, 126, 127, 128, 129, 200, 254, 255)  # as lengths: null, empty, the ends of a varint's bytes, below null
HUGE = ("7fff", "7fffffff", "80000000", "ffffffff", "fffffffe", "ffffffff0f", "8080808010")
VARINTS = ("8000", "8001", "8080", "8100", "fe01", "ffffffff0f", "ffffffff1f")  # longer than needed, or than allowed
IN_HEADERS = (8, 11, 16, 17, 22, 57, 60, 61)  # of a batch: its length, magic, checksum, attributes, count, first record
WAYS = ("flip", "odd", "any", "insert", "delete", "fill", "huge", "varint", "cut", "append")


@cache
def jsonl(path: str) -> list[dict[str, Any]]:
    """The lines of fixtures/PATH.jsonl.gz. All tests share them: none may change one."""
    text = gzip.decompress((FIXTURES / f"{path}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.split("\n") if line]  # not splitlines: strings hold U+2028


@cache
def vectors() -> dict[str, dict[int, list[bytes]]]:
    """The official vectors of every message, by its name and version."""
    found: dict[str, dict[int, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for file in ("requests", "responses", "data"):
        for row in jsonl(f"vectors/{file}"):
            found[row["name"]][row["version"]].append(bytes.fromhex(row["hex"]))
    return {name: dict(versions) for name, versions in found.items()}


def each(name: str) -> list[tuple[int, bytes]]:
    """The official vectors of one message, with their versions."""
    return [(version, data) for version, many in vectors()[name].items() for data in many]


def names() -> list[str]:
    """The messages that have official vectors, in order."""
    return sorted(vectors())


def damaged(data: bytes, rng: Random, often: Sequence[int] = ()) -> bytes:
    """The bytes with one to four changes: bits and bytes, more or fewer of them, lengths that lie, the rest cut off.
    often: the places of half of them."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at = rng.choice(often) if often and rng.random() < 0.5 else rng.randrange(len(out) + 1)
        match rng.choice(WAYS):
            case "flip":
                out[at : at + 1] = bytes(byte ^ 1 << rng.randrange(8) for byte in out[at : at + 1])
            case "odd":
                out[at : at + 1] = bytes([rng.choice(ODD)])
            case "any":
                out[at : at + 1] = rng.randbytes(1)
            case "insert":
                out[at:at] = rng.choice((bytes([rng.choice(ODD)]), rng.randbytes(rng.randrange(1, 5))))
            case "delete":
                del out[at : at + rng.randrange(1, 5)]
            case "fill":  # -1 as a length of so many bytes, or a varint that does not end
                size = rng.randrange(1, 6)
                out[at : at + size] = b"\xff" * size
            case "huge":
                huge = bytes.fromhex(rng.choice(HUGE))
                out[at : at + len(huge)] = huge
            case "varint":
                out[at : at + 1] = bytes.fromhex(rng.choice(VARINTS))
            case "cut":
                del out[at:]
            case "append":
                out.append(rng.choice(ODD))
    return bytes(out)
