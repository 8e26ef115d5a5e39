"""What bytes are that are not Kafka, and what a broker logs when it meets them.

A broker reads the first four bytes of anything as a size. What other protocols begin with makes well-known numbers:
"GET " is 1195725856, a TLS ClientHello 369295616. Sources of the signatures: RFC 9110 (methods), RFC 8446 section 5.1
(record header), RFC 4253 section 4.2, PROXY protocol specification section 2, ZooKeeper's admin guide (commands), AMQP
0-9-1 section 4.2.2, MQTT 3.1.1 section 3.1, the Redis serialization protocol.
"""

from __future__ import annotations

import re
from struct import error as StructError
from struct import unpack_from
from typing import NamedTuple

UNKNOWN = "not recognized"
MAX_REQUEST = 104857600  # socket.request.max.bytes, the broker's default


class Verdict(NamedTuple):
    """what: a few words; detail: what the bytes tell; size: the first four bytes as a size; advice: one sentence."""

    what: str
    detail: str
    size: int | None
    advice: str

    @property
    def known(self) -> bool:
        """Whether it is known what it is."""
        return self.what != UNKNOWN

    @property
    def logged(self) -> str | None:
        """What a broker's log says of a connection that begins so."""
        if self.size is None:
            return None
        if self.size < 0:
            return f"Invalid receive (size = {self.size})"
        if self.size > MAX_REQUEST:
            return f"Invalid receive (size = {self.size} larger than {MAX_REQUEST})"
        return None


HTTP = re.compile(rb"(GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) ([^ \r\n]{1,200})")
ZOOKEEPER = (b"ruok", b"stat", b"srvr", b"mntr", b"conf", b"cons", b"dump", b"envi", b"wchs", b"isro", b"imok")
LEAST_TEXT = 8  # bytes from which on printable ones are no accident
ZEROS = 64  # so many zeros are no message; a short answer without errors may be all zeros
CAPTURES = {
    b"\xd4\xc3\xb2\xa1": "pcap", b"\xa1\xb2\xc3\xd4": "pcap", b"\x4d\x3c\xb2\xa1": "pcap",
    b"\xa1\xb2\x3c\x4d": "pcap", b"\x0a\x0d\x0d\x0a": "pcapng",
}  # fmt: skip
TLS_KINDS = {20: "change cipher spec", 21: "alert", 22: "handshake", 23: "application data"}
TLS_ALERTS = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure", 42: "bad_certificate",
    43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error",
    70: "protocol_version", 71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback",
    90: "user_canceled", 109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
    116: "certificate_required", 120: "no_application_protocol",
}  # fmt: skip
HANDSHAKES = {1: "ClientHello", 2: "ServerHello", 11: "Certificate"}


def judge_text(data: bytes) -> Verdict | None:
    """Whether bytes that are read as they are are text: of no message are all bytes so. None when they are not."""
    if len(data) < LEAST_TEXT:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if not "".join(text.split()).isprintable():
        return None
    advice = (
        "No dump of bytes is found in it. What kwire takes: hex, base64, byte arrays and \\x literals of programming "
        "languages, the text of xxd, hexdump, Wireshark and tcpdump; --input says which it is."
    )
    return Verdict("text", "", None, advice)


