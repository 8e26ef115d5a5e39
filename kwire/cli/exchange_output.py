"""How exchanges are shown by read and sniff: as lines with diagrams or bodies beneath, or as rows of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from kwire.cli.captures import Command, bundled, with_options
from kwire.cli.quantities import Size

if TYPE_CHECKING:
    from kwire.render.bodies import BodyRenderer
    from kwire.render.lines import Line
    from kwire.render.message_json import MessageLines
    from kwire.session.exchange import Exchange


def shown_options(command: Command) -> Command:
    """What of each exchange is shown: the command gets them as shown."""
    options = [
        click.option("-x", "--diagrams", is_flag=True, help="Below each line the diagrams of its frames."),
        click.option("--elements", type=click.IntRange(1), metavar="N",
                     help="With -x, at most N elements of each array."),
        click.option("--full", is_flag=True, help="With -x, all bytes and the whole of every value."),
        click.option("--body", is_flag=True, help="The bodies' values: beneath the lines, or in the rows of JSON."),
        click.option("--inner", is_flag=True,
                     help="With --body, records and other inner formats as objects, not as base64."),
        click.option("--inflate", type=Size(), default="256m",
                     help="What a frame may decompress to: 256m; half of it with --inner."),
        click.option("--show-secrets", is_flag=True,
                     help="Show passwords, tokens and other secrets, withheld otherwise."),
        click.option("-v", "--verbose", is_flag=True,
                     help="In each line the packets of request and response, first and last; lines of 120 columns name "
                     "one anyway."),
    ]  # fmt: skip
    return with_options(bundled(command, "shown", Shown), options)


class Shown(NamedTuple):
    """What shown_options gave."""

    diagrams: bool
    elements: int | None
    full: bool
    body: bool
    inner: bool
    inflate: int
    show_secrets: bool
    verbose: bool

    @property
    def lines_alone(self) -> bool:
        """Whether nothing stands beneath lines of what went well."""
        return not self.diagrams and not self.body

    def bodies(self) -> BodyRenderer | None:
        """What makes the bodies of rows; None when they are not wanted."""
        from kwire.render.bodies import BodyRenderer

        return BodyRenderer(self.show_secrets, self.inner, self.inflate) if self.body else None

    def message_lines(self) -> MessageLines:
        """What makes lines of JSON of batches: one for each message."""
        from kwire.render.message_json import MessageLines

        return MessageLines(self.bodies())

    def beneath(self, columns: int, bounded: bool) -> Callable[[Exchange, int | None], Iterable[Line]]:
        """What makes the lines beneath an exchange's line, from it and the time that its times count from, ns."""
        from kwire.render.exchange_diagrams import body_lines, diagram_lines
        from kwire.render.exchanges import ExchangeLines
        from kwire.render.failures import word_lines

        def lines(exchange: Exchange, start: int | None) -> Iterable[Line]:
            if exchange.error is not None:
                indent = ExchangeLines(columns, start, bounded).columns.time + 2
                yield from word_lines(exchange, columns, indent, bounded)
            yield from frames(exchange, start)

        def frames(exchange: Exchange, start: int | None) -> Iterable[Line]:
            if self.diagrams:
                return diagram_lines(
                    exchange, columns, self.elements or 0, self.full, self.show_secrets, start, self.inflate
                )
            if self.body:
                return body_lines(exchange, columns, self.inner, self.show_secrets, bounded, self.inflate)
            return ()

        return lines
