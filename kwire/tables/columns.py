"""The tables and their columns, the same wherever they appear: in files, in SQL, in Python.

Times are timestamps in UTC; beside each stands the same as ns since the Unix epoch, NAME_ns, for who reckons with it.
Sizes are bytes. The first columns of a table say where a row comes from; (capture, connection, index) finds the message
again, with kwire decode CAPTURE --connection CONNECTION --index INDEX.
"""

from __future__ import annotations

Column = tuple[str, str, str]  # name, type, what it is


def _time(name: str, what: str) -> list[Column]:
    """A time, and the same as an integer."""
    return [(name, "timestamp", what), (f"{name}_ns", "int64", "the same, ns since 1970-01-01 UTC")]


PLACE: list[Column] = [
    ("capture", "string", "the capture's file name, or the interface"),
    ("connection", "string", "client>broker#epoch"),
]
EXCHANGE: list[Column] = [
    *PLACE,
    *_time("time", "the request's first byte"),
    ("api_key", "int16", "the API's number"),
    ("api", "string", "its name"),
    ("api_version", "int16", "the version that the request asked in"),
    ("correlation_id", "int32", "pairs request and response"),
    ("client_id", "string", "as the client calls itself"),
]
ERROR: list[Column] = [
    ("error_code", "int16", "the first error code that is not zero"),
    ("error", "string", "its name"),
]

