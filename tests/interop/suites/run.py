"""The client libraries' own integration suites against kwire, kfake and a real broker, as a table.

    python tests/interop/suites/run.py [SUITE...] [--target kwire,kfake,kafka] [--work DIR] [--json FILE]

Suites come from the package registries, at the versions that their modules here name, and are built once, in DIR; what
they need is there or installed there: Go, Cargo, pip, npm. Packages of aiokafka and KafkaJS have no tests: those run
where KWIRE_SUITE_AIOKAFKA and KWIRE_SUITE_KAFKAJS name a checkout of their repositories at that version. kfake is built
from its module; the real broker is KWIRE_LAB (a folder with jars/ and broker.sh beside it, or named by
KWIRE_LAB_SCRIPT). Every suite gets a broker that has just started. A row of the table is a suite, a cell what passed
and failed; beneath it stand the tests that fail on kwire, each with what the real broker did, and suites/known.txt's
words for those that are explained. Not part of the normal suite: it takes many minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

import go_suites
import node_suites
import python_suites
import rust_suites
from compare import options, table
from steps import FAILED, PASSED, SKIPPED, Results
from targets import HERE, TARGETS

SUITES = go_suites.SUITES | python_suites.SUITES | node_suites.SUITES | rust_suites.SUITES


def known() -> dict[str, str]:
    """Why a test fails on kwire and not on the real broker, by suite and test."""
    lines = (HERE / "known.txt").read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def cell(results: Results | None) -> str:
    if results is None:
        return "-"
    counts = [sum(verdict == word for verdict in results.values()) for word in (PASSED, FAILED, SKIPPED)]
    return f"{counts[0]}/{counts[1]}" + (f" ({counts[2]} skipped)" if counts[2] else "")


def main() -> int:
    asked = options(__doc__ or "", "SUITE", SUITES, "kwire,kfake,kafka")
    found: dict[str, dict[str, Results]] = {}
    for name in asked.names or SUITES:
        suite = SUITES[name]
        if suite.checkout and suite.checkout not in os.environ:
            print(f"{name}: left out, {suite.checkout} names no checkout of it", file=sys.stderr)
            continue
        folder = asked.work / f"{name}-{suite.version}"
        if not (folder / "built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            suite.build(folder)
            (folder / "built").touch()
        found[name] = {}
        for target in asked.targets:
            begun = time.monotonic()
            with TARGETS[target](suite.needs, asked.work) as place:
                found[name][target] = suite.run(folder, place)
            print(
                f"{name} against {target}: {cell(found[name][target])}, {time.monotonic() - begun:.0f} s",
                file=sys.stderr,
            )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))
    report(found, asked.targets)
    return 0


def report(found: dict[str, dict[str, Results]], targets: list[str]) -> None:
    cells = {
        f"{name} {SUITES[name].version}": [cell(each.get(target)) for target in targets] for name, each in found.items()
    }
    table("suite", cells, targets)
    reasons = known()
    for name, by_target in found.items():
        for test, verdict in by_target.get("kwire", {}).items():
            if verdict == FAILED:
                real = by_target.get("kafka", {}).get(test, "not run")
                print(f"{name}: {test}: real {real}; {reasons.get(f'{name} {test}', 'not explained')}")


if __name__ == "__main__":
    sys.exit(main())
