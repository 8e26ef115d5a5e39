"""Options and arguments that several commands share: names with completion, the schema overlay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from kwire.codec.library import Library


class Name(click.ParamType[str]):
    """A message's or API's name; completes names, and old ones once they are begun."""

    name = "name"

    def shell_complete(self, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from kwire.schema.errorcodes import errors
        from kwire.schema.registry import builtin

        names = builtin().names() + ([error.name for error in errors] if ctx.info_name == "explain" else [])
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


class WithCodes(click.Command):
    """Lets the error code -1 through, which looks like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "-1" in args and "--" not in args:
            args = [*(arg for arg in args if arg != "-1"), "--", "-1"]
        return super().parse_args(ctx, args)


class Version(click.ParamType[int]):
    """A version; completes those of the message that stands before it."""

    name = "version"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).removeprefix("v")
        if not text.isdecimal():
            self.fail(f"{value} is not a version", param, ctx)
        return int(text)

    def shell_complete(self, ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from kwire.errors import UnknownName
        from kwire.schema.registry import builtin

        # while -v lacks its value, click has not yet said which argument is the name
        name = ctx.params.get("name") or ctx.params.get("as_name") or next(iter(ctx.args), "")
        try:
            found = builtin().find(str(name))
        except UnknownName:
            return []
        versions = (found.message or found.definition.messages[0]).versions
        return [CompletionItem(str(version)) for version in versions.each() if str(version).startswith(incomplete)]


schema_option = click.option(
    "--schema",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR|JAR",
    help="Definitions of another Kafka, in front of kwire's own: a jar, or a folder of its .json files.",
)


def library(schema: Path | None) -> Library:
    """Plans from kwire's definitions, or with those of schema in front of them."""
    from kwire.codec.library import Library, builtin_library

    if schema is None:
        return builtin_library()
    from kwire.schema.importer import FIRST_TRUSTED, load_folder, overlay
    from kwire.schema.official import read
    from kwire.schema.registry import Registry, builtin

    if (schema / "apis").is_dir() or (schema / "data").is_dir():  # what kwire schema import wrote
        return Library(Registry(overlay=list(load_folder(schema).values())))
    return Library(Registry(overlay=overlay(read(schema, otherwise=FIRST_TRUSTED), builtin())))
