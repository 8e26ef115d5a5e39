"""A password planted in small captures, in every place where a password travels, and the forms in which it would be
seen in an output: as text, as hex, as base64, wherever a piece of it begins."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import kwire
from kwire.codec.headers import request_header_version, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.secrets import METADATA, METADATA_ID
from kwire.records import build
from kwire.schema.registry import builtin

PASSWORD = b"Zq7#Wx9!Kj4%Pv2&Tm6*"
PIECE = 6  # so many bytes of it in a row are a leak
PIECES = [PASSWORD[at : at + PIECE] for at in range(len(PASSWORD) - PIECE + 1)]
FORMS = {form for piece in PIECES for form in (piece.decode(), piece.hex(), base64.b64encode(piece).decode())}
FORMS |= {base64.urlsafe_b64encode(piece).decode() for piece in PIECES}
SEEN = re.compile("|".join(map(re.escape, sorted(FORMS | {form.replace("&", "&amp;") for form in FORMS}))))
MASKED = re.compile(r"\s+|</?[a-z][^>]*>")  # line breaks, blanks between pairs of digits, markup


def leaks(text: str) -> list[str]:
    """The forms of pieces of the password that stand in an output, as it is or with its blanks left out."""
    return SEEN.findall(text) or SEEN.findall(MASKED.sub("", text))


# ---------------------------------------------------------------- frames


def request(api: str, version: int, body: dict[str, Any], ident: int, client: str = "me") -> bytes:
    key = builtin().find(api).definition.key
    assert key is not None
    form = request_header_version(key, version, builtin_library().api_message(key, request=True))
    name = client.encode()
    head = pack(">hhih", key, version, ident, len(name)) + name + b"\0" * (form == 2)
    return sized(head + kwire.encode(f"{api}Request", version, body))


def response(api: str, version: int, body: dict[str, Any], ident: int) -> bytes:
    key = builtin().find(api).definition.key
    assert key is not None
    form = response_header_version(key, version, builtin_library().api_message(key, request=False))
    return sized(pack(">i", ident) + b"\0" * form + kwire.encode(f"{api}Response", version, body))


def sized(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def exchange(api: str, version: int, ident: int, asked: Any = None, answered: Any = None) -> tuple[bytes, bytes]:
    return request(api, version, asked or {}, ident), response(api, version, answered or {}, ident)


HELLO = {"ClientSoftwareName": "test", "ClientSoftwareVersion": "1.0"}
PLAIN = b"\0alice\0" + PASSWORD
BEARER = b"n,,\x01auth=Bearer " + PASSWORD + b"\x01\x01"
SCRAM = b"c=biws,r=fyko3rfc,p=" + PASSWORD.replace(b",", b"")
Talk = list[tuple[bytes, bytes]]


def login(version: int, mechanism: str, token: bytes) -> Talk:
    """A connection that logs in with SaslAuthenticate, works, and logs in anew."""
    group = {"GroupId": "g", "MemberId": "m-1"}
    steps = [
        exchange("SaslHandshake", 1, 2, {"Mechanism": mechanism}, {"Mechanisms": [mechanism]}),
        exchange("SaslAuthenticate", version, 3, {"AuthBytes": token}),
    ]
    return [
        exchange("ApiVersions", 3, 1, HELLO), *steps, exchange("Metadata", 9, 4), exchange("Heartbeat", 4, 5, group),
        *steps, exchange("Heartbeat", 4, 6, group),
    ]  # fmt: skip


def bare(mechanism: str, token: bytes) -> Talk:
    """A connection that logs in with bare tokens."""
    asked = exchange("SaslHandshake", 0, 2, {"Mechanism": mechanism}, {"Mechanisms": [mechanism]})
    return [exchange("ApiVersions", 0, 1), asked, (sized(token), sized(b"")), exchange("Metadata", 9, 4)]


LOGINS: dict[str, Talk] = {
    "PLAIN, v0": login(0, "PLAIN", PLAIN),
    "PLAIN, v2": login(2, "PLAIN", PLAIN),
    "OAUTHBEARER, v1": login(1, "OAUTHBEARER", BEARER),
    "SCRAM, v2": login(2, "SCRAM-SHA-256", SCRAM),
    "PLAIN, bare": bare("PLAIN", PLAIN),
    "SCRAM, bare": bare("SCRAM-SHA-256", SCRAM),
}


def _metadata(name: str, message: dict[str, Any]) -> bytes:
    """A record of the metadata log."""
    number = builtin().find(name).definition.key
    assert number is not None
    return bytes((1, number, 0)) + kwire.encode(name, 0, message)


def controller(compression: str = "none") -> Talk:
    """What brokers and controllers tell each other: forwarded requests, the metadata log, a snapshot of it."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required password="' + PASSWORD.decode() + '";'
    config = {"Name": "listener.name.sasl.jaas.config", "Value": jaas}
    alter = {"Resources": [{"ResourceType": 4, "ResourceName": "1", "Configs": [config]}]}
    scram = {"Upsertions": [{"Name": "alice", "Mechanism": 1, "Salt": PASSWORD, "SaltedPassword": PASSWORD}]}
    records = build(
        [
            (None, _metadata("TopicRecord", {"Name": "orders", "TopicId": METADATA_ID})),
            (None, _metadata("ConfigRecord", {"ResourceType": 4, "ResourceName": "1", **config})),
            (None, _metadata("UserScramCredentialRecord", {
                "Name": "alice", "Mechanism": 1, "Salt": PASSWORD, "StoredKey": PASSWORD, "ServerKey": PASSWORD,
            })),
        ],
        compression=compression,
    )  # fmt: skip
    part = {"PartitionIndex": 0, "HighWatermark": 9, "Records": records}
    snapshot = {"Index": 0, "Size": len(records), "UnalignedRecords": records}
    piece = snapshot | {"Position": 20, "UnalignedRecords": records[20:]}
    inner = [request("IncrementalAlterConfigs", 1, alter, 7)[4:], request("AlterConfigs", 2, alter, 7)[4:]]
    return [
        exchange("ApiVersions", 3, 1, HELLO),
        *(exchange("Envelope", 0, 2 + at, {"RequestData": data}, {"ResponseData": PASSWORD})
          for at, data in enumerate(inner)),
        exchange("Fetch", 12, 4, {"Topics": [{"Topic": METADATA, "Partitions": [{}]}]},
                 {"Responses": [{"Topic": METADATA, "Partitions": [part]}]}),
        exchange("Fetch", 17, 5, {"Topics": [{"TopicId": METADATA_ID, "Partitions": [{}]}]},
                 {"Responses": [{"TopicId": METADATA_ID, "Partitions": [part]}]}),
        exchange("ShareFetch", 1, 6, {"GroupId": "g"}, {"Responses": [
            {"TopicId": METADATA_ID, "Partitions": [{"PartitionIndex": 0, "Records": records}]}]}),
        *(exchange("FetchSnapshot", 0, 7 + at, {"Topics": [{"Name": METADATA, "Partitions": [{}]}]},
                   {"Topics": [{"Name": METADATA, "Partitions": [one]}]}) for at, one in enumerate((snapshot, piece))),
        exchange("AlterUserScramCredentials", 0, 9, scram),
        exchange("CreateDelegationToken", 3, 10, {}, {"TokenId": "t", "Hmac": PASSWORD}),
        exchange("RenewDelegationToken", 2, 11, {"Hmac": PASSWORD}),
    ]  # fmt: skip


