"""A Kafka cluster of one or more nodes on loopback, and a recorder of what clients say to it.

Clients have a listener of their own on each node, so that a recording of its ports holds no replication and no
controller. Node n listens on base + 10 n: clients there, brokers on + 1, controllers on + 2.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

CACHE = Path.home() / ".cache" / "kwire"
LABS = {"4.3.1": CACHE / "lab", "3.9.2": CACHE / "lab-3.9.2"}  # as lab/fetch.sh fills them
BASE = int(os.environ.get("PROVOKE_PORTS", "19000"))
LOG4J = """
rootLogger.level=WARN
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""
PROPERTIES = """
process.roles={roles}
node.id={node}
controller.quorum.voters={voters}
listeners={listeners}
advertised.listeners=CLIENTS://{advertised},BROKERS://127.0.0.1:{brokers}
listener.security.protocol.map=CLIENTS:{protocol},BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKERS
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=2
auto.create.topics.enable=false
default.replication.factor={copies}
offsets.topic.num.partitions=4
offsets.topic.replication.factor={copies}
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
allow.everyone.if.no.acl.found=true
"""


def java(release: str, *arguments: str, heap: str = "400m") -> list[str]:
    """A command of Java with a release's class path."""
    return ["java", f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
            f"{LABS[release]}/jars/*", *arguments]  # fmt: skip


class Cluster:
    """nodes: how many; settings: further properties of all nodes; own: of one node, by its number; features: as
    StorageTool takes them (group.version=0); controllers: how many of the nodes vote."""

    def __init__(
        self, folder: Path, nodes: int = 1, release: str = "4.3.1", settings: Mapping[str, object] | None = None,
        own: Mapping[int, Mapping[str, object]] | None = None, features: tuple[str, ...] = (), controllers: int = 1,
        protocol: str = "PLAINTEXT", host: str = "127.0.0.1",
    ) -> None:  # fmt: skip
        self.folder, self.release, self.features, self.protocol = folder, release, features, protocol
        self.numbers = range(1, nodes + 1)
        self.settings, self.own, self.controllers, self.host = settings or {}, own or {}, controllers, host
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def port(self, node: int = 1) -> int:
        return BASE + 10 * node

    @property
    def ports(self) -> list[int]:
        return [self.port(node) for node in self.numbers]

    @property
    def address(self) -> str:
        """bootstrap.servers"""
        return ",".join(f"{self.host}:{port}" for port in self.ports)

    def start(self) -> None:
        with socket.socket() as probe:
            assert probe.connect_ex((self.host, self.port())), f"somebody listens on {self.port()} already"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "log4j2.properties").write_text(LOG4J)
        formatting = []
        for node in self.numbers:
            (self.folder / f"{node}.properties").write_text(self._properties(node))
            command = ["kafka.tools.StorageTool", "format", "--config", str(self.folder / f"{node}.properties")]
            command += ["--cluster-id", "a3dpcmUtdHJvdWJsZS1sYQ"]
            for feature in self.features:
                command += ["--feature", feature]
            log = (self.folder / f"{node}.log").open("wb")
            formatting.append(subprocess.Popen(java(self.release, *command), stdout=log, stderr=subprocess.STDOUT))
        for one in formatting:
            assert one.wait(180) == 0, f"see {self.folder}"
        for node in self.numbers:
            self.boot(node)
        for node in self.numbers:
            self.reachable(node)

    def _properties(self, node: int) -> str:
        votes = node <= self.controllers
        port = self.port(node)
        listeners = f"CLIENTS://{self.host}:{port},BROKERS://127.0.0.1:{port + 1}"
        text = PROPERTIES.format(
            roles="broker,controller" if votes else "broker", node=node, protocol=self.protocol,
            voters=",".join(f"{n}@127.0.0.1:{self.port(n) + 2}" for n in range(1, self.controllers + 1)),
            listeners=listeners + (f",CONTROLLER://127.0.0.1:{port + 2}" if votes else ""), brokers=port + 1,
            data=self.folder / str(node), copies=min(3, len(self.numbers)),
            advertised=self.own.get(node, {}).get("advertised", f"{self.host}:{port}"),
        )  # fmt: skip
        own = {key: value for key, value in self.own.get(node, {}).items() if key != "advertised"}
        return text + "".join(f"{key}={value}\n" for key, value in {**self.settings, **own}.items())

    def boot(self, node: int) -> None:
        """Starts a node's process."""
        log = (self.folder / f"{node}.log").open("ab")
        env = {**os.environ, "LOG4J_CONFIGURATION_FILE": str(self.folder / "log4j2.properties")}
        command = java(self.release, "kafka.Kafka", str(self.folder / f"{node}.properties"))
        self.processes[node] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)

    def reachable(self, node: int) -> None:
        """Waits until a node takes connections."""
        for _ in range(1800):
            assert self.processes[node].poll() is None, f"see {self.folder}/{node}.log"
            try:
                socket.create_connection((self.host, self.port(node)), 1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError(f"see {self.folder}/{node}.log")

    def kill(self, node: int, how: int = signal.SIGKILL) -> None:
        process = self.processes.pop(node)
        process.send_signal(how)
        process.wait(40)

    @contextmanager
    def pulsed(self, node: int, stopped: float, running: float, on: bool = True) -> Iterator[None]:
        """A node's process gets little of the CPU: stopped for so many seconds, then running, again and again."""
        pid, halt = self.processes[node].pid, False
        import threading

        def pulse() -> None:
            while not halt:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(stopped)
                os.kill(pid, signal.SIGCONT)
                time.sleep(running)

        thread = threading.Thread(target=pulse)
        if on:
            thread.start()
        try:
            yield
        finally:
            halt = True
            if on:
                thread.join()

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes.values():
            process.wait(30)
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


class Recorder:
    """tcpdump on these ports while the context lasts. inside: what enters a network namespace; snaplen: what is
    kept of each packet, 0 for all."""

    def __init__(
        self, out: Path, ports: list[int], interface: str = "lo", inside: tuple[str, ...] = (), snaplen: int = 0,
    ) -> None:  # fmt: skip
        self.out, self.interface, self.inside, self.snaplen = out, interface, inside, snaplen
        self.filter = " or ".join(f"tcp port {port}" for port in ports)

    def __enter__(self) -> Recorder:
        command = [
            *self.inside,
            "tcpdump",
            "-i",
            self.interface,
            "-s",
            str(self.snaplen),
            "-B",
            "65536",
            "-U",
            "-w",
            str(self.out),
            self.filter,
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        while "listening on" not in (line := self.process.stderr.readline()):
            assert line, "tcpdump does not start"
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(1.5)
        self.process.send_signal(signal.SIGINT)
        words = self.process.communicate(timeout=60)[1]
        assert self.out.stat().st_size > 24, "tcpdump saw nothing"
        assert "\n0 packets dropped by kernel" in "\n" + words, words
