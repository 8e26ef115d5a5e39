"""What the options that choose exchanges gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from kwire.render.lines import clean

if TYPE_CHECKING:
    from kwire.cli.quantities import Instant
    from kwire.session.select import Selection


class Wanted(NamedTuple):
    """What exchange_options gave. slower: ns."""

    apis: tuple[str, ...]
    client_ids: tuple[str, ...]
    clients: tuple[str, ...]
    brokers: tuple[str, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    errors: bool
    error_names: tuple[str, ...]
    slower: int | None
    start: Instant | None
    end: Instant | None
    ids: tuple[int, ...]
    connections: tuple[str, ...]
    unless: tuple[tuple[str, str], ...]
    settled: bool

    def selection(self, first: Callable[[], int], last: Callable[[], int]) -> Selection:
        """first and last: the times of the capture's first and last packet, asked only when a time needs them. Raises
        click.ClickException for an end that lies before the start."""
        from kwire.cli.quantities import DAY
        from kwire.render.exchanges import clock
        from kwire.session.select import Selection
        from kwire.wire.times import instant

        start = self.start.of(first, last) if self.start else None
        end = self.end.of(first, last) + self.end.digit - 1 if self.end else None  # all that is shown as this time
        if self.end and start is not None and end is not None and end < start:
            if self.end.base == "day" and start // DAY < last() // DAY:
                end += DAY  # the capture lasts over midnight
            if end < start:
                why = "; it counts from the capture's start, not from --from" if self.end.base == "start" else ""
                at = clock if start // DAY == end // DAY else instant
                asked = f"--to {at(end - self.end.digit + 1)} lies before --from {at(start)}"
                raise click.ClickException(asked + why)
        return Selection.of(
            api=self.apis, client_id=self.client_ids, client=self.clients, broker=self.brokers, topic=self.topics,
            group=self.groups, errors=self.errors, error=self.error_names, slower=self.slower, start=start, end=end,
            id=self.ids, connection=self.connections, unless=[_filter(*one) for one in self.unless],
            settled=self.settled,
        )  # fmt: skip


VALUED = ("--api", "--client-id", "--client", "--broker", "--topic", "--group", "--error", "--id", "--connection")


def _filter(flag: str, value: str) -> dict[str, str]:
    """As Selection.of takes it. Raises click.UsageError."""
    if flag not in VALUED or (flag == "--id" and not value.isdecimal()):
        raise click.UsageError(f"--not {clean(flag)} {clean(value)}: write --not FILTER VALUE, where FILTER is one of "
                               f"{', '.join(VALUED)}")  # fmt: skip
    return {flag[2:].replace("-", "_"): value}