TALKS: dict[str, Talk] = {**LOGINS, "controller": controller(), "controller, zstd": controller("zstd")}


# ---------------------------------------------------------------- views

FORMATS = ("text", "json", "tree", "hex", "spans", "svg", "html")
VIEWS = [
    ("read", "PATH", "-x", "--full"), ("read", "PATH", "--body"), ("read", "PATH", "--body", "--inner"),
    ("read", "PATH", "--format", "json", "--body"), ("read", "PATH", "--format", "json", "--body", "--inner"),
    ("read", "PATH"), ("read", "PATH", "--not-kafka"), ("stats", "PATH", "--all"), ("clients", "PATH"),
    *(("decode", "PATH", "--connection", "10.0.0.2:9092", "--full", "--format", form) for form in FORMATS),
]  # fmt: skip
TABLES = [("sql", "PATH", f"select * from {table}") for table in ("bodies", "messages", "connections", "clients")]


def arguments(view: tuple[str, ...], path: Path) -> list[str]:
    return [str(path) if word == "PATH" else word for word in view]


# ---------------------------------------------------------------- captures

Packet = tuple[bytes, int]  # an IPv4 packet, as far as it was captured, and its length


def packets(talks: Iterable[Talk]) -> list[Packet]:
    """Connections one after the other, a packet a frame."""
    out: list[Packet] = []
    for number, talk in enumerate(talks):
        seq = [100, 200]
        for side in (0, 1):
            out.append(packet(number, side, seq, b"", 2 | 16 * side))
        for pair in talk:
            out += [packet(number, side, seq, data) for side, data in enumerate(pair)]
    return out


