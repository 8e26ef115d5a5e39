"""Lines of exchanges as plain text, those of a batch at once, as a pipe gets them: what ExchangeLines says of each.

What many lines have in common is made once: who asks whom in which version, and what they are about. Exchanges that
went wrong in any way are left to ExchangeLines, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.render.exchanges import ABOUT, ExchangeLines, about_text, took
from kwire.render.lines import clean
from kwire.session.about_columns import abouts_of

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch

REMEMBERED = 100_000  # beginnings of lines that are kept


class ExchangeTexts:
    """of(batch) gives the line of each exchange; None for one that went wrong. lines: wide ones, in which nothing is
    cut."""

    def __init__(self, lines: ExchangeLines) -> None:
        assert lines.columns.size, "wide lines only"
        assert not lines.bounded
        self._lines = lines
        self._heads: dict[tuple[str, bytes, str, int, int], tuple[str, int]] = {}

    def of(self, batch: ExchangeBatch) -> Iterator[str | None]:
        request, response = batch.request, batch.response
        fine = request.there & (response.there | batch.silent) & (batch.errors == 0) & ~batch.token & batch.identified
        fine &= (request.quality == 0) & (response.quality == 0)
        lines, c = self._lines, self._lines.columns
        buffer = batch.buffer
        names = [known.name for known in batch.connections]
        ends = [known.ends for known in batch.connections]
        several = any(known.places.several for known in batch.connections)
        apis = ["" if kind is None else f"{kind.api} v{kind.version}" for kind in batch.kinds]
        found = abouts_of(batch)
        abouts = [about_text(value) for value in found.values]
        answers, silent = ([f"{value:<{ABOUT}}  {end}\n" for value in abouts] for end in ("ok", "no answer wanted"))
        figures, wide = f"%{c.ident}s  %{c.size}s  %{c.size}s  %{c.took}s  ", c.ident + 2 * c.size + c.took + 8
        durations: dict[int, str] = {}
        columns = (
            fine, batch.connection, batch.kind, batch.correlation_id, batch.client_start, batch.client_length,
            request.time, request.last_time, request.packet, request.size, response.start, response.time,
            response.packet, response.size, found.which,
        )  # fmt: skip
        for row, (
            good, owner, kind, ident, start, length, time, last, packet, sent, there, answered, other, got, about,
        ) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):  # fmt: skip
            if not good or not apis[kind]:
                yield None
                continue
            moment = lines.time(time)
            text = f"{moment:>{c.time}}  "
            end, used = c.time + 2, len(text)
            if c.packets:
                both = (
                    lines.packets(batch[row])
                    if several or lines.verbose
                    else (f"{packet}→{other}" if there >= 0 else f"{packet}")
                )
                end += c.packets + 2
                cell = f"{both:<{max(end - 2 - used, len(both))}}  "
                text += cell
                used += len(cell)
            client = buffer[start : start + length] if length > 0 else b""
            key = names[owner], client, apis[kind], end, used
            head = self._heads.get(key)
            if head is None:
                head = self._head(ends[owner], client, apis[kind], end, used)
                if len(self._heads) < REMEMBERED:
                    self._heads[key] = head
            middle, used = head
            end += c.behind
            text += middle
            duration = ""
            if there >= 0:
                duration = durations.get(answered - last) or durations.setdefault(
                    answered - last, took(answered - last)
                )
            cells = figures % (ident, sent, got if there >= 0 else "", duration)
            if used == end and len(cells) == wide:  # each fits its column
                yield f"{text}{cells}{(answers if there >= 0 else silent)[about]}"
                continue
            for value, width in ((str(ident), c.ident), (str(sent), c.size), (str(got) if there >= 0 else "", c.size),
                                 (duration, c.took)):  # fmt: skip
                end += width + 2
                room = max(end - 2 - used, len(value))
                text += f"{value:>{room}}  "
                used += room + 2
            end += ABOUT + 2
            yield f"{text}{abouts[about]:<{max(end - 2 - used, 0)}}  {'ok' if there >= 0 else 'no answer wanted'}\n"

    def _head(self, ends: tuple[str, str], name: bytes, api: str, end: int, used: int) -> tuple[str, int]:
        """The cells that say who asks whom what, and where they end."""
        c, text = self._lines.columns, ""
        client, broker = ends
        who = f"{clean(name.decode('utf-8', 'surrogateescape'))} {client}".strip()
        for value, width in ((who, c.client), (broker, c.broker), (api, c.api)):
            end += width + 2
            cell = f"{value:<{max(end - 2 - used, len(value))}}  "
            text += cell
            used += len(cell)
        return text, used
