"""What the commands share that try clients against several brokers: their options, and the table of what came of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def options(about: str, what: str, names: Iterable[str], targets: str) -> argparse.Namespace:
    """names: which of them, empty for all; targets, work: a folder that is there; json."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", metavar=what, nargs="*", choices=[[], *names], default=[])
    parser.add_argument("--target", dest="targets", default=targets.split(","), type=lambda text: text.split(","))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "kwire" / "suites")
    parser.add_argument("--json", type=Path)
    found = parser.parse_args()
    found.work.mkdir(parents=True, exist_ok=True)
    return found


def table(what: str, cells: Mapping[str, Sequence[str]], targets: Sequence[str]) -> None:
    """Prints a row for each name, a cell for each target."""
    print(f"| {what} | " + " | ".join(targets) + " |")
    print("|---|" + "---|" * len(targets))
    for name, row in cells.items():
        print(f"| {name} | " + " | ".join(row) + " |")
