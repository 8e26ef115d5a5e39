"""kwire fault: rules added to a broker or a proxy that runs, listed and cleared."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kwire.errors import KwireError

VARIABLE = "KWIRE_CONTROL"


def _found(context: click.Context, _: click.Parameter, value: str | None) -> str:
    """The socket that a command names, or the group before it, or the environment."""
    assert context.parent is not None
    found = value or context.parent.params["control"]
    if not found:
        raise click.UsageError(f"--control PATH, or {VARIABLE}, names the socket of the broker or proxy")
    return str(found)


control_option = click.option(
    "--control", type=click.Path(), callback=_found, metavar="PATH",
    help=f"The socket of its --control; {VARIABLE} names one too.",
)  # fmt: skip


@click.group(name="fault")
@click.option("--control", type=click.Path(), envvar=VARIABLE, metavar="PATH",
              help="For the command behind it, which takes it too.")  # fmt: skip
def command(control: str | None) -> None:
    """Faults of a kwire broker or kwire proxy that runs, changed while clients are connected.

    \b
    kwire proxy broker:9092 --control /tmp/proxy.sock
    export KWIRE_CONTROL=/tmp/proxy.sock
    kwire fault add Fetch,client=billing*:delay=2s,chance=0.1
    kwire fault list
    kwire fault clear

    kwire broker --help says what a rule may be.
    """


@command.command(short_help="Adds rules, which hold from the next request on.")
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@control_option
def add(rules: tuple[str, ...], control: str) -> None:
    """Adds rules, which hold from the next request on, and prints each with its number: all of them, or none."""
    added: list[dict[str, Any]] = []
    try:
        for rule in rules:
            added.append(_ask(control, {"do": "add", "rule": rule}))
    except KwireError:
        for made in added:
            _ask(control, {"do": "clear", "number": made["number"]})
        raise
    for made in added:
        print(_row(made["number"], made["rule"]))
        if made.get("note"):
            print(f"kwire: fault {_row(made['rule'])}: {_row(made['note'])}", file=sys.stderr)


@command.command(name="list", short_help="The rules, and how often each was met.")
@control_option
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
def list_(control: str, output: str) -> None:
    """The rules by their numbers: how many requests came that each is about, and to how many it was applied."""
    rules: Any = _ask(control, {"do": "list"})["rules"]
    if output == "json":
        for rule in rules:
            print(json.dumps(rule))
        return
    if not rules:
        print("kwire: no rules", file=sys.stderr)
        return
    print(f"{'number':>6}  {'came':>9}  {'met':>9}  rule")
    for rule in rules:
        print(f"{rule['number']:>6}  {rule['came']:>9,}  {rule['met']:>9,}  {_row(rule['rule'])}")


@command.command(short_help="Takes rules away again.")
@click.argument("numbers", nargs=-1, type=click.IntRange(1), metavar="[NUMBER...]")
@control_option
def clear(numbers: tuple[int, ...], control: str) -> None:
    """Takes rules away by their numbers, or all of them; pauses end with them."""
    asked: list[dict[str, Any]] = [{"do": "clear", "number": number} for number in numbers] or [{"do": "clear"}]
    cleared = sum(_ask(control, each)["cleared"] for each in asked)
    print(f"kwire: {cleared:,} rule{'s' * (cleared != 1)} cleared", file=sys.stderr)


def _ask(control: str, asked: dict[str, Any]) -> dict[str, Any]:
    from kwire.broker.control import ask

    return ask(control, asked)


def _row(*values: Any) -> str:
    """What another program said, safe to show."""
    from kwire.render.lines import clean

    return clean("  ".join(map(str, values)))
