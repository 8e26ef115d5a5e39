"""The client libraries' own integration suites against kwire, kfake and a real broker, as a table.

    python tests/interop/suites/run.py [SUITE...] [--target kwire,kfake,kafka] [--work DIR] [--json FILE]

Suites come from the package registries, at the versions that their modules here name, and are built once, in DIR; what
they need is there or installed there: Go, Cargo, pip, npm. Packages of aiokafka and KafkaJS have no tests: those are
built where KWIRE_SUITE_AIOKAFKA and KWIRE_SUITE_KAFKAJS name a checkout of their repositories at that version. kfake is
built from its module; the real broker is KWIRE_LAB (a folder with jars/ and broker.sh beside it, or named by
KWIRE_LAB_SCRIPT). Every suite gets a broker that has just started. Tests that failed, of whatever target, are tried a
second time by themselves. Verdicts go into FILE as they come, and what it has already is not run again. report.py says
what the table beneath shows. Exit status 1: kwire has less than what is asked. Not part of the normal suite: it takes
many minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import go_suites
import node_suites
import python_suites
import rust_suites
from compare import options
from report import cell, report
from steps import FAILED, LATER, PASSED, TWICE, Results, Suite
from targets import TARGETS

SUITES = go_suites.SUITES | python_suites.SUITES | node_suites.SUITES | rust_suites.SUITES
Found = dict[str, dict[str, Results]]  # by suite, then by target


def built(name: str, suite: Suite, work: Path) -> Path | None:
    """The folder of a suite, None where its source is lacking."""
    folder = work / f"{name}-{suite.version}"
    if not (folder / "built").exists():
        if suite.checkout and suite.checkout not in os.environ:
            print(f"{name}: left out, {suite.checkout} names no checkout of it", file=sys.stderr)
            return None
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        suite.build(folder)
        (folder / "built").touch()
    return folder


def again(results: Results, second: Results) -> Results:
    """The verdicts after a second try of those that failed."""
    return {
        test: (LATER if second.get(test) == PASSED else TWICE) if verdict == FAILED else verdict
        for test, verdict in results.items()
    }


def main() -> int:
    asked = options(__doc__ or "", "SUITE", SUITES, "kwire,kfake,kafka")
    found: Found = json.loads(asked.json.read_text()) if asked.json and asked.json.exists() else {}

    def run(name: str, target: str, folder: Path, only: list[str]) -> Results:
        begun = time.monotonic()
        with TARGETS[target](SUITES[name].needs, asked.work) as place:
            results = SUITES[name].run(folder, place, only)
        what = "second try" if only else "all"
        print(f"{name} against {target}, {what}: {cell(results)}, {time.monotonic() - begun:.0f} s", file=sys.stderr)
        return results

    def keep(name: str, target: str, results: Results) -> None:
        found.setdefault(name, {})[target] = results
        if asked.json:
            asked.json.write_text(json.dumps(found, indent=1))

    chosen = asked.names or list(SUITES)
    for name in chosen:
        for target in asked.targets:
            if target not in found.get(name, {}) and (folder := built(name, SUITES[name], asked.work)):
                keep(name, target, run(name, target, folder, []))
            results = found.get(name, {}).get(target, {})
            failed = [test for test, verdict in results.items() if verdict == FAILED]
            if failed and (folder := built(name, SUITES[name], asked.work)):
                keep(name, target, again(results, run(name, target, folder, failed)))
    versions = {name: suite.version for name, suite in SUITES.items()}
    return report({name: found[name] for name in chosen if name in found}, asked.targets, versions)


if __name__ == "__main__":
    sys.exit(main())
