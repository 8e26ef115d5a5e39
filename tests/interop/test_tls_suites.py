"""Real Kafka clients of four kinds and a real broker under every cipher suite that they have: what kwire decrypts is
what tshark does, byte for byte. Suites that Java lacks (CCM) go through kwire proxy, which shows the same bytes in
plain on its other side.

Needs KWIRE_LAB, tcpdump with its rights, tshark, openssl, and the agent that writes the broker's keys (kwire explain
keylog), named by KWIRE_TLS_AGENT. python tests/interop/test_tls_suites.py prints a line for each client and suite.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from real_cluster import JAVA, RealCluster, at_hand
from test_proxy_cluster import ended, frames, streams
from tls_judge import ours, theirs
from tls_openssl import pki

HERE = Path(__file__).parent
AGENT = Path(os.environ.get("KWIRE_TLS_AGENT", "none"))
SUITES_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
RSA = [
    *(f"TLS_{key}_WITH_{rest}" for key in ("ECDHE_RSA", "DHE_RSA", "RSA") for rest in (
        "AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "AES_128_CBC_SHA", "AES_256_CBC_SHA", "AES_128_CBC_SHA256")),
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "TLS_RSA_WITH_AES_256_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]  # fmt: skip
ECDSA = [
    f"TLS_ECDHE_ECDSA_WITH_{rest}"
    for rest in (
        "AES_128_GCM_SHA256",
        "AES_256_GCM_SHA384",
        "CHACHA20_POLY1305_SHA256",
        "AES_128_CBC_SHA",
        "AES_256_CBC_SHA384",
    )
]
CCM = ["AES128-CCM", "AES256-CCM", "AES128-CCM8", "AES256-CCM8", "AES128-GCM-SHA256", "AES256-SHA"]
RUNS = [("server", SUITES_13), ("ec", ECDSA), ("server", RSA)]
EVERYTHING = "jdk.tls.disabledAlgorithms=\njdk.tls.legacyAlgorithms=\n"
SIZES = (10, 20_000, 100_000)


class Seen(NamedTuple):
    """A connection: its suite and version, whether it is as tshark has it, and what is in it."""

    suite: str
    version: str
    same: bool
    bytes: int
    frames: int
    said: str


@contextmanager
def dumped(target: Path) -> Iterator[None]:
    command = ["tcpdump", "-i", "lo", "-B", "65536", "-U", "-w", str(target), "tcp"]
    with ended(subprocess.Popen(command, stderr=subprocess.DEVNULL), signal.SIGINT):
        time.sleep(2)
        yield
        time.sleep(1)


# ---------------------------------------------------------------- clients


def java(address: str, folder: Path, suites: list[str]) -> list[str]:
    options = [f"-Djava.security.properties={folder / 'everything.security'}"]
    source = str(HERE / "TlsSuites.java")
    command = [*JAVA[:1], *options, *JAVA[1:], source, address, str(folder / "pki" / "ca.pem"), *suites]
    return _said("Java", command)


def go(address: str, folder: Path, suites: list[str]) -> list[str]:
    made = folder / "suites"
    build = ["go", "build", "-o", str(made), "./suites"]
    environment = {**os.environ, "GOPROXY": "off"}
    if shutil.which("go") is None or subprocess.run(build, cwd=HERE / "franz", env=environment).returncode:
        return []
    return _said("Go", [str(made), address, str(folder / "pki" / "ca.pem"), *suites])


def _said(who: str, command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return [f"{who} {line}" for line in done.stdout.splitlines()]


def librdkafka(address: str, folder: Path, suites: list[str]) -> list[str]:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    found = []
    for number, suite in enumerate(suites):
        config = {
            "bootstrap.servers": address, "security.protocol": "ssl", "message.max.bytes": 2_000_000,
            "ssl.ca.location": str(folder / "pki" / "ca.pem"),
            **({"ssl.cipher.suites": openssl_name(suite)} if "_WITH_" in suite else {}),
            "allow.auto.create.topics": True, "topic.metadata.refresh.interval.ms": 500,
        }  # fmt: skip
        producer, topic = confluent.Producer(config), f"rd-{number}"
        for size in SIZES:
            producer.produce(topic, bytes(size), partition=0)
        left = producer.flush(15)
        if left:
            producer.purge()
            found.append(f"librdkafka {suite} {left} records not delivered")
            continue
        consumer = confluent.Consumer({**config, "group.id": topic, "auto.offset.reset": "earliest"})
        consumer.assign([confluent.TopicPartition(topic, 0, 0)])
        messages = [consumer.poll(10) for _ in SIZES]
        consumer.close()
        found.append(f"librdkafka {suite} {sum(each is not None and not each.error() for each in messages)}")
    return found


def kafka_python(address: str, context: ssl.SSLContext, suite: str, topic: str) -> str:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    config: dict[str, Any] = {
        "bootstrap_servers": address, "security_protocol": "SSL", "ssl_context": context, "client_id": topic,
    }  # fmt: skip
    try:
        producer = kafka.KafkaProducer(**config, max_block_ms=10_000)
        for size in SIZES:
            producer.send(topic, bytes(size), partition=0).get(15)
        producer.close()
        consumer = kafka.KafkaConsumer(topic, **config, auto_offset_reset="earliest", consumer_timeout_ms=8_000)
        came = sum(1 for _ in zip(SIZES, consumer, strict=False))
        consumer.close()
    except (kafka.errors.KafkaError, OSError) as error:
        return f"kafka-python {suite} {error}"
    return f"kafka-python {suite} {came}"


def trusting(folder: Path, suite: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.pem"))
    if suite in SUITES_13:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    else:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(f"{openssl_name(suite)}:@SECLEVEL=0")
    return context


def openssl_name(suite: str) -> str:
    """As OpenSSL calls a suite of TLS 1.2."""
    if "_WITH_" not in suite:
        return suite
    key, _, rest = suite.removeprefix("TLS_").partition("_WITH_")
    rest = rest.replace("AES_", "AES").replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305")
    name = rest if key == "RSA" else f"{key}_{rest}"
    return name.replace("_", "-")


# ---------------------------------------------------------------- what was seen


def judge(capture: Path, keylog: Path, port: int) -> list[Seen]:
    """Every connection to a port, kwire's reading against tshark's."""
    mine = ours(capture, keylog)
    by_ends: dict[frozenset[tuple[str, int]], list[dict[tuple[str, int], bytes]]] = {}
    for other in theirs(capture, keylog):
        if any(end[1] == port for end in other.sent):
            by_ends.setdefault(frozenset(other.sent), []).append(other.sent)
    found = []
    for ends, parts in by_ends.items():
        own = mine[ends]
        orders = [  # ports come again: then two connections of tshark are one here
            {end: b"".join(part[end] for part in order) for end in ends} for order in permutations(parts)
        ]
        session = own.session
        assert session is not None
        facts = session.facts
        size = sum(len(data) for data in own.sent.values())
        count = sum(1 for data in own.sent.values() for _ in frames(data))
        suite = facts.suite.name if facts.suite else "-"
        said = f"{[len(data) for data in own.sent.values()]}, tshark {[len(data) for data in orders[0].values()]}"
        found.append(Seen(suite, facts.version or "-", own.sent in orders, size, count, f"{said} {session.why}"))
    return found


def against_broker(folder: Path, certificate: str, suites: list[str]) -> tuple[list[str], list[Seen]]:
    """All clients under all suites; what they say, and what is on the wire."""
    pki(folder / "pki")
    chain = folder / "pki" / f"{certificate}-chain.pem"
    chain.write_bytes(b"".join((folder / "pki" / f"{certificate}.{end}").read_bytes() for end in ("key", "pem")))
    (folder / "everything.security").write_text(EVERYTHING)
    extra = f"""
