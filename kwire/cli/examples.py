"""Lines to type, by command: what --help and the man pages show beneath the options. Commands whose description shows
some have none here.
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": (
        "kwire demo",
        "kwire demo --capture demo.pcapng",
    ),
    "explain": (
        "kwire explain FetchResponse -v 16",
        "kwire explain Fetch --diff 12 16",
        "kwire explain ILLEGAL_GENERATION",
    ),
    "apis": (
        "kwire apis",
        "kwire apis group --format csv",
    ),
    "errors": (
        "kwire errors",
        "kwire errors retriable coordinator",
    ),
    "decode": (
        "kwire decode < bytes.bin",
        "kwire decode --as FetchResponse -v 16 body.bin",
        "kwire decode trouble.pcap --frame 110",
    ),
    "encode": (
        'kwire encode HeartbeatRequest -v 4 \'{"GroupId": "g"}\' | xxd',
        "kwire encode MetadataRequest -v 12 @body.json",
    ),
    "read": (
        "kwire read trouble.pcap --errors",
        "kwire read trouble.pcap --group billing --from 14:03 --to 14:05",
        "kwire read trouble.pcap --topic orders -w orders.pcapng",
        "kwire read trouble.pcap --api Fetch --slower 1s -x",
    ),
    "stats": (
        "kwire stats trouble.pcap",
        "kwire stats trouble.pcap --client-id 'billing-*'",
        "kwire stats trouble.pcap --errors --all",
    ),
    "groups": (
        "kwire groups trouble.pcap",
        "kwire groups trouble.pcap --group billing --format svg > billing.svg",
    ),
    "audit": (
        "kwire audit trouble.pcap --to 4.0",
        "kwire audit trouble.pcap --from 4.0 --brokers 2.0",
    ),
    "doctor": (
        "kwire doctor trouble.pcap",
        "kwire doctor trouble.pcap --only evicted",
        "kwire doctor --list",
    ),
    "trace": (
        "kwire trace trouble.pcap --client-id billing-2",
        "kwire trace trouble.pcap --group billing --format json",
    ),
    "clients": (
        "kwire clients trouble.pcap",
        "kwire clients trouble.pcap --format json",
    ),
    "browse": (
        "kwire browse trouble.pcap",
        "kwire browse trouble.pcap --port 9092",
    ),
    "report": (
        "kwire report trouble.pcap -o report.html",
        "kwire report trouble.pcap --from 14:03 -o report.html",
    ),
    "site": (
        "kwire site public",
        "kwire site public --pyodide package/",
    ),
    "table": (
        "kwire table trouble.pcap -o tables",
        "kwire table monday.pcap tuesday.pcap -o tables",
    ),
    "sql": (
        "kwire sql trouble.pcap 'select api, count(*) from exchanges group by 1 order by 2 desc'",
        "kwire sql trouble.pcap",
    ),
    "redact": (
        "kwire redact trouble.pcap -o share.pcapng",
        "kwire redact trouble.pcap -o share.pcapng --keep topics",
    ),
    "call": (
        "kwire call localhost:9092 Metadata",
        "kwire call localhost:9092 ListOffsets @body.json",
        'kwire call localhost:9092 CreateTopics \'{"Topics": [{"Name": "t"}]}\' --yes',
    ),
    "walk": (
        "kwire walk localhost:9092 -g billing -t orders",
        "kwire walk localhost:9092 -g billing -t orders --protocol consumer",
    ),
    "completion": (
        "kwire completion bash",
        "kwire completion zsh --print",
    ),
}
