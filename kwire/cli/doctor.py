"""kwire doctor: what is wrong, with proof."""

from __future__ import annotations

import click

from kwire.cli.captures import Captures, capture_options
from kwire.cli.detecting import Detecting, detector_options
from kwire.errors import Exit

FORMATS = ("text", "json", "html")


class WithList(click.Command):
    """--list needs no capture."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--list" in args and "--" not in args:
            args = [arg for arg in args if arg != "--list"]
            listed(next((arg.partition("=")[2] for arg in args if arg.startswith("--format=")), "") or _after(args))
            ctx.exit(Exit.OK)
        return super().parse_args(ctx, args)


def _after(args: list[str]) -> str:
    return args[args.index("--format") + 1] if "--format" in args[:-1] else "text"


@click.command(cls=WithList)
@detector_options
@click.option("--list", "_listed", is_flag=True, help="The detectors: what each looks for, thresholds, the rule.")
@click.option("--all", "everything", is_flag=True, help="Each finding by itself, and all of them.")
@click.option("--format", "output", type=click.Choice(FORMATS), default="text", help="The output format.")
@capture_options
def command(captures: Captures, detecting: Detecting, _listed: bool, everything: bool, output: str) -> Exit:
    """Says what is wrong in captures, with proof: findings, worst first, and what was looked for and not found.

    A finding names the packets that show it (kwire decode CAPTURE --frame N) and what would disprove it; kwire
    explain NAME describes a detector. JSON has one finding per line. Exit status 1 when a finding is an error."""
    from kwire.analyze.doctor import Doctor
    from kwire.cli.output import DOCUMENT_WIDTH, export, show, width
    from kwire.cli.page_facts import of_pass
    from kwire.render.findings import diagnosis_json, diagnosis_lines

    doctor = Doctor(*detecting.chosen())
    done = captures.each_batch(doctor.add, doctor.close, tracking=True)
    diagnosis = doctor.diagnose()
    diagnosis = diagnosis if everything else diagnosis.gathered()
    if output == "json":
        for line in diagnosis_json(diagnosis):
            print(line)
    elif output == "html":
        print(export(diagnosis_lines(diagnosis, DOCUMENT_WIDTH, everything), "html", "kwire doctor", of_pass(done)))
    else:
        show(diagnosis_lines(diagnosis, width(), everything))
    return done.conclude(diagnosis.grave, foreign=bool(diagnosis.findings))


def listed(output: str) -> None:
    """All detectors."""
    from kwire.analyze.detectors import names
    from kwire.cli.output import show, width
    from kwire.render.findings import explain_json, list_lines
    from kwire.render.jsonform import dumps

    if output == "json":
        for name in names():
            print(dumps(explain_json(name), indent=None))
    else:
        show(list_lines(list(names()), width()))