def judge(data: bytes) -> Verdict | None:
    """What the first bytes of a stream are when they are not Kafka; None when nothing known begins so."""
    size = int(unpack_from(">i", data)[0]) if len(data) >= 4 else None
    http = HTTP.match(data)
    if http:
        method, target = (part.decode("latin-1") for part in http.groups())
        path, query, _ = target.partition("?")  # which may hold a password
        target = f"{path}?…" if query else path
        return Verdict("HTTP request", f"{method} {target}", size, "An HTTP client or health check talks to this port.")
    if len(data) >= ZEROS and not any(data):
        return Verdict("zero bytes", "", size, "Nothing but zeros: a hole in a file, or memory that was not written.")
    if data[:4] in CAPTURES:
        advice = (
            "A file of packets: kwire read lists what is in it, kwire decode FILE --frame N shows one packet's frame."
        )
        return Verdict(f"{CAPTURES[data[:4]]} file", "", size, advice)
    if data[:8] == b"\x00\x00\x00\x08\x04\xd2\x16\x2f":
        return Verdict("PostgreSQL SSLRequest", "", size, "A PostgreSQL client talks to this port.")
    if re.match(rb"\s*<(?:!DOCTYPE\s+HTML|html)", data[:64], re.IGNORECASE):
        return Verdict("HTML page", "", size, "An HTTP server or proxy answers on this port, not a broker.")
    if data.startswith(b"HTTP/1."):
        line = data.split(b"\r\n", 1)[0][:80].decode("latin-1")
        return Verdict("HTTP response", line, size, "An HTTP server or proxy answers on this port, not a broker.")
    if data.startswith(b"SSH-"):
        line = re.split(rb"[\r\n]", data, maxsplit=1)[0][:80].decode("latin-1")
        return Verdict("SSH", line, size, "This is an SSH server or client.")
    if data.startswith(b"\r\n\r\n\x00\r\nQUIT\n"):
        return Verdict("PROXY protocol v2", "", size, "A load balancer announces the client; Kafka does not read that.")
    if re.match(rb"PROXY (TCP4|TCP6|UNKNOWN)", data):
        line = data.split(b"\r\n", 1)[0][:108].decode("latin-1")
        return Verdict(
            "PROXY protocol v1", line, size, "A load balancer announces the client; Kafka does not read that."
        )
    if data.startswith(b"AMQP"):
        return Verdict("AMQP", f"version {'.'.join(map(str, data[5:8]))}", size, "An AMQP client talks to this port.")
    if data[:1] == b"\x10" and data[4:8] == b"MQTT":
        return Verdict("MQTT CONNECT", "", size, "An MQTT client talks to this port.")
    if re.match(rb"\*\d{1,4}\r\n\$\d{1,6}\r\n", data):
        return Verdict("Redis command", "", size, "A Redis client talks to this port.")
    if data[:4] in ZOOKEEPER and len(data) <= 6:
        return Verdict("ZooKeeper command", data[:4].decode(), size, "A probe meant for ZooKeeper reaches this port.")
    return _tls(data, size)


def _tls(data: bytes, size: int | None) -> Verdict | None:
    if len(data) < 5 or data[0] not in TLS_KINDS or data[1] != 3 or data[2] > 4:
        return None
    length = int.from_bytes(data[3:5], "big")
    if not 0 < length <= 18432:
        return None
    kind = TLS_KINDS[data[0]]
    if data[0] == 21 and length == 2 and len(data) >= 7:
        level = {1: "warning", 2: "fatal"}.get(data[5], str(data[5]))
        alert = TLS_ALERTS.get(data[6], str(data[6]))
        return Verdict("TLS alert", f"{level} {alert}", size, "The TLS peer gave up; the alert says why.")
    if data[0] == 22 and len(data) > 5:
        name = HANDSHAKES.get(data[5], f"handshake {data[5]}")
        server = _server_name(data) if data[5] == 1 else None
        advice = "The other side speaks TLS: this listener may be plaintext, or the capture needs its keys to be read."
        return Verdict(f"TLS {name}", f"server name {server}" if server else "", size, advice)
    return Verdict(
        f"TLS {kind}", f"{length:,} bytes", size, "Encrypted: the capture needs the session's keys to be read."
    )


def _server_name(data: bytes) -> str | None:
    """The SNI of a ClientHello (RFC 6066 section 3), if it lies in these bytes whole."""
    try:
        pos = 5 + 4 + 2 + 32
        pos += 1 + data[pos]
        pos += 2 + int.from_bytes(data[pos : pos + 2], "big")
        pos += 1 + data[pos]
        end = pos + 2 + int.from_bytes(data[pos : pos + 2], "big")
        pos += 2
        while pos + 4 <= end:
            kind, length = unpack_from(">HH", data, pos)
            pos += 4
            if kind == 0:
                size = int.from_bytes(data[pos + 3 : pos + 5], "big")
                name = data[pos + 5 : pos + 5 + size]
                return name.decode("ascii") if len(name) == size else None
            pos += length
    except (IndexError, ValueError, StructError):
        return None
    return None
