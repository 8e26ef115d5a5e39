"""kwire help: the guide's pages, and the help of commands."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kwire import guide
from kwire.cli.output import colored, show, width
from kwire.counted import counted
from kwire.errors import UnknownName
from kwire.render.lines import Line


@click.command("help")
@click.argument("words", metavar="[PAGE|COMMAND]", nargs=-1)
@click.option("--man", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Write man pages there, one for each command.")  # fmt: skip
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], man: Path | None) -> None:
    """The guide: its pages, or one of them; or the options of a command.

    \b
    kwire help                what there is to read
    kwire help evictions      a page
    kwire help read           the options of kwire read
    """
    if man is not None:
        from kwire.cli.manpages import write

        root = ctx.find_root().command
        assert isinstance(root, click.Group)
        print(f"kwire: {counted(len(write(root, man)), 'man page')} in {man}", file=sys.stderr)
    elif not words:
        show(_contents())
    elif len(words) == 1 and words[0] in guide.names():
        _show(guide.page(words[0]).text)
    else:
        click.echo(_help_of(ctx, words))


def _contents() -> list[Line]:
    pages = [guide.page(name) for name in guide.names()]
    wide = max(len(page.name) for page in pages)
    lines: list[Line] = [[("pages, for kwire help PAGE", "head")], []]
    for page in pages:
        lines.append([(f"  {page.name.ljust(wide)}  ", "name"), (page.title, "")])
    return [
        *lines,
        [],
        [("kwire help COMMAND tells a command's options, kwire --help which commands there are", "dim")],
    ]


def _help_of(ctx: click.Context, words: tuple[str, ...]) -> str:
    """As COMMAND --help. Raises UnknownName."""
    group, parent = ctx.find_root().command, ctx.find_root()
    for word in words:
        found = group.get_command(parent, word) if isinstance(group, click.Group) else None
        if found is None:
            raise UnknownName("page or command", " ".join(words), _near(ctx, word))
        group, parent = found, click.Context(found, info_name=word, parent=parent, **found.context_settings)
    return group.get_help(parent)


def _near(ctx: click.Context, word: str) -> tuple[str, ...]:
    import difflib

    root = ctx.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    return tuple(difflib.get_close_matches(word, [*guide.names(), *commands], 3, 0.5))


def _show(text: str) -> None:
    """Markdown as it is into a pipe, laid out on a terminal."""
    if not colored() and not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=min(width(), 100), force_terminal=True, color_system="standard" if colored() else None)
    with console.capture() as capture:
        console.print(Markdown(text, code_theme="ansi_dark"))
    click.echo(capture.get(), nl=False, color=colored())