def packet(number: int, side: int, seq: list[int], data: bytes, flags: int = 24) -> Packet:
    ends = (bytes((10, 0, 0, 7)), 50_000 + number), (bytes((10, 0, 0, 2)), 9092)
    (source, sport), (target, dport) = ends[side], ends[1 - side]
    tcp = pack(">HHIIHHHH", sport, dport, seq[side], 0, 5 << 12 | flags, 65535, 0, 0) + data
    seq[side] += len(data) + (flags & 2 > 0)
    ip = pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source + target + tcp
    return ip, len(ip)


HEADERS = 40  # of IPv4 and TCP


def pcap(found: Iterable[Packet]) -> bytes:
    """The file."""
    out = [pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 101)]
    for time, (data, length) in enumerate(found):
        out.append(pack("<IIII", 1_790_000_000, 1000 * time, len(data), length) + data)
    return b"".join(out)


def flipped(found: list[Packet], bits: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """Captures with one bit of a TCP payload flipped, and where."""
    chosen = list(bits)
    for at, (data, length) in enumerate(found):
        for offset in range(HEADERS, length):
            for bit in chosen:
                damaged = data[:offset] + bytes((data[offset] ^ 1 << bit,)) + data[offset + 1 :]
                where = f"packet {at + 1}, byte {offset - HEADERS}, bit {bit}"
                yield where, pcap([*found[:at], (damaged, length), *found[at + 1 :]])


def cut(found: list[Packet]) -> Iterator[tuple[str, bytes]]:
    """Captures of which one packet was cut, as a snaplen does, or which end in it."""
    for at, (data, length) in enumerate(found):
        for size in range(HEADERS, length):
            where = f"packet {at + 1}, {size - HEADERS} of {length - HEADERS} bytes"
            yield f"{where}, cut", pcap([*found[:at], (data[:size], length), *found[at + 1 :]])
            yield f"{where}, the last", pcap([*found[:at], (data[:size], length)])


def holed(talk: Talk) -> Iterator[tuple[str, bytes]]:
    """Captures that lack what lies before a piece of the password, where the size of a frame before it says that it
    ends there: what follows looks like the next frame, for certain."""
    for side in (0, 1):
        frames = [pair[side] for pair in talk]
        starts = [sum(map(len, frames[:at])) for at in range(len(frames))]
        stream, others = b"".join(frames), b"".join(pair[1 - side] for pair in talk)
        for number in (at for at, frame in enumerate(frames) if PASSWORD in frame):
            secret = starts[number] + frames[number].index(PASSWORD)
            for first in range(max(number - 2, 0), number + 1):
                for hole, end in ((starts[first] + have, secret + skip) for have in (4, 14) for skip in (0, PIECE)):
                    if hole >= end or not frames[first]:
                        continue
                    seq = [100, 200]
                    out = [packet(0, each, seq, b"", 2 | 16 * each) for each in (0, 1)]
                    size = pack(">i", end - starts[first] - 4)
                    out.append(packet(0, side, seq, stream[: starts[first]] + size + stream[starts[first] + 4 : hole]))
                    seq[side] += end - hole
                    out += [packet(0, side, seq, stream[end:]), packet(0, 1 - side, seq, others)]
                    yield f"side {side}, frame {first}, without {hole} to {end}", pcap(out)