COLUMNS: dict[str, list[Column]] = {
    "messages": [
        *PLACE,
        ("kind", "string", "request or response"),
        ("index", "int64", "the frame's number in its stream, from 0"),
        ("position", "int64", "where the frame begins in its stream"),
        *_time("time", "the packet with the first byte"),
        *_time("last_time", "the packet with the last byte"),
        ("packet", "int64", "the number of the packet with the first byte, as kwire decode --frame takes it"),
        ("last_packet", "int64", "that of the packet with the last byte"),
        ("size", "int32", "what the size prefix says; the frame is 4 bytes longer"),
        ("api_key", "int16", "of a response, from its request"),
        ("api", "string", "the API's name"),
        ("api_version", "int16", "of a response, from its request"),
        ("header_version", "int8", "0 to 2 of requests, 0 or 1 of responses"),
        ("correlation_id", "int32", "pairs request and response"),
        ("client_id", "string", "of a response, from its request"),
        *ERROR,
        ("errors", "int32", "how many error codes are not zero"),
        ("latency_ns", "int64", "on a response: its first byte's time less its request's last byte's"),
        ("quality", "string", "ok, trailing, truncated, gap, orphan, malformed, unsupported, inferred, opaque"),
        ("note", "string", "why, when quality is not ok"),
    ],
    "exchanges": [
        *EXCHANGE,
        ("request_index", "int64", "the request's number in its stream; null of an orphan"),
        ("request_size", "int32", "its size prefix"),
        ("request_packet", "int64", "the packet with its first byte"),
        ("response_index", "int64", "null without an answer"),
        ("response_size", "int32", "its size prefix"),
        ("response_packet", "int64", "the packet with its first byte"),
        *_time("response_time", "the response's first byte"),
        ("latency_ns", "int64", "from the request's last byte to the response's first"),
        (
            "held_ns",
            "int64",
            "of that, what was meant: empty fetches up to max_wait_ms; joins, syncs: all",
        ),
        ("throttle_ns", "int64", "how long the broker bids the client wait for its quota"),
        *ERROR,
        ("errors", "int32", "how many error codes are not zero"),
        ("group", "string", "whose request it is about; of several the first"),
        ("transactional_id", "string", "of a transactional producer"),
        ("acks", "int16", "Produce: 0 none, 1 the leader's, -1 of all in-sync replicas"),
        ("isolation_level", "string", "Fetch, ListOffsets: read_uncommitted, read_committed"),
        ("max_wait_ms", "int32", "Fetch: how long the broker may wait for records"),
        ("rack", "string", "the client's, as it asks for a near replica"),
        ("outcome", "string", "ok, error, no answer, no answer wanted, orphan"),
        ("note", "string", "why there is no answer, or what is wrong with a frame"),
    ],
    "partitions": [
        *EXCHANGE,
        ("group", "string", "OffsetCommit, OffsetFetch: the group"),
        ("topic", "string", "its name, or its id where no name is known"),
        ("topic_id", "string", "Kafka's 22 characters; null where only names are used"),
        ("partition", "int32", "its number"),
        ("offset", "int64", "Produce: base offset given; Fetch: offset asked; ListOffsets: found; commits: committed"),
        ("timestamp", "int64", "ListOffsets: the timestamp asked for, ms; -1 latest, -2 earliest"),
        ("high_watermark", "int64", "Fetch: of the partition"),
        ("last_stable_offset", "int64", "Fetch: behind which transactions are open"),
        ("log_start_offset", "int64", "Produce, Fetch: of the partition's first record"),
        ("preferred_read_replica", "int32", "Fetch: the broker that is nearer; null where it is this one"),
        ("bytes", "int64", "of records"),
        ("batches", "int32", "of records, whole ones"),
        ("records", "int64", "as their batches count them"),
        ("compression", "string", "of the first batch"),
        *ERROR,
    ],
    "batches": [
        *EXCHANGE,
        ("topic", "string", "as above"),
        ("partition", "int32", "its number"),
        ("number", "int32", "of the batch in its partition's records, from 0"),
        ("base_offset", "int64", "of its first record; a producer begins with 0"),
        ("last_offset", "int64", "of its last record"),
        ("records", "int32", "as the header counts them; null of messages of magic 0 and 1"),
        ("bytes", "int32", "the whole batch"),
        ("magic", "int8", "2, or 0 and 1 of message sets"),
        ("compression", "string", "none, gzip, snappy, lz4, zstd"),
        ("timestamp_type", "string", "create or append"),
        ("first_timestamp", "int64", "ms"),
        ("max_timestamp", "int64", "ms"),
        ("producer_id", "int64", "null without one"),
        ("producer_epoch", "int16", "null without one"),
        ("base_sequence", "int32", "null without one"),
        ("is_transactional", "bool", "part of a transaction"),
        ("is_control", "bool", "holds a marker"),
        ("crc_ok", "bool", "whether the checksum fits"),
    ],
    "group_events": [
        *EXCHANGE,
        ("latency_ns", "int64", "how long the answer took"),
        ("group", "string", "the group"),
        ("group_type", "string", "classic, consumer (KIP-848), share (KIP-932), streams (KIP-1071)"),
        ("member", "string", "the member's id: the one given out, else the one sent"),
        ("instance", "string", "group.instance.id of a static member"),
        ("generation", "int32", "generation, or member epoch: the one answered, else the one sent"),
        ("protocol", "string", "the assignor chosen"),
        ("leader", "string", "JoinGroup: the leader's member id"),
        ("members", "int32", "JoinGroup: how many the leader is told"),
        ("session_timeout_ms", "int32", "as the member asked"),
        ("rebalance_timeout_ms", "int32", "as the member asked"),
        *ERROR,
    ],
    "clients": [
        ("client_id", "string", "as the client calls itself"),
        ("software", "string", "from ApiVersions v3 on"),
        ("software_version", "string", "likewise"),
        ("broker_itself", "bool", "a broker that speaks to itself or another"),
        ("addresses", "list<string>", "where it comes from"),
        ("brokers", "list<string>", "whom it asks"),
        ("connections", "int64", "how many"),
        ("exchanges", "int64", "how many"),
        ("errors", "int64", "exchanges with an error"),
        *_time("first_time", "of its first request"),
        *_time("last_time", "of its last"),
        ("apis", "list<struct<api: string, versions: list<int16>>>", "what it speaks"),
        ("compressions", "list<string>", "what it produces with"),
        ("sasl_mechanisms", "list<string>", "how it logs in"),
        ("principals", "list<string>", "as whom"),
    ],
    "connections": [
        *PLACE,
        *_time("first_time", "the first packet with bytes, a SYN, a FIN or a RST"),
        *_time("last_time", "the last one"),
        ("exchanges", "int64", "how many"),
        ("what", "string", "Kafka, or what it is instead"),
        ("handshake_ns", "int64", "from its SYN to the answer: the way to the broker and back; null where not seen"),
        ("client_id", "string", "of the first request"),
        ("software", "string", "of the client"),
        ("software_version", "string", "of the client"),
        ("sasl_mechanism", "string", "how it logged in"),
        ("principal", "string", "as whom"),
        ("missing_bytes", "int64", "that the capture lacks"),
        ("repeated_bytes", "int64", "that came again"),
        ("skipped_bytes", "int64", "of which no frames could be made"),
        ("ending", "string", "closed, reset, open"),
    ],
    "quality": [
        *PLACE,
        *_time("time", "when; null where it is of the whole capture"),
        ("what", "string", "skipped, damaged, dropped, not Kafka"),
        ("kind", "string", "request or response: the stream"),
        ("position", "int64", "where in the stream"),
        ("bytes", "int64", "how many"),
        ("note", "string", "why"),
    ],
}
BODIES: list[Column] = [
    *PLACE,
    ("kind", "string", "request or response"),
    ("index", "int64", "the frame's number in its stream"),
    ("api", "string", "the API's name"),
    ("api_version", "int16", "of a response, from its request"),
    ("body", "string", "the body as JSON, as kwire read --body writes it"),
]
COLUMNS["bodies"] = BODIES
DEFAULT = tuple(name for name in COLUMNS if name != "bodies")
