"""rskafka: the tests in its crate."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from steps import FAILED, PASSED, SKIPPED, Needs, Place, Results, Suite, call, must

RSKAFKA, RSASL = "0.6.0", "2.3.1"
WORDS = {"ok": PASSED, "FAILED": FAILED, "ignored": SKIPPED}


def build_rskafka(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "lib.rs").touch()
    manifest = f'[package]\nname="fetch"\nversion="0.1.0"\nedition="2021"\n[dependencies]\nrskafka="={RSKAFKA}"\n'
    (folder / "Cargo.toml").write_text(manifest)
    must("cargo", "fetch", "-q", cwd=folder)
    found = json.loads(must("cargo", "metadata", "--format-version", "1", "--offline", cwd=folder).splitlines()[-1])
    source = next(Path(each["manifest_path"]).parent for each in found["packages"] if each["name"] == "rskafka")
    shutil.copytree(source, folder / "source")
    (folder / "source" / "rust-toolchain.toml").unlink(missing_ok=True)
    # that of its lock file no longer compiles
    must("cargo", "update", "-q", "-p", "rsasl", "--precise", RSASL, cwd=folder / "source")
    must("cargo", "test", "-q", "--no-run", "--tests", cwd=folder / "source")


def run_rskafka(folder: Path, place: Place, only: list[str]) -> Results:
    exactly = ["--exact", *only] if only else []
    out = call(
        "cargo", "test", "--no-fail-fast", "--tests", "--", "--test-threads", "2", *exactly,
        cwd=folder / "source", TEST_INTEGRATION="1", KAFKA_CONNECT=place.plain, TEST_BROKER_IMPL="kafka",
    )  # fmt: skip
    lines = re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", out, re.MULTILINE)
    return {name: WORDS[word] for name, word in lines}


SUITES = {
    "rskafka": Suite(RSKAFKA, Needs(config=(("auto.create.topics.enable", "false"),)), build_rskafka, run_rskafka)
}
