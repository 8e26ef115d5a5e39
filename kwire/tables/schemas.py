"""The tables and their columns, the same wherever they appear: in files, in SQL, in Python.

Times are ns since the Unix epoch (UTC), sizes bytes. The first columns of a table say where a row comes from; (capture,
connection, index) finds the message again, with kwire decode CAPTURE --connection CONNECTION --index INDEX.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

Column = tuple[str, Any, str]
TEXT, LONG, INT, SHORT, BYTE, FLAG = pa.string(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.bool_()

PLACE: list[Column] = [
    ("capture", TEXT, "the capture's file name, or the interface"),
    ("connection", TEXT, "client>broker#epoch"),
]
EXCHANGE: list[Column] = [
    *PLACE,
    ("time", LONG, "the request's first byte"),
    ("api_key", SHORT, "the API's number"),
    ("api", TEXT, "its name"),
    ("api_version", SHORT, "the version that the request asked in"),
    ("correlation_id", INT, "pairs request and response"),
    ("client_id", TEXT, "as the client calls itself"),
]
ERROR: list[Column] = [
    ("error_code", SHORT, "the first error code that is not zero"),
    ("error", TEXT, "its name"),
]

COLUMNS: dict[str, list[Column]] = {
    "messages": [
        *PLACE,
        ("kind", TEXT, "request or response"),
        ("index", LONG, "the frame's number in its stream, from 0"),
        ("position", LONG, "where the frame begins in its stream"),
        ("time", LONG, "the packet with the first byte"),
        ("last_time", LONG, "the packet with the last byte"),
        ("size", INT, "what the size prefix says; the frame is 4 bytes longer"),
        ("api_key", SHORT, "of a response, from its request"),
        ("api", TEXT, "the API's name"),
        ("api_version", SHORT, "of a response, from its request"),
        ("header_version", BYTE, "0 to 2 of requests, 0 or 1 of responses"),
        ("correlation_id", INT, "pairs request and response"),
        ("client_id", TEXT, "of a response, from its request"),
        *ERROR,
        ("errors", INT, "how many error codes are not zero"),
        ("latency_ns", LONG, "on a response: its first byte's time less its request's last byte's"),
        ("quality", TEXT, "ok, trailing, truncated, gap, orphan, malformed, unsupported, inferred, opaque"),
        ("note", TEXT, "why, when quality is not ok"),
    ],
    "exchanges": [
        *EXCHANGE,
        ("request_index", LONG, "the request's number in its stream; null of an orphan"),
        ("request_size", INT, "its size prefix"),
        ("response_index", LONG, "null without an answer"),
        ("response_size", INT, "its size prefix"),
        ("response_time", LONG, "the response's first byte"),
        ("latency_ns", LONG, "from the request's last byte to the response's first"),
        *ERROR,
        ("errors", INT, "how many error codes are not zero"),
        ("outcome", TEXT, "ok, error, no answer, no answer wanted, orphan"),
        ("note", TEXT, "why there is no answer, or what is wrong with a frame"),
    ],
    "partitions": [
        *EXCHANGE,
        ("topic", TEXT, "its name, or its id where no name is known"),
        ("topic_id", TEXT, "Kafka's 22 characters; null where only names are used"),
        ("partition", INT, "its number"),
        ("offset", LONG, "Produce: base offset given; Fetch: offset asked; ListOffsets: found; commits: committed"),
        ("timestamp", LONG, "ListOffsets: the timestamp asked for, ms; -1 latest, -2 earliest"),
        ("high_watermark", LONG, "Fetch: of the partition"),
        ("bytes", LONG, "of records"),
        ("batches", INT, "of records, whole ones"),
        ("records", LONG, "as their batches count them"),
        ("compression", TEXT, "of the first batch"),
        *ERROR,
    ],
    "batches": [
        *EXCHANGE,
        ("topic", TEXT, "as above"),
        ("partition", INT, "its number"),
        ("number", INT, "of the batch in its partition's records, from 0"),
        ("base_offset", LONG, "of its first record; a producer begins with 0"),
        ("last_offset", LONG, "of its last record"),
        ("records", INT, "as the header counts them; null of messages of magic 0 and 1"),
        ("bytes", INT, "the whole batch"),
        ("magic", BYTE, "2, or 0 and 1 of message sets"),
        ("compression", TEXT, "none, gzip, snappy, lz4, zstd"),
        ("timestamp_type", TEXT, "create or append"),
        ("first_timestamp", LONG, "ms"),
        ("max_timestamp", LONG, "ms"),
        ("producer_id", LONG, "null without one"),
        ("producer_epoch", SHORT, "null without one"),
        ("base_sequence", INT, "null without one"),
        ("is_transactional", FLAG, "part of a transaction"),
        ("is_control", FLAG, "holds a marker"),
        ("crc_ok", FLAG, "whether the checksum fits"),
    ],
    "group_events": [
        *EXCHANGE,
        ("latency_ns", LONG, "how long the answer took"),
        ("group", TEXT, "the group"),
        ("group_type", TEXT, "classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071)"),
        ("member", TEXT, "the member's id: the one given out, else the one sent"),
        ("instance", TEXT, "group.instance.id of a static member"),
        ("generation", INT, "generation, or member epoch: the one answered, else the one sent"),
        ("protocol", TEXT, "the assignor chosen"),
        ("leader", TEXT, "JoinGroup: the leader's member id"),
        ("members", INT, "JoinGroup: how many the leader is told"),
        ("session_timeout_ms", INT, "as the member asked"),
        ("rebalance_timeout_ms", INT, "as the member asked"),
        *ERROR,
    ],
    "clients": [
        ("client_id", TEXT, "as the client calls itself"),
        ("software", TEXT, "from ApiVersions v3 on"),
        ("software_version", TEXT, "likewise"),
        ("broker_itself", FLAG, "a broker that speaks to itself or another"),
        ("addresses", pa.list_(TEXT), "where it comes from"),
        ("brokers", pa.list_(TEXT), "whom it asks"),
        ("connections", LONG, "how many"),
        ("exchanges", LONG, "how many"),
        ("errors", LONG, "exchanges with an error"),
        ("first_time", LONG, "of its first request"),
        ("last_time", LONG, "of its last"),
        ("apis", pa.list_(pa.struct([("api", TEXT), ("versions", pa.list_(SHORT))])), "what it speaks"),
        ("compressions", pa.list_(TEXT), "what it produces with"),
        ("sasl_mechanisms", pa.list_(TEXT), "how it logs in"),
        ("principals", pa.list_(TEXT), "as whom"),
    ],
    "connections": [
        *PLACE,
        ("first_time", LONG, "the first packet with bytes, a SYN, a FIN or a RST"),
        ("last_time", LONG, "the last one"),
        ("exchanges", LONG, "how many"),
        ("what", TEXT, "Kafka, or what it is instead"),
        ("client_id", TEXT, "of the first request"),
        ("software", TEXT, "of the client"),
        ("software_version", TEXT, "of the client"),
        ("sasl_mechanism", TEXT, "how it logged in"),
        ("principal", TEXT, "as whom"),
        ("missing_bytes", LONG, "that the capture lacks"),
        ("repeated_bytes", LONG, "that came again"),
        ("skipped_bytes", LONG, "of which no frames could be made"),
        ("ending", TEXT, "closed, reset, open"),
    ],
    "quality": [
        *PLACE,
        ("time", LONG, "when; null where it is of the whole capture"),
        ("what", TEXT, "skipped, damaged, dropped, not Kafka"),
        ("kind", TEXT, "request or response: the stream"),
        ("position", LONG, "where in the stream"),
        ("bytes", LONG, "how many"),
        ("note", TEXT, "why"),
    ],
}
BODIES: list[Column] = [
    *PLACE,
    ("kind", TEXT, "request or response"),
    ("index", LONG, "the frame's number in its stream"),
    ("api", TEXT, "the API's name"),
    ("api_version", SHORT, "of a response, from its request"),
    ("body", TEXT, "the body as JSON, as kwire read --body writes it"),
]
COLUMNS["bodies"] = BODIES
DEFAULT = tuple(name for name in COLUMNS if name != "bodies")

SCHEMAS: dict[str, pa.Schema] = {
    name: pa.schema([pa.field(column, kind) for column, kind, _ in columns]) for name, columns in COLUMNS.items()
}
