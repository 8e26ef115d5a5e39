"""kwire completion: what a shell needs to complete commands and options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from kwire.outputs import Output

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_KWIRE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--print", "printed", is_flag=True, help="Print the script instead of installing it.")
@click.pass_context
def command(ctx: click.Context, shell: str, printed: bool) -> None:
    """Installs completion of commands and options for a shell, where that shell looks for it: bash and fish find it by
    themselves, zsh when ~/.zfunc is in its fpath."""
    found = get_completion_class(shell)
    assert found
    script = found(ctx.find_root().command, {}, "kwire", VARIABLE).source()
    if printed:
        click.echo(script)
        return
    path = place(shell)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Output(path) as file:
        file.write(script.encode())
    print(f"kwire: {path}: completion for {shell}, from the next shell on", file=sys.stderr)
    if shell == "zsh":
        print("kwire: ~/.zshrc needs, before compinit: fpath+=~/.zfunc", file=sys.stderr)


def place(shell: str) -> Path:
    """Where the shell looks for a user's completions."""
    if shell == "zsh":
        return Path.home() / ".zfunc" / "_kwire"
    if shell == "fish":
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "fish", "completions", "kwire.fish")
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data, "bash-completion", "completions", "kwire")
