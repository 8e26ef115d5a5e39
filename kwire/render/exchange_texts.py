"""Lines of exchanges as plain text, those of a batch at once, as a pipe gets them: what ExchangeLines says of each.

What many lines have in common is made once: who asks whom in which version, and what they are about. Exchanges that
are damaged, or of which the broker may have said in words what went wrong, are left to ExchangeLines, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kwire.analyze.failures import WORDS
from kwire.render.exchanges import ABOUT, ExchangeLines, about_text, clock, error_text, took
from kwire.render.lines import clean
from kwire.session.about_columns import abouts_of

if TYPE_CHECKING:
    from kwire.codec.plan import StructPlan
    from kwire.session.api_versions import Kind
    from kwire.session.batch import ExchangeBatch
    from kwire.wire.columns import Ints

NO_ERROR = 0, 0  # the first code, and how many


class ExchangeTexts:
    """of(batch) gives the line of each exchange; None for one that ExchangeLines makes, or that needs lines beneath.
    lines: wide ones, in which nothing is cut."""

    def __init__(self, lines: ExchangeLines) -> None:
        assert lines.columns.size, "wide lines only"
        assert not lines.bounded
        self._lines = lines
        self._worded: dict[Kind | None, bool] = {}

    def of(self, batch: ExchangeBatch) -> Iterator[str | None]:
        request, response = batch.request, batch.response
        lines, c = self._lines, self._lines.columns
        fine = request.there & (response.there | batch.silent) & ~batch.token & batch.identified
        fine &= (request.quality == 0) & (response.quality == 0)
        worded = [self._has_words(kind) for kind in batch.kinds]
        clients, client = batch.client_ids()
        ends = [known.ends for known in batch.connections]
        several = lines.verbose or any(known.places.several for known in batch.connections)
        apis = ["" if kind is None else f"{kind.api} v{kind.version}" for kind in batch.kinds]
        found = abouts_of(batch)
        abouts = [about_text(value) for value in found.values]
        fitting = [f"{value:<{ABOUT}}  " for value in abouts]
        figures, wide = f"%{c.ident}s  %{c.size}s  %{c.size}s  %{c.took}s  ", c.ident + 2 * c.size + c.took + 8
        begin = c.time + 2 + (c.packets + 2 if c.packets else 0)  # where the client's column does
        end = begin + c.behind
        heads: dict[tuple[int, int, int], str] = {}
        durations: dict[int, str] = {}
        outcomes: dict[tuple[int, int], str] = {NO_ERROR: "ok\n"}
        columns = (
            fine, batch.connection, client, batch.kind, batch.correlation_id, batch.first_error, batch.errors,
            request.packet, request.size, response.start, batch.latency, response.packet, response.size, found.which,
        )  # fmt: skip
        lists = (*(column.tolist() for column in columns), _times(lines, batch.time))
        for row, (
            good, owner, who, kind, ident, error, count, packet, sent, there, latency, other, got, about, moment,
        ) in enumerate(zip(*lists, strict=True)):  # fmt: skip
            if not good or not apis[kind] or (count and worded[kind]):
                yield None
                continue
            text = f"{moment:>{c.time}}  "
            if c.packets:
                both = f"{packet}→{other}" if there >= 0 else f"{packet}"
                text += f"{lines.packets(batch[row]) if several else both:<{begin - 2 - len(text)}}  "
            key = owner, who, len(text)
            head = heads.get(key)
            if head is None:
                name = f"{clean(clients[who] or '')} {ends[owner][0]}".strip()
                head = heads[key] = _cells(((name, c.client), (ends[owner][1], c.broker)), "<", len(text), begin)
            text += head
            room = end - 2 - len(text)
            text += f"{apis[kind]:<{room}}  " if room > 0 else f"{apis[kind]}  "
            if there >= 0:
                duration = durations.get(latency) or durations.setdefault(latency, took(latency))
                code = (error, count) if count else NO_ERROR
                outcome = outcomes.get(code) or outcomes.setdefault(code, f"{error_text(error, count)}\n")
            else:
                got, duration, outcome = "", "", "no answer wanted\n"
            cells = figures % (ident, sent, got, duration)
            if len(text) == end and len(cells) == wide:  # each fits its column
                yield f"{text}{cells}{fitting[about]}{outcome}"
                continue
            values = (str(ident), c.ident), (str(sent), c.size), (str(got), c.size), (duration, c.took)
            text += _cells(values, ">", len(text), end)
            yield f"{text}{abouts[about]:<{max(end + wide + ABOUT - len(text), 0)}}  {outcome}"

    def _has_words(self, kind: Kind | None) -> bool:
        """Whether answers have a field for what the broker says of an error."""
        known = self._worded.get(kind)
        if known is None:
            found = kind.plan("response").root if kind is not None and kind.response and kind.supported else None
            known = self._worded[kind] = found is None or _has_words(found)
        return known


def _times(lines: ExchangeLines, moments: Ints) -> list[str]:
    """As lines.time of each."""
    micros = moments // 1000 if lines.start is None else (moments - lines.start) // 1000
    if (micros < 0).any():
        return [lines.time(moment) for moment in moments.tolist()]
    seconds, rest = (column.tolist() for column in divmod(micros, 1_000_000))
    begins = {
        second: clock(second * 1_000_000_000)[:9] if lines.start is None else f"{second}." for second in set(seconds)
    }
    return [f"{begins[second]}{micro:06d}" for second, micro in zip(seconds, rest, strict=True)]


def _cells(cells: Iterable[tuple[str, int]], align: str, used: int, end: int) -> str:
    """Texts in columns of these widths, after so many characters: what is longer makes the next ones narrower. end:
    where the columns before them do."""
    text = ""
    for value, width in cells:
        end += width + 2
        text += f"{value:{align}{max(end - 2 - used - len(text), 0)}}  "
    return text


def _has_words(plan: StructPlan) -> bool:
    return any(
        slot.name.endswith(WORDS) or (slot.struct is not None and _has_words(slot.struct))
        for slot in (*plan.slots, *plan.tagged.values())
    )
