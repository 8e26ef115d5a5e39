"""A real cluster of three behind kwire proxy while a broker dies: four client libraries produce, consume in all kinds
of groups and transact. Judged by tcpdump, not by the proxy: nothing goes around it, what it need not rewrite is the
same on both sides, nothing is lost and nothing stands twice.

Three real brokers and their clients need two cores of their own for two minutes, so it runs when it is asked for:
KWIRE_STEADY=COUNT,SECONDS, such as 200,30. Needs KWIRE_LAB (see real_cluster.py) and tcpdump with its rights; clients
that are not at hand are left out. python tests/interop/test_proxy_cluster.py prints the figures, and leaves its files
in KWIRE_STEADY_KEPT.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from struct import unpack_from
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from real_cluster import JAVA, RealCluster, at_hand

from kwire.capture.connections import Connections
from kwire.capture.files import open_capture
from kwire.capture.segmenter import Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.codec.library import builtin_library
from kwire.session.broker_ids import ADDRESSES

HERE = Path(__file__).parent
ASKED = os.environ.get("KWIRE_STEADY")
COUNT, SECONDS = (ASKED or "200,30").split(",")
REWRITTEN = {*ADDRESSES, 18}
End = tuple[str, int]
Ends = tuple[End, End, int]


class Stream(NamedTuple):
    """A connection of a capture: what each end sent. opened: the packet that began it."""

    opened: int
    client: End
    broker: End
    asked: bytes
    answered: bytes


class Figures(NamedTuple):
    """equal: frames that are the same on both sides, of each kind; changed: answers that are not, by API. unseen:
    connections of which tcpdump lost packets; nothing is said about their frames."""

    connections: int
    around: int
    equal: Counter[str]
    changed: Counter[str]
    said: list[dict[str, Any]]
    digest: str
    unseen: int


# ---------------------------------------------------------------- what runs


@contextmanager
def ended(process: subprocess.Popen[Any], number: signal.Signals = signal.SIGTERM) -> Iterator[subprocess.Popen[Any]]:
    try:
        yield process
    finally:
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def clients(folder: Path, address: str) -> dict[str, list[str]]:
    """The commands of those that are at hand."""
    found = {"java": [*JAVA, str(HERE / "Steady.java"), address, COUNT, SECONDS]}
    for module, name in (("confluent_kafka", "librdkafka"), ("kafka", "kafka-python")):
        if not subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode:
            found[name] = [sys.executable, str(HERE / "steady.py"), name, address, COUNT, SECONDS]
    if shutil.which("go") is not None:
        build = ["go", "build", "-o", str(folder / "steady"), "./steady"]
        environment = {**os.environ, "GOPROXY": "off"}
        if not subprocess.run(build, cwd=HERE / "franz", env=environment, capture_output=True).returncode:
            found["franz"] = [str(folder / "steady"), address, COUNT, SECONDS]
    return found


def run(folder: Path) -> Figures:
    with RealCluster(folder / "cluster") as cluster:
        saved, seen = folder / "proxy.pcapng", folder / "seen.pcap"
        command = [sys.executable, "-m", "kwire", "proxy", cluster.address, "--listen", "127.0.0.1:0", "-q"]
        told = folder / "proxy.err"
        proxy = subprocess.Popen([*command, "--capture", str(saved)], stderr=told.open("w"))
        with ended(proxy, signal.SIGINT):
            listens, end = None, time.monotonic() + 60
            while listens is None and time.monotonic() < end:
                time.sleep(0.1)
                listens = re.search(r"listening: (\S+) ", told.read_text())
            assert listens, told.read_text()
            dump = ["tcpdump", "-i", "lo", "-B", "65536", "-U", "-w", str(seen), "tcp"]
            tcpdump = subprocess.Popen(dump, stderr=subprocess.PIPE, text=True)
            with ended(tcpdump, signal.SIGINT):
                time.sleep(2)
                started = {
                    name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=(folder / f"{name}.err").open("w"))
                    for name, command in clients(folder, listens[1]).items()
                }
                try:
                    said = _disturb_and_wait(cluster, started)
                finally:
                    for process in started.values():
                        process.kill()
                time.sleep(1)
        said += _stands_twice(cluster)
    return judge(saved, seen, set(cluster.client_ports), said)


def _disturb_and_wait(cluster: RealCluster, started: dict[str, subprocess.Popen[bytes]]) -> list[dict[str, Any]]:
    """A third of the time all goes well, then a broker dies; it comes back, and gets its leaders and coordinators."""
    third = int(SECONDS) / 3
    time.sleep(third)
    cluster.kill(2)
    time.sleep(third)
    cluster.start(2)
    said: list[dict[str, Any]] = []
    for name, process in started.items():
        out, _ = process.communicate(timeout=int(SECONDS) + 300)
        said += [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
        if process.returncode:
            said.append({"who": f"{name} ended with {process.returncode}", "lost": 1, "doubled": 0, "again": 0})
    cluster.wait(2)
    return said


def _stands_twice(cluster: RealCluster) -> list[dict[str, Any]]:
    """What the logs hold, read without the proxy when all is over."""
    reader = [*JAVA, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", cluster.address]
    found = []
    for topic in ("java", "java-copy", "rdkafka", "rdkafka-txn", "franz", "franz-txn", "kafka-python"):
        done = subprocess.run(
            [*reader, "--topic", topic, "--from-beginning", "--timeout-ms", "6000",
             "--command-property", "isolation.level=read_committed"], capture_output=True, text=True,
        )  # fmt: skip
        values = Counter(re.findall(r"^v\d+$", done.stdout, re.MULTILINE))
        if values:
            doubled = sum(values.values()) - len(values)
            found.append({"who": f"log {topic}", "lost": int(COUNT) - len(values), "doubled": doubled, "again": 0})
    return found


# ---------------------------------------------------------------- what was on the wire


def streams(capture: Path) -> list[Stream]:
    """The connections that a capture holds whole, in the order of their beginnings; who began one is the client."""
    connections, segmenter = Connections(), Segmenter(ConnectionFilter())
    bytes_of: dict[int, tuple[Any, list[bytearray]]] = {}
    lacking: set[int] = set()

    def take(touched: Iterator[Any]) -> None:
        for connection in touched:
            _, sent = bytes_of.setdefault(id(connection), (connection, [bytearray(), bytearray()]))
            for number, stream in enumerate(connection.streams):
                for piece in stream.pieces:
                    if piece.missing:
                        lacking.add(id(connection))
                    sent[number] += piece.data
                stream.pieces = []

    for packets in open_capture(capture).blocks():
        for segments in segmenter.read(packets).segments:
            take(connections.feed(segments))
    take(connections.finish())
    made = []
    for connection, sent in bytes_of.values():
        if not connection.opening or id(connection) in lacking:
            continue
        first = connection.opener or 0
        ends = connection.ends
        made.append(
            Stream(connection.opening[0], ends[first], ends[1 - first], bytes(sent[first]), bytes(sent[1 - first]))
        )
    return sorted(stream for stream in made if stream.asked)


def frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while len(data) - at >= 4:
        stop = at + 4 + unpack_from(">i", data, at)[0]
        if stop > len(data):
            return
        yield data[at:stop]
        at = stop


def judge(saved: Path, seen: Path, ports: set[int], said: list[dict[str, Any]]) -> Figures:
    """saved: the proxy's own capture, which says which connections belong together; seen: that of tcpdump."""
    there = dict(numbered(streams(seen)))
    pairs = _pairs(saved, ports)
    outward = {far for _, far in pairs}
    around = [ends for ends, stream in there.items() if ends[1][1] in ports and ends not in outward and stream.answered]
    equal: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    digest = sha256()
    whole = [pair for pair in pairs if all(ends in there for ends in pair)]
    for near_ends, far_ends in whole:
        near, far = there[near_ends], there[far_ends]
        asked = list(zip(frames(near.asked), frames(far.asked), strict=False))
        for before, after in asked:
            assert before == after, "a request was changed"
            digest.update(before)
        equal["requests"] += len(asked)
        keys = {unpack_from(">i", frame, 8)[0]: unpack_from(">h", frame, 4)[0] for frame in frames(far.asked)}
        for before, after in zip(frames(far.answered), frames(near.answered), strict=False):
            key = keys[unpack_from(">i", before, 4)[0]]
            if before == after:
                equal["answers"] += 1
                digest.update(before)
            else:
                assert key in REWRITTEN, f"an answer to {key} was changed"
                changed[builtin_library().registry.name_of(key) or str(key)] += 1
    return Figures(len(pairs), len(around), equal, changed, said, digest.hexdigest()[:16], len(pairs) - len(whole))


