"""Options of kwire broker whose values have a form of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kwire.errors import KwireError


class TopicParam(click.ParamType[tuple[str, int]]):
    """NAME or NAME:PARTITIONS."""

    name = "topic"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        from kwire.broker.nodes import parse_topic

        try:
            return parse_topic(value)
        except KwireError as error:
            self.fail(str(error), param, ctx)


class UsersParam(click.ParamType[tuple[tuple[str, str], ...]]):
    """USER:PASSWORD, or @FILE with such lines; in the environment such lines too."""

    name = "users"
    envvar_list_splitter = "\n"

    def convert(
        self, value: str | tuple[tuple[str, str], ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, str], ...]:
        if isinstance(value, tuple):
            return value
        lines = [value]
        if value.startswith("@"):
            try:
                lines = [line for line in Path(value[1:]).read_text("utf-8").splitlines() if line.strip()]
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
                self.fail(f"{value[1:]}: {why}", param, ctx)
        found = []
        for number, line in enumerate(lines, 1):
            name, colon, password = line.partition(":")
            if not (name and colon and password):  # the line itself may be a password
                where = f"{value[1:]}, line {number}: " if value.startswith("@") else ""
                self.fail(f"{where}write USER:PASSWORD", param, ctx)
            found.append((name, password))
        return tuple(found)


class Era(click.ParamType[tuple[int, int]]):
    """A Kafka release, as 4.3."""

    name = "release"

    def convert(
        self, value: str | tuple[int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        from kwire.schema.registry import builtin

        try:
            return builtin().release(value)
        except KwireError as wrong:
            self.fail(str(wrong), param, ctx)


class NodeParam(click.ParamType[Any]):
    """ID[,port=N][,rack=NAME]."""

    name = "node"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kwire.broker.nodes import NodeSetup

        if isinstance(value, NodeSetup):
            return value
        number, *rest = value.split(",")
        words = dict(part.partition("=")[::2] for part in rest)
        if not number.isdecimal() or set(words) - {"port", "rack"} or not words.get("port", "1").isdecimal():
            self.fail(f"{value}: write ID[,port=N][,rack=NAME]", param, ctx)
        return NodeSetup(int(number), int(words.get("port", 0)), words.get("rack"))


class ListenerText(click.ParamType[Any]):
    """[NAME=]PROTOCOL://HOST:PORT[,advertise=HOST[:PORT]]."""

    name = "listener"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kwire.broker.nodes import Listener

        if isinstance(value, Listener):
            return value
        try:
            return Listener.parse(value)
        except KwireError as error:
            return self.fail(str(error), param, ctx)


class Advertised(click.ParamType[tuple[str, int]]):
    """HOST[:PORT]."""

    name = "address"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        from kwire.broker.nodes import parse_advertised

        if isinstance(value, tuple):
            return value
        try:
            return parse_advertised(value)
        except KwireError as error:
            return self.fail(str(error), param, ctx)


class BrokerSettingParam(click.ParamType[tuple[str, str]]):
    """NAME=VALUE."""

    name = "setting"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not equals or not name:
            self.fail(f"{value}: write NAME=VALUE, as num.partitions=3", param, ctx)
        return name, text
