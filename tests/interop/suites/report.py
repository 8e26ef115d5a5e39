"""The table of what the clients' suites found, and whether kwire stands where it should.

A row of the table is a suite, a cell what passed and failed. Beneath it stand the tests that pass on the real broker
and not on kwire, with known.txt's words for those that are explained; then what share they are, and whether more of a
suite fails on kwire than on kfake.
"""

from __future__ import annotations

from pathlib import Path

from compare import table
from steps import FAILED, LATER, PASSED, SKIPPED, TWICE, Results

SHARE = 0.01  # of the tests that pass on the real broker may fail on kwire
GOOD = (PASSED, LATER)


def known() -> dict[str, str]:
    """Why a test fails on kwire and not on the real broker, by suite and test."""
    lines = (Path(__file__).parent / "known.txt").read_text("utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def passed(results: Results) -> list[str]:
    return [test for test, verdict in results.items() if verdict in GOOD]


def failed(results: Results, others: Results) -> int:
    """How many failed or were never reached of what is in either."""
    return sum(results.get(test) not in (*GOOD, SKIPPED) for test in results.keys() | others.keys())


def cell(results: Results | None) -> str:
    if results is None:
        return "-"
    bad = sum(verdict in (FAILED, TWICE) for verdict in results.values())
    counts = {word: sum(verdict == word for verdict in results.values()) for word in (SKIPPED, LATER)}
    further = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f"{len(passed(results))}/{bad}" + (f" ({further})" if further else "")


def report(found: dict[str, dict[str, Results]], targets: list[str], versions: dict[str, str]) -> int:
    """Prints it. 1: a failure is not explained, there are too many, or kfake fails fewer of a suite; else 0."""
    cells = {f"{name} {versions[name]}": [cell(each.get(target)) for target in targets] for name, each in found.items()}
    table("suite", cells, targets)
    reasons, short, pass_there, missing = known(), False, 0, 0
    for name, by_target in found.items():
        ours, real, fake = (by_target.get(target) for target in ("kwire", "kafka", "kfake"))
        if ours is not None and real is not None:
            lacking = [test for test in passed(real) if ours.get(test) not in GOOD]
            pass_there, missing = pass_there + len(passed(real)), missing + len(lacking)
            if lacking:
                print(f"{name}: {len(lacking)} of the {len(passed(real))} that pass on kafka do not pass on kwire")
            for test in lacking:
                reason = reasons.get(f"{name} {test}")
                print(f"  {test}: {ours.get(test, 'not reached')}; {reason or 'not explained'}")
                short |= reason is None
        if ours is not None and fake is not None and (more := failed(ours, fake) - failed(fake, ours)) > 0:
            print(f"{name}: {more} more fail on kwire than on kfake")
            short = True
    if pass_there:
        print(f"of {pass_there} tests that pass on kafka {missing} do not on kwire: {missing / pass_there:.2%}")
    return int(short or missing > SHARE * pass_there)
