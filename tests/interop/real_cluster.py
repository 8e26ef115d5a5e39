"""Three nodes of the real Kafka on loopback, each broker and controller, of which any can be killed and started again.

KWIRE_LAB is a folder with jars/ of Kafka. Clients have a listener of their own, so that what brokers say to each other
is on other ports.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

JARS = Path(os.environ.get("KWIRE_LAB", "none"), "jars")
HOST = "127.0.0.1"
START = 120.0  # seconds, on a machine that is busy
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*")
PROPERTIES = """
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=CLIENT://{host}:{client},INTERNAL://{host}:{internal},CONTROLLER://{host}:{controller}
listener.security.protocol.map={client_protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions=3
default.replication.factor={copies}
min.insync.replicas={least}
offsets.topic.num.partitions=3
offsets.topic.replication.factor={copies}
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={least}
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={least}
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
leader.imbalance.check.interval.seconds=5
log.retention.ms=-1
"""
LOGGING = """
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


def at_hand() -> bool:
    """Whether there are Java and Kafka's jars."""
    return JARS.is_dir() and shutil.which("java") is not None


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        return [stack.enter_context(socket.create_server((HOST, 0))).getsockname()[1] for _ in range(count)]


class RealCluster:
    """nodes: so many; extra: further lines of server.properties; protocol: of the clients' listener; options: of the
    Java that runs the nodes."""

    def __init__(
        self, folder: Path, nodes: int = 3, extra: str = "", protocol: str = "PLAINTEXT", options: tuple[str, ...] = ()
    ) -> None:
        self.folder, self.extra, self.protocol, self.options = folder, extra, protocol, options
        ports = free_ports(3 * nodes)
        self.ports = {node: ports[3 * (node - 1) : 3 * node] for node in range(1, nodes + 1)}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def address(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.client_ports)

    @property
    def client_ports(self) -> list[int]:
        return [ports[0] for ports in self.ports.values()]

    def __enter__(self) -> RealCluster:
        try:
            cluster = self._tool("kafka.tools.StorageTool", "random-uuid").split()[-1]
            for node in self.ports:
                self._format(node, cluster)
            for node in self.ports:
                self.start(node)
            for node in self.ports:
                self.wait(node)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def start(self, node: int) -> None:
        home = self.folder / str(node)
        self.processes[node] = subprocess.Popen(
            [*JAVA[:1], "-Xmx400m", *self.options, *JAVA[1:], "kafka.Kafka", str(home / "server.properties")],
            stdout=(home / "log").open("wb"), stderr=subprocess.STDOUT,
            env={**os.environ, "LOG4J_CONFIGURATION_FILE": str(home / "log4j2.properties")},
        )  # fmt: skip

    def wait(self, node: int) -> None:
        """Until the node says that it has started."""
        log, end = self.folder / str(node) / "log", time.monotonic() + START
        while b"Kafka Server started" not in log.read_bytes():
            if self.processes[node].poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"node {node} does not start: {log.read_text()[-2000:]}")
            time.sleep(0.2)

    def kill(self, node: int) -> None:
        """As a power cut."""
        self.processes[node].send_signal(signal.SIGKILL)
        self.processes[node].wait()

    def _format(self, node: int, cluster: str) -> None:
        home = self.folder / str(node)
        home.mkdir(parents=True)
        client, internal, controller = self.ports[node]
        copies = min(len(self.ports), 3)
        text = PROPERTIES.format(
            node=node, host=HOST, client=client, internal=internal, controller=controller, folder=home,
            voters=",".join(f"{each}@{HOST}:{ports[2]}" for each, ports in self.ports.items()),
            copies=copies, least=max(copies - 1, 1), client_protocol=f"CLIENT:{self.protocol}",
        )  # fmt: skip
        (home / "server.properties").write_text(text + self.extra)
        (home / "log4j2.properties").write_text(LOGGING)
        self._tool(
            "kafka.tools.StorageTool", "format", "--config", str(home / "server.properties"), "--cluster-id", cluster
        )

    def _tool(self, name: str, *arguments: str) -> str:
        done = subprocess.run([*JAVA, name, *arguments], capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        return done.stdout
