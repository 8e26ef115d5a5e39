"""A capture whose every name wants to be markup, script, style, an address or a command of the terminal or shell."""

from __future__ import annotations

from pathlib import Path

from packetsmade import HELLO, asked, pcap, request, sized, tcp

import kwire
from kwire.records import build

NAMES = [
    "<script>window.hit=1</script>", "<svg onload=window.hit=1>", "\"><img src=x onerror=window.hit=1>",
    "</style><style>*{display:none}", "javascript:window.hit=1", "&lt;b&gt;", "' onfocus=window.hit=1 autofocus='",
    "\x1b[31mred\x1b]0;title\x07", "\u202egnp.exe\u2066\u200b", "$(touch hit);`touch hit`\ntouch hit", "--force",
    "]]></svg><script>window.hit=1</script>", "{{constructor.constructor('window.hit=1')()}}",
]  # fmt: skip


def hostile_capture(folder: Path) -> Path:
    """Joins, heartbeats, commits and produce requests, each with other names, and answers with errors and words."""
    sent, got = [], []
    for number, name in enumerate(NAMES):
        client = name.encode()
        join = {"GroupId": name, "SessionTimeoutMs": 6000, "MemberId": name, "ProtocolType": name, "Protocols": [
            {"Name": name, "Metadata": name.encode()}]}  # fmt: skip
        sent.append(request(11, 0, 4 * number, kwire.encode("JoinGroupRequest", 0, join), client))
        said = {"ErrorCode": 0, "GenerationId": 1, "ProtocolName": name, "Leader": name, "MemberId": name, "Members": [
            {"MemberId": name, "Metadata": name.encode()}]}  # fmt: skip
        got.append(sized((4 * number).to_bytes(4, "big") + kwire.encode("JoinGroupResponse", 0, said)))
        beat = {"GroupId": name, "GenerationId": 1, "MemberId": name}
        sent.append(request(12, 0, 4 * number + 1, kwire.encode("HeartbeatRequest", 0, beat), client))
        got.append(sized((4 * number + 1).to_bytes(4, "big") + kwire.encode("HeartbeatResponse", 0, {"ErrorCode": 25})))
        records = build([(name.encode(), name.encode())])
        part = {"Index": 0, "Records": records}
        produce = {"Acks": 1, "TimeoutMs": 1000, "TopicData": [{"Name": name, "PartitionData": [part]}]}
        sent.append(request(0, 8, 4 * number + 2, kwire.encode("ProduceRequest", 8, produce), client))
        refused = {"Index": 0, "ErrorCode": 87, "BaseOffset": -1, "ErrorMessage": name}
        answer = {"Responses": [{"Name": name, "PartitionResponses": [refused]}]}
        got.append(sized((4 * number + 2).to_bytes(4, "big") + kwire.encode("ProduceResponse", 8, answer)))
    packets = list(HELLO)
    for one, other in zip(asked(sent, 100, 0), asked(got, 500, 1), strict=True):
        packets += [one, other]
    last = request(3, 0, 999, kwire.encode("MetadataRequest", 0, {}), b"\xff<b>")
    packets.append(tcp(0, 100 + sum(map(len, sent)), last))
    return pcap(folder / "a<b>'$(touch hit).pcap", packets, step=40_000)
