"""franz-go's kgo and kafka-go: the tests in their Go modules, built once."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from steps import FAILED, PASSED, PATIENCE, SKIPPED, Needs, Place, Results, Suite, call, must

FRANZ_GO, KAFKA_GO = "v1.22.2", "v0.4.50"
WORDS = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}


def module(folder: Path, name: str, version: str) -> Path:
    """A module's source, to be built in the folder."""
    found = json.loads(must("go", "mod", "download", "-json", f"{name}@{version}", cwd=folder))
    source = folder / "source"
    shutil.copytree(found["Dir"], source, dirs_exist_ok=True)
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    return source


def verdicts(out: str) -> Results:
    return {name: WORDS[word] for word, name in re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", out, re.MULTILINE)}


def build_kgo(folder: Path) -> None:
    source = module(folder, "github.com/twmb/franz-go", FRANZ_GO)
    must("go", "test", "-c", "-o", folder / "kgo.test", "./pkg/kgo", cwd=source)


def run_kgo(folder: Path, place: Place, only: list[str]) -> Results:
    copies = str(min(3, place.plain.count(",") + 1))
    chosen = f"^({'|'.join(only)})$" if only else "."
    out = call(
        folder / "kgo.test", "-test.v", "-test.run", chosen, "-test.timeout", f"{PATIENCE - 20}s",
        cwd=folder / "source" / "pkg" / "kgo", KGO_SEEDS=place.plain, KGO_TEST_RECORDS="20000", KGO_TEST_RF=copies,
    )  # fmt: skip
    return verdicts(out)


def build_kafka_go(folder: Path) -> None:
    source = module(folder, "github.com/segmentio/kafka-go", KAFKA_GO)
    must("go", "test", "-mod=mod", "-c", "-o", folder / "kafka.test", ".", cwd=source)
    must("go", "test", "-mod=mod", "-c", "-o", folder / "sasl.test", "./sasl", cwd=source)


def run_kafka_go(folder: Path, _: Place, only: list[str]) -> Results:
    """Its addresses are written into it. A test that panics ends the program: what is left runs in the next one."""
    source, env = folder / "source", {"KAFKA_VERSION": "3.7.0", "KAFKA_SKIP_NETTEST": "1"}
    found: Results = {}
    for program, cwd in (("kafka.test", source), ("sasl.test", source / "sasl")):
        wanted = re.findall(r"^(Test\w+)$", must(folder / program, "-test.list", "Test", cwd=cwd), re.MULTILINE)
        wanted = [name for name in wanted if name in only or not only]
        while wanted:
            chosen = f"^({'|'.join(wanted)})$"
            out = call(folder / program, "-test.v", "-test.timeout", "600s", "-test.run", chosen, cwd=cwd, **env)
            results = verdicts(out)
            begun = [name for name in re.findall(r"^=== RUN\s+(\w+)$", out, re.MULTILINE) if name not in results]
            results.update(dict.fromkeys(begun, FAILED))
            found.update(results)
            wanted = [name for name in wanted if name not in results] if results else []
    return found


SUITES = {
    "kgo": Suite(FRANZ_GO, Needs(nodes=3), build_kgo, run_kgo),
    "kafka-go": Suite(
        KAFKA_GO,
        Needs(
            listeners=("PLAINTEXT", "SASL_PLAINTEXT"),
            first=1,
            port=9092,
            users=(("adminplain", "admin-secret"),),
            scram=tuple(("adminscram", f"SCRAM-SHA-{size}", f"admin-secret-{size}") for size in (256, 512)),
            partitions=1,
            config=(("message.max.bytes", "200000000"),),
        ),
        build_kafka_go,
        run_kafka_go,
    ),
}  # fmt: skip
