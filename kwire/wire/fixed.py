"""Types of fixed size: their struct codes (big-endian), sizes and ranges."""

from __future__ import annotations

from struct import Struct

CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
PACKED = {name: Struct(">" + code) for name, code in CODES.items()}
SIZES = {name: packed.size for name, packed in PACKED.items()} | {"uuid": 16}
RANGES = {
    name: (0, (1 << 8 * SIZES[name]) - 1)
    if name[0] == "u"
    else (-(1 << 8 * SIZES[name] - 1), (1 << 8 * SIZES[name] - 1) - 1)
    for name in CODES
    if "int" in name
}
