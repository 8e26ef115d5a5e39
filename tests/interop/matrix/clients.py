"""The clients of the matrix: each gives its command, to which addresses are added, or why it cannot be had."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from steps import call, must

HERE = Path(__file__).parent
JAVA_AGES = ("3.9.2", "2.8.2", "2.0.1")
MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
JAVA = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1"]
Command = list[str | Path] | str


def python(library: str, program: str, _: Path) -> Command:
    if importlib.util.find_spec(library) is None:
        return f"{library} is not installed"
    return [sys.executable, HERE / program]


def java(age: str, work: Path) -> Command:
    """Built against the lab's client; run with it, or with a client of that age."""
    if not age:
        return jvm(HERE / "java", "Matrix", work)
    newest = jvm(HERE / "java", "Matrix", work)
    if isinstance(newest, str):
        return newest
    client = work.parent / "clients" / f"java-{age}"
    if not client.is_dir():
        if not shutil.which("mvn"):
            return f"needs {client}, or mvn"
        artifact = f"-Dartifact=org.apache.kafka:kafka-clients:{age}"
        must("mvn", "-q", "-B", MAVEN, artifact, f"-DoutputDirectory={client}")
    names = ("slf4j-api", "snappy-java", "lz4-java", "zstd-jni", "jackson-*")
    beside = [jar for name in names for jar in Path(os.environ["KWIRE_LAB"], "jars").glob(f"{name}-*.jar")]
    path = ":".join(map(str, [work / "matrix-Matrix", *client.glob("*.jar"), *beside]))
    # what an old client lacks is no matter until it is asked for
    trust = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"]
    return [*JAVA, *trust, "-cp", path, "Matrix"]


def jvm(source: Path, main: str, work: Path) -> Command:
    """A program of the folder or file, built against the lab's jars once for each state of it, and run with them."""
    jars = Path(os.environ.get("KWIRE_LAB", ""), "jars")
    if not (os.environ.get("KWIRE_LAB") and jars.is_dir() and shutil.which("javac")):
        return "needs Java and KWIRE_LAB"
    out, sources = work / f"matrix-{main}", sorted(source.glob("*.java")) or [source]
    if not out.exists() or out.stat().st_mtime < max(each.stat().st_mtime for each in sources):
        shutil.rmtree(out, ignore_errors=True)
        must("javac", "-nowarn", "-cp", f"{jars}/*", "-d", out, *sources)
        os.utime(out)
    return [*JAVA, "-cp", f"{out}:{jars}/*", main]


def go(library: str, work: Path) -> Command:
    """Built by Go each time: it knows what has changed."""
    if shutil.which("go") is None:
        return "needs go"
    program = work / "matrix-go"
    out = call("go", "build", "-o", program, ".", cwd=HERE / "go")
    return f"go build: {out.strip()[-300:]}" if out.strip() else [program, library]


def node(work: Path) -> Command:
    if shutil.which("npm") is None:
        return "needs node and npm"
    folder = work / "matrix-node"
    if not (folder / "node_modules" / "kafkajs").exists():
        folder.mkdir(exist_ok=True)
        must("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "kafkajs@2.2.4")
    return [
        "env",
        f"NODE_PATH={folder / 'node_modules'}",
        "KAFKAJS_NO_PARTITIONER_WARNING=1",
        "node",
        HERE / "kafkajs.js",
    ]


CLIENTS: dict[str, Callable[[Path], Command]] = {
    "java": partial(java, ""),
    **{f"java-{age}": partial(java, age) for age in JAVA_AGES},
    "streams": partial(jvm, HERE.parent / "ExactlyOnce.java", "ExactlyOnce"),
    "connect": partial(jvm, HERE / "connect" / "ConnectOnce.java", "ConnectOnce"),
    "librdkafka": partial(python, "confluent_kafka", "librdkafka.py"),
    "kafka-python": partial(python, "kafka", "kafka_python.py"),
    "aiokafka": partial(python, "aiokafka", "aiokafka_features.py"),
    "franz-go": partial(go, "franz-go"),
    "sarama": partial(go, "sarama"),
    "kafkajs": node,
}
