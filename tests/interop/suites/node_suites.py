"""KafkaJS: jest, in a copy of its repository."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from steps import PATIENCE, Needs, Place, Results, Suite, call, junit, must

KAFKAJS = "2.2.4"


def build_kafkajs(folder: Path) -> None:
    shutil.copytree(os.environ[SUITES["kafkajs"].checkout], folder / "source", symlinks=True)
    if not (folder / "source" / "node_modules").exists():
        must("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder / "source")


def run_kafkajs(folder: Path, _: Place, only: list[str]) -> Results:
    """Its addresses are written into it."""
    source = folder / "source"
    report = source / "report.xml"
    report.unlink(missing_ok=True)
    words = ["--ci", "--no-watchman", "--forceExit", "--maxWorkers=2"]
    if only:
        words += ["--testNamePattern", f"^({'|'.join(re.escape(name.partition('::')[2]) for name in only)})$"]
    call(
        "npx", "jest", *words, cwd=source, KAFKA_VERSION="2.4", NODE_ENV="test", JEST_JUNIT_OUTPUT_NAME=report.name,
        KAFKAJS_DEBUG_PROTOCOL_BUFFERS="1", JEST_JUNIT_CLASSNAME="{filepath}", JEST_JUNIT_TITLE="{classname} {title}",
    )  # fmt: skip
    if not report.exists():
        raise SystemExit(f"KafkaJS left no report within {PATIENCE} s")
    return junit(report)


SUITES = {
    "kafkajs": Suite(
        KAFKAJS,
        Needs(
            nodes=3,
            listeners=("PLAINTEXT", "SSL", "SASL_SSL"),
            port=9092,
            users=(("test", "testtest"), ("bob", "bobbob"), ("alice", "alicealice")),
            scram=(
                ("testscram", "SCRAM-SHA-256", "testtestscram=256"),
                ("testscram", "SCRAM-SHA-512", "testtestscram=512"),
            ),
            partitions=2,
        ),
        build_kafkajs,
        run_kafkajs,
        "KWIRE_SUITE_KAFKAJS",
    ),
}