ssl.keystore.type=PEM
ssl.keystore.location={chain}
ssl.enabled.protocols={"TLSv1.3" if suites == SUITES_13 else "TLSv1.2"}
ssl.cipher.suites={",".join(suites)}
message.max.bytes=2000000
"""
    keys, capture = folder / "keys.log", folder / "seen.pcap"
    options = (f"-javaagent:{AGENT}={keys}", f"-Djava.security.properties={folder / 'everything.security'}")
    said: list[str] = []
    with RealCluster(folder / "cluster", 1, extra, "SSL", options) as cluster:
        (port,) = cluster.client_ports
        with dumped(capture):
            said += java(cluster.address, folder, suites)
            modern = suites == SUITES_13  # of which only Java lets one choose
            said += go(cluster.address, folder, ["TLS 1.3"] if modern else [s for s in suites if "_DHE_" not in s])
            said += librdkafka(cluster.address, folder, ["TLS 1.3"] if modern else suites)
            for number, suite in enumerate(suites):
                context = trusting(folder, suite)
                said.append(kafka_python(cluster.address, context, suite, f"py-{number}"))
    return said, judge(capture, keys, port)


def through_proxy(folder: Path) -> tuple[list[str], int, int]:
    """Suites that Java lacks, towards kwire proxy; frames that are the same in TLS on one side and in plain on the
    other, and those that are not."""
    from kwire.testing import Proxy

    pki(folder / "pki")
    keys, capture, saved = folder / "keys.log", folder / "seen.pcap", folder / "proxy.pcapng"
    inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inward.load_cert_chain(folder / "pki" / "server.pem", folder / "pki" / "server.key")
    inward.set_ciphers("ALL:@SECLEVEL=0")
    inward.keylog_filename = str(keys)
    said = []
    with (
        RealCluster(folder / "cluster", 1) as cluster,
        dumped(capture),
        Proxy(cluster.address, tls=inward, capture=saved, show_secrets=True) as proxy,
    ):
        for number, suite in enumerate(CCM):
            said.append(kafka_python(proxy.address, trusting(folder, suite), suite, f"ccm-{number}"))
    mine = ours(capture, keys)
    plain = {(stream.client, stream.broker): stream for stream in streams(capture)}
    ends = [(stream.client, stream.broker) for stream in streams(saved)]
    same = other = 0
    for near, far in zip(ends[::2], ends[1::2], strict=True):
        inside, outside = mine[frozenset(near)], plain[far]
        pairs = [(inside.sent[near[0]], outside.asked), (inside.sent[near[1]], outside.answered)]
        for mine_said, theirs_said in pairs:
            for left, right in zip(frames(mine_said), frames(theirs_said), strict=False):
                same += left == right
                other += left != right
    return said, same, other


# ---------------------------------------------------------------- the tests


def needed() -> str:
    tools = [tool for tool in ("tcpdump", "tshark", "openssl") if shutil.which(tool) is None]
    if not at_hand() or tools or os.geteuid():
        return f"needs Java, KWIRE_LAB, tcpdump with its rights, tshark, openssl {tools or ''}"
    return "" if AGENT.is_file() else "needs KWIRE_TLS_AGENT, extract-tls-secrets"


@pytest.mark.java
@pytest.mark.parametrize(("certificate", "suites"), RUNS)
def test_every_suite_of_a_real_broker(tmp_path: Path, certificate: str, suites: list[str]) -> None:
    if why := needed():
        pytest.skip(why)
    check(*against_broker(tmp_path, certificate, suites), suites)


@pytest.mark.java
def test_suites_that_java_lacks_are_the_same_in_plain_behind_the_proxy(tmp_path: Path) -> None:
    if why := needed():
        pytest.skip(why)
    said, same, _ = through_proxy(tmp_path)
    assert [line.rpartition(" ")[2] for line in said] == ["3"] * len(CCM)
    assert same > 100


def check(said: list[str], seen: list[Seen], suites: list[str]) -> None:
    assert all(each.same for each in seen), [each for each in seen if not each.same]
    assert {each.suite for each in seen if each.bytes} >= set(suites)
    assert {line.split()[1] for line in said if line.startswith("Java") and line.endswith(" 3")} == set(suites)


def main() -> None:
    for certificate, suites in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            said, seen = against_broker(Path(folder), certificate, suites)
        print(*said, sep="\n")
        rows = Counter((each.version, each.suite, each.same) for each in seen)
        for (version, suite, same), number in sorted(rows.items()):
            print(f"{version} {suite:<45} {number:>3} connections, {'as tshark' if same else 'NOT AS TSHARK'}")
        print(f"{sum(each.frames for each in seen):,} frames, {sum(each.bytes for each in seen):,} bytes")
        check(said, seen, suites)
    with tempfile.TemporaryDirectory() as folder:
        said, equal, other = through_proxy(Path(folder))
    print(*said, f"{equal} frames the same in TLS and in plain, {other} rewritten", sep="\n")


if __name__ == "__main__":
    main()
