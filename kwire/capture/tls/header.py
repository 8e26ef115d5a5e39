"""The header of a TLS record, as it stands in the open: type, version, length (RFC 8446 section 5.1)."""

from __future__ import annotations

from struct import Struct

HEADER = 5  # bytes
CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23  # types of records
LARGEST_CONTENT = 16384  # bytes; what holds more is opened by Protection.open() alone, as it is odd
LARGEST = 16384 + 2048  # bytes that a record may hold behind its header (RFC 5246 section 6.2.3)

header_at = Struct(">BHH").unpack_from
