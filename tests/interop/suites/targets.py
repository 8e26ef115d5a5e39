# mypy: disable-error-code="attr-defined"
"""What the suites run against: kwire, kfake and real brokers, each started anew with what a suite needs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from steps import Needs, Place, call, must

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
OPEN = ("allow.everyone.if.no.acl.found", "true")


@contextlib.contextmanager
def kwire(needs: Needs, work: Path) -> Iterator[Place]:
    command = [sys.executable, "-m", "kwire", "broker", "-q", "--events", "json", "--super-user", "ANONYMOUS"]
    for node in range(needs.nodes):
        port = f",port={needs.port + node * len(needs.listeners)}" if needs.port else ""
        command += ["--node", f"{needs.first + node}{port}"]
    for protocol in needs.listeners:
        command += ["--listener", f"{protocol}://127.0.0.1:0,advertise=localhost"]
    for user, password in needs.users:
        command += ["--sasl", f"{user}:{password}"]
    for name, value in (OPEN, *needs.config):
        command += ["--config", f"{name}={value}"]
    command += ["--partitions", str(needs.partitions), "--certificate", str(work / "kwire.pem")]
    with started(command) as process:
        for line in process.stdout or ():
            row = json.loads(line)
            if row["kind"] == "ready":
                place = Place(row["listeners"], row.get("certificate", ""))
                credentials(needs, place)
                yield place
                return
        raise SystemExit(f"{' '.join(command)} has ended")


@contextlib.contextmanager
def kfake(needs: Needs, work: Path) -> Iterator[Place]:
    """Without logins and TLS, which its program here does not offer."""
    program = work / "kfake" / "kfake"
    if not program.exists():
        shutil.copytree(HERE / "kfake", program.parent, dirs_exist_ok=True)
        must("go", "build", "-o", program, ".", cwd=program.parent)
    with started([str(program), str(needs.nodes), str(needs.port)]) as process:
        addresses: list[str] = []
        for line in process.stdout or ():
            if line.strip() == "ready":
                yield Place(dict.fromkeys(needs.listeners, ",".join(addresses)), certificate_of(work)[0])
                return
            addresses.append(line.strip())


@contextlib.contextmanager
def kafka(needs: Needs, work: Path) -> Iterator[Place]:
    """One node, with its data fresh. KWIRE_LAB: a folder with jars/; broker.sh is in it, or KWIRE_LAB_SCRIPT."""
    lab = Path(os.environ["KWIRE_LAB"])
    script = os.environ.get("KWIRE_LAB_SCRIPT", str(lab / "broker.sh"))
    folder = work / "kafka"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "jars").symlink_to(lab / "jars")
    shutil.rmtree(folder / "data", ignore_errors=True)
    ports = [needs.port + n if needs.port else free_port() for n in range(len(needs.listeners))]
    main = str(free_port(2))  # of the script, for the brokers among themselves; the next one is the controller's
    certificate, key_store = certificate_of(work)
    (folder / "extra.properties").write_text(properties(needs, ports, main, key_store))
    os.environ["EXTRA_PROPS"] = str(folder / "extra.properties")
    print(must("sh", script, "start", folder, main), end="", file=sys.stderr)
    try:
        place = Place(
            {name: f"localhost:{port}" for name, port in zip(needs.listeners, ports, strict=True)}, certificate
        )
        credentials(needs, place)
        yield place
    finally:
        call("sh", script, "stop", folder)


def properties(needs: Needs, ports: list[int], main: str, key_store: str) -> str:
    """server.properties beside the script's."""
    named = [(protocol, f"C_{protocol}", port) for protocol, port in zip(needs.listeners, ports, strict=True)]
    told = [f"PLAINTEXT://127.0.0.1:{main}", *(f"{name}://localhost:{port}" for _, name, port in named)]
    kinds = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *(f"{name}:{protocol}" for protocol, name, _ in named)]
    lines = [
        f"node.id={needs.first}",
        f"num.partitions={needs.partitions}",
        f"listeners={','.join(told)},CONTROLLER://127.0.0.1:{int(main) + 1}",
        f"advertised.listeners={','.join(told)}",
        f"listener.security.protocol.map={','.join(kinds)}",
        "inter.broker.listener.name=PLAINTEXT",
        f"sasl.enabled.mechanisms={MECHANISMS}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={key_store}",
        "delegation.token.secret.key=suites",
        *(f"{name}={value}" for name, value in needs.config),
    ]
    users = " ".join(f'user_{name}="{password}"' for name, password in needs.users)
    security = "org.apache.kafka.common.security"
    for protocol, name, _ in named:
        if protocol.startswith("SASL"):
            of = f"listener.name.{name.lower()}"
            lines.append(f"{of}.plain.sasl.jaas.config={security}.plain.PlainLoginModule required {users};")
            for mechanism in MECHANISMS.lower().split(",")[1:]:
                lines.append(f"{of}.{mechanism}.sasl.jaas.config={security}.scram.ScramLoginModule required;")
    return "".join(f"{line}\n" for line in lines)


def certificate_of(work: Path) -> tuple[str, str]:
    """A certificate for localhost, and the file with its key too."""
    certificate, both = work / "server.crt", work / "server.pem"
    if not both.exists():
        key = work / "server.key"
        make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=localhost"]
        names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
        must(*make, "-addext", names, "-keyout", key, "-out", certificate)
        both.write_text(key.read_text() + certificate.read_text())
    return str(certificate), str(both)


def credentials(needs: Needs, place: Place) -> None:
    """The SCRAM users, who are made at a broker that runs."""
    if not needs.scram:
        return
    from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    admin = AdminClient({"bootstrap.servers": place.plain})
    for name, mechanism, password in needs.scram:
        kind = ScramMechanism[re.sub(r"-", "_", mechanism)]
        change = UserScramCredentialUpsertion(name, ScramCredentialInfo(kind, 4096), password.encode())
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result()


def free_port(together: int = 1) -> int:
    """The first of as many ports in a row that nobody has."""
    while True:
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            port: int = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for further in range(port + 1, port + together):
                held.enter_context(socket.create_server(("127.0.0.1", further)))
            return port


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


TARGETS: dict[str, Callable[[Needs, Path], contextlib.AbstractContextManager[Place]]] = {
    "kwire": kwire, "kfake": kfake, "kafka": kafka,
}  # fmt: skip
