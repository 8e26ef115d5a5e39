"""Old clients against Kafka 3.9, recorded, then against 4.3: those that fail there are the ones that an audit has to
call blocked.

    upgrade.py -o fixtures/doctor        # upgrade.pcap.gz, and upgrade.json: of each client whether it worked where

Client libraries lie in the folder CLIENTS, java-VERSION with a kafka-clients jar each (mvn dependency:copy), and
kafka-python-VERSION (pip install --target), kafkajs-VERSION (npm install), go-NAME (go mod init; go get of the module).
librdkafka is today's, held to old versions, and an old one inside confluent-kafka-go.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import CACHE, LABS, Cluster, Recorder
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

HERE = Path(__file__).parent
CLIENTS = CACHE / "clients"
JAVA = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.8.2", "3.9.2")
PYTHON = {
    "kafka-python-1.4.7": "{}",
    "kafka-python-2.0.2": "{}",
    "kafka-python-2.0.2-pinned": '{"api_version": [0, 10]}',
}
LIBRDKAFKA = {
    "librdkafka-2.16": "{}",
    "librdkafka-2.16-as-0.9": '{"api.version.request": false, "broker.version.fallback": "0.9.0.1"}',
}
KAFKAJS = ("1.4.0", "1.16.0", "2.0.0")
GO = {  # by client id: the module, whose folder it is built in, and the program
    "sarama-1.29.0": ("github.com/Shopify/sarama", "old_sarama.go"),
    "sarama-1.40.0": ("github.com/IBM/sarama", "old_sarama.go"),
    "librdkafka-1.4.2": ("github.com/confluentinc/confluent-kafka-go", "old_librdkafka.go"),
}
PATIENCE = 90  # seconds


def commands(address: str, folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """By client id: the command that writes three records and reads them, and its environment."""
    found: dict[str, tuple[list[str], dict[str, str]]] = {}
    logs = ":".join(str(jar) for jar in (LABS["4.3.1"] / "jars").glob("slf4j-api-*.jar"))
    for version in JAVA:
        jars = ":".join([*map(str, (CLIENTS / f"java-{version}").glob("*.jar")), logs])
        out = folder / version
        built = ["javac", "-nowarn", "-cp", jars, "-d", str(out), str(HERE / "OldClient.java")]
        subprocess.run(built, check=True, capture_output=True)
        name = f"java-{version}"
        found[name] = (["java", "-Xmx128m", "-cp", f"{out}:{jars}", "OldClient", address, f"upgrade-{name}", name], {})
    for name, options in PYTHON.items():
        library = CLIENTS / name.removesuffix("-pinned")
        command = [
            sys.executable,
            str(HERE / "old_client.py"),
            "kafka-python",
            address,
            f"upgrade-{name}",
            name,
            options,
        ]
        found[name] = command, {"PYTHONPATH": str(library)}
    for name, options in LIBRDKAFKA.items():
        command = [sys.executable, str(HERE / "old_client.py"), "librdkafka", address, f"upgrade-{name}", name, options]
        found[name] = command, {}
    for version in KAFKAJS:
        name = f"kafkajs-{version}"
        command = ["node", str(HERE / "old_kafkajs.js"), address, f"upgrade-{name}", name]
        found[name] = command, {"NODE_PATH": str(CLIENTS / name / "node_modules")}
    for name, (module, program) in GO.items():
        found[name] = [str(built_with_go(name, module, program, folder)), address, f"upgrade-{name}", name], {}
    return found


def built_with_go(name: str, module: str, program: str, folder: Path) -> Path:
    """A program in Go with the library of a client's folder."""
    out, home = folder / name, CLIENTS / f"go-{name}"
    if not out.exists():
        text = (HERE / program).read_text().replace("SARAMA", module)
        (home / "main.go").write_text(text)
        built = ["go", "build", "-mod=mod", "-o", str(out), "main.go"]
        subprocess.run(built, check=True, capture_output=True, cwd=home)
    return out


def worked(command: list[str], env: dict[str, str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **env})
    except subprocess.TimeoutExpired:
        return False
    fine = done.returncode == 0 and "read 3" in done.stdout
    if not fine:
        print(command[-1], "failed:", *done.stderr.splitlines()[-3:], file=sys.stderr)
    return fine


def against(release: str, folder: Path, out: Path | None) -> dict[str, bool]:
    """Of each client whether it worked with brokers of a release. out: where it is recorded."""
    cluster = Cluster(folder / release, release=release)
    cluster.start()
    try:
        admin = AdminClient({"bootstrap.servers": cluster.address})
        todo = commands(cluster.address, folder)
        topics = [NewTopic(f"upgrade-{name}", 1, 1) for name in todo]
        for future in admin.create_topics(topics, operation_timeout=30, request_timeout=40).values():
            future.result(60)
        with ThreadPoolExecutor(3) as pool:
            if out is None:
                return dict(zip(todo, pool.map(lambda one: worked(*one), todo.values()), strict=True))
            with Recorder(out, cluster.ports):
                return dict(zip(todo, pool.map(lambda one: worked(*one), todo.values()), strict=True))
    finally:
        cluster.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="provoke-") as folder:
        plain = Path(folder, "upgrade.pcap")
        before = against("3.9.2", Path(folder), plain)
        after = against("4.3.1", Path(folder), None)
        (given.out / "upgrade.pcap.gz").write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
    rows = {name: {"3.9.2": before[name], "4.3.1": after[name]} for name in sorted(before)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    (given.out / "upgrade.json").write_text(f"{{\n{lines}\n}}\n")
    print(lines)


if __name__ == "__main__":
    main()