def _pairs(saved: Path, ports: set[int]) -> list[tuple[Ends, Ends]]:
    """Each client's connection and the one to its broker, which the proxy writes one after the other."""
    ends = [ends for ends, _ in numbered(streams(saved))]
    assert len(ends) % 2 == 0
    found = list(zip(ends[::2], ends[1::2], strict=True))
    assert all(far[1][1] in ports and near[1][1] not in ports for near, far in found)
    return found


def numbered(found: list[Stream]) -> Iterator[tuple[Ends, Stream]]:
    """Each with its ends and how often these were used before: ports come again."""
    used: Counter[tuple[End, End]] = Counter()
    for stream in found:
        ends = stream.client, stream.broker
        yield (*ends, used[ends]), stream
        used[ends] += 1


# ---------------------------------------------------------------- the test


@pytest.mark.java
def test_a_cluster_behind_the_proxy_while_a_broker_dies(tmp_path: Path) -> None:
    if not ASKED:
        pytest.skip("runs with KWIRE_STEADY=COUNT,SECONDS: three real brokers need the machine for two minutes")
    if not at_hand() or shutil.which("tcpdump") is None or os.geteuid():
        pytest.skip("needs Java, KWIRE_LAB and tcpdump with its rights")
    check(run(tmp_path))


def check(figures: Figures) -> None:
    assert figures.around == 0
    assert figures.equal["requests"] > 0
    assert figures.changed.keys() >= {"Metadata", "FindCoordinator"}
    assert {row["who"]: (row["lost"], row["doubled"]) for row in figures.said if row["lost"] or row["doubled"]} == {}


def main() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        figures = run(Path(os.environ.get("KWIRE_STEADY_KEPT", folder)))
        for name in sorted(Path(os.environ.get("KWIRE_STEADY_KEPT", folder)).glob("*.err")):
            print(name.stem, *name.read_text().splitlines()[-4:], sep="\n  ")
    for row in figures.said:
        print(f"{row['who']:<24} lost {row['lost']}, doubled {row['doubled']}, delivered again {row['again']}")
    print(f"{figures.connections} connections, {figures.around} around the proxy, {figures.unseen} not seen whole")
    print(f"equal on both sides: {dict(figures.equal)}, sha256 {figures.digest}…; rewritten: {dict(figures.changed)}")
    check(figures)


if __name__ == "__main__":
    main()
