"""What doctor, sniff --doctor and proxy --doctor share: which detectors look, and with which thresholds."""

from __future__ import annotations

from typing import NamedTuple

import click

from kwire.cli.captures import Command, bundled, with_options


def detector_options(command: Command) -> Command:
    """Which detectors are wanted: the command gets it as detecting."""
    options = [
        click.option("--only", multiple=True, metavar="NAME", help="Only this detector; repeatable."),
        click.option("--skip", multiple=True, metavar="NAME", help="Without this detector; repeatable."),
        click.option("--set", "settings", multiple=True, metavar="NAME.THRESHOLD=VALUE",
                     help="Another threshold; repeatable. kwire doctor --list names them."),
    ]  # fmt: skip
    return with_options(bundled(command, "detecting", Detecting), options)


class Detecting(NamedTuple):
    """What detector_options gave."""

    only: tuple[str, ...]
    skip: tuple[str, ...]
    settings: tuple[str, ...]

    def needs(self, doctor: bool) -> None:
        """Raises click.UsageError when anything was given and no doctor looks."""
        if any(self) and not doctor:
            raise click.UsageError("--only, --skip and --set belong to --doctor")

    def chosen(self) -> tuple[list[str], dict[str, dict[str, float]]]:
        """Detectors by name, and thresholds that differ, as Doctor takes them. Raises click.UsageError."""
        from kwire.analyze.doctor import chosen, limits_of
        from kwire.errors import UnknownDetector

        try:
            return chosen(self.only, self.skip), limits_of(self.settings)
        except UnknownDetector as unknown:
            raise click.UsageError(str(unknown)) from None
