"""Features of Kafka, each tried with every client that has it, against kwire, kfake and a real broker: a table.

    python tests/interop/matrix/matrix.py [CLIENT...] [--target kwire,kafka] [--work DIR] [--json FILE]

A client is a program that tries its features one after another against an address and prints "ok NAME", "no NAME WHY"
or "lacks NAME" for each. Clients come from the package registries and are built once, in DIR; targets are those of the
suites beside this folder (KWIRE_LAB). A client whose library or compiler is not there is left out, and a line says so.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "suites"))

from clients import CLIENTS  # noqa: E402
from compare import options, table  # noqa: E402
from steps import Needs, call  # noqa: E402
from targets import TARGETS  # noqa: E402

NEEDS = Needs(
    listeners=("PLAINTEXT", "SASL_PLAINTEXT"),
    users=(("admin", "admin-secret"),),
    config=(("group.initial.rebalance.delay.ms", "0"),),
)
Verdicts = dict[str, str]  # of features: ok, lacks, or why not


def verdicts(out: str) -> Verdicts:
    found: Verdicts = {}
    for line in out.splitlines():
        word, _, rest = line.partition(" ")
        name, _, why = rest.partition(" ")
        if word in ("ok", "lacks"):
            found[name] = word
        elif word == "no":
            found[name] = why or "no"
    return found


def cell(found: Verdicts | None) -> str:
    if found is None:
        return "-"
    tried = [verdict for verdict in found.values() if verdict != "lacks"]
    good = tried.count("ok")
    return f"{good}/{len(tried) - good}"


def main() -> int:
    asked = options(__doc__ or "", "CLIENT", CLIENTS, "kwire,kafka")
    found: dict[str, dict[str, Verdicts]] = {}
    for name in asked.names or CLIENTS:
        command = CLIENTS[name](asked.work)
        if isinstance(command, str):
            print(f"{name}: left out, {command}", file=sys.stderr)
            continue
        found[name] = {}
        for target in asked.targets:
            begun = time.monotonic()
            with TARGETS[target](NEEDS, asked.work) as place:
                out = call(*command, place.plain, place.at.get("SASL_PLAINTEXT", ""))
            found[name][target] = verdicts(out)
            if not found[name][target]:
                print(out[-2_000:], file=sys.stderr)
            took = time.monotonic() - begun
            print(f"{name} against {target}: {cell(found[name][target])}, {took:.0f} s", file=sys.stderr)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1))
    report(found, asked.targets)
    return 0


def report(found: dict[str, dict[str, Verdicts]], targets: list[str]) -> None:
    """What passed and failed by client; then each feature that failed somewhere, and why."""
    table("client", {name: [cell(each.get(target)) for target in targets] for name, each in found.items()}, targets)
    for name, by_target in found.items():
        for feature in dict.fromkeys(feature for each in by_target.values() for feature in each):
            told = {target: by_target[target].get(feature, "not reached") for target in targets}
            if set(told.values()) - {"ok", "lacks"}:
                print(f"{name} {feature}: " + "; ".join(f"{target} {why[:160]}" for target, why in told.items()))


if __name__ == "__main__":
    sys.exit(main())
