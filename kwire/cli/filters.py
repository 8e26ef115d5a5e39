"""What there is, where a filter matches nothing: values are noted while the exchanges pass by, and for every value that
was asked for and never came, a line says which there are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kwire.counted import counted
from kwire.render.lines import clean
from kwire.session.select import is_at

if TYPE_CHECKING:
    from kwire.cli.quantities import Instant
    from kwire.cli.wanted import Wanted
    from kwire.session.about import About
    from kwire.session.batch import ExchangeBatch
    from kwire.session.select import Selection

MOST_VALUES = 1000  # of a kind that are kept
LONGEST = 249  # characters of each that are kept: a topic's name is no longer
NAMED = 6  # of a kind, in a line


class AskedValues:
    """Values of one kind that were asked for, and those that came."""

    def __init__(self, what: str, patterns: Iterable[str], fits: Callable[[str, str], bool]) -> None:
        self.what, self._fits = what, fits
        self.unmet = dict.fromkeys(patterns)
        self._values: dict[str, None] = {}

    def see(self, values: Iterable[str]) -> None:
        """Values that came."""
        for value in values:
            if value in self._values or not self.unmet:
                continue
            if len(self._values) < MOST_VALUES:
                self._values[value[:LONGEST]] = None
            for pattern in [one for one in self.unmet if self._fits(value, one)]:
                del self.unmet[pattern]

    def complaints(self) -> Iterator[str]:
        """A line for each value that never came."""
        for pattern in self.unmet:
            values: Iterable[str] = self._values
            if self._fits is is_at and ":" not in pattern.strip("[]"):  # hosts, not each of their ports
                values = {value.rpartition(":")[0] for value in values}
            yield f"no {self.what} {clean(pattern)}; {there_are(values, pattern)}"


def there_are(values: Iterable[str], wanted: str) -> str:
    """As "3 there are: rdkafka-1, rdkafka-2, rdkafka-3", those first that are most like what was wanted."""
    from difflib import get_close_matches

    names = sorted(filter(None, values), key=lambda name: (len(name) if name.isdecimal() else 0, name))
    if not names:
        return "there is none"
    near = get_close_matches(wanted, names[:1000], NAMED, 0.6)
    shown = list(dict.fromkeys([*near, *names]))[:NAMED]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    over = "over " if len(names) >= MOST_VALUES else ""
    said = f"{over}{len(names):,} there are" if len(names) > 1 else "1 there is"
    return f"{said}: {clean(', '.join(shown))}{more}"


def asked_values(wanted: Wanted, apis: Mapping[str, int], codes: Mapping[str, int]) -> dict[str, AskedValues]:
    """What the options name, by its kind. apis, codes: keys of APIs and error codes by their names, as they came."""
    from kwire.session.select import codes_of, fits, keys_of

    def is_api(name: str, pattern: str) -> bool:
        return name in apis and apis[name] in keys_of(pattern)

    def is_error(name: str, pattern: str) -> bool:
        return codes.get(name) in codes_of(pattern)

    kinds: list[tuple[str, Iterable[str], Callable[[str, str], bool]]] = [
        ("API", wanted.apis, is_api), ("client id", wanted.client_ids, fits), ("client", wanted.clients, is_at),
        ("broker", wanted.brokers, is_at), ("error", wanted.error_names, is_error),
        ("correlation id", map(str, wanted.ids), str.__eq__),
        ("connection", wanted.connections, lambda name, part: part in name),
        ("topic", wanted.topics, fits), ("group", wanted.groups, fits),
    ]  # fmt: skip
    return {what: AskedValues(what, patterns, fit) for what, patterns, fit in kinds}


class Filter:
    """A selection that notes what it is asked about. wanted(batch) decides; complaints() says in the end which of the
    options matched nothing."""

    def __init__(self, selection: Selection, wanted: Wanted) -> None:
        self.selection = selection
        self._apis: dict[str, int] = {}
        self._codes: dict[str, int] = {}  # by what is shown of them
        self._start, self._end = wanted.start, wanted.end
        self._seen = self.held = 0
        self._first = self._last = self._slowest = 0
        self._options = [name for name, given in zip(OPTIONS, wanted, strict=True) if given not in ((), None, False)]
        asked = asked_values(wanted, self._apis, self._codes)
        self._topics, self._groups = asked["topic"], asked["group"]
        kinds = [
            FilterKind(asked["API"], self._api_names),
            FilterKind(asked["client id"], lambda batch: [name or "" for name in batch.client_ids()[0]]),
            FilterKind(asked["client"], lambda batch: [known.ends[0] for known in batch.connections]),
            FilterKind(asked["broker"], lambda batch: [known.ends[1] for known in batch.connections]),
            FilterKind(asked["error"], self._errors_of),
            FilterKind(asked["correlation id"], lambda batch: map(str, batch.correlation_id.tolist())),
            FilterKind(asked["connection"], lambda batch: [known.name for known in batch.connections]),
        ]
        self._kinds = [kind for kind in kinds if kind.asked.unmet]

    def _errors_of(self, batch: ExchangeBatch) -> list[str]:
        from kwire.session.record import error_name

        codes = {code for row in batch.failed for code in batch.error_codes(row)}
        found = {error_name(code) or str(code): code for code in codes}
        self._codes |= found
        return list(found)

    def _api_names(self, batch: ExchangeBatch) -> list[str]:
        names = []
        for kind in batch.kinds:
            if kind is not None:
                names.append(kind.api)
                if len(self._apis) < MOST_VALUES:
                    self._apis[kind.api] = kind.key
        return names

    def wanted(self, batch: ExchangeBatch, tracking: bool = False) -> ExchangeBatch:
        """The exchanges that are wanted; tracking: as Selection.wanted has it."""
        if not self._options:
            self.held += len(batch)
            return batch
        if not self.held and len(batch):
            self._note(batch)
        for asked, values in self._kinds:
            if asked.unmet:
                asked.see(values(batch))
        unmet = self._topics.unmet or self._groups.unmet
        kept = self.selection.wanted(batch, tracking, self._notice if unmet else None)
        self.held += len(kept)
        return kept

    def _notice(self, about: About) -> None:
        self._topics.see(about.topics)
        self._groups.see(about.groups)

    def _note(self, batch: ExchangeBatch) -> None:
        time = batch.time
        self._seen += len(batch)
        self._first = min(int(time.min()), self._first or int(time.min()))
        self._last = max(int(time.max()), self._last)
        self._slowest = max(int(batch.latency.max()), self._slowest)

    def say(self) -> None:
        """The complaints on stderr."""
        for line in self.complaints():
            print(f"kwire: {line}", file=sys.stderr)

    def complaints(self) -> Iterator[str]:
        """What matched nothing, and what there is instead; nothing where there were no exchanges at all."""
        from kwire.render.exchanges import took

        if not self._seen:
            return
        asked = [*(kind.asked for kind in self._kinds), self._topics, self._groups]
        found = [line for one in asked for line in one.complaints()]
        yield from found
        if self.held or found:
            return
        chosen = self.selection
        if chosen.slower is not None and self._slowest < chosen.slower:
            yield f"no answer took {took(chosen.slower)}; the slowest came after {took(self._slowest)}"
        elif chosen.start is not None and self._last < chosen.start:
            at = self._clock(self._start, chosen.start)
            yield f"nothing began at {at(chosen.start)} or later; the last exchange began at {at(self._last)}"
        elif chosen.end is not None and self._first > chosen.end:
            at = self._clock(self._end, chosen.end)
            yield f"nothing began until {at(chosen.end)}; the first exchange began at {at(self._first)}"
        elif self._options == ["--errors"]:
            yield f"nothing went wrong in {counted(self._seen, 'exchange')}"
        else:
            yield f"none of {counted(self._seen, 'exchange')} fits {', '.join(self._options)} at once"

    def _clock(self, given: Instant | None, moment: int) -> Callable[[int], str]:
        """Shows times as one was given, which became moment."""
        from kwire.render.exchanges import clock

        if given is None or given.base != "start":
            return clock
        start = (moment - given.ns) // 1000 * 1000
        return lambda time: f"{(time - start) // 1000 / 1e6:.6f}"


OPTIONS = ("--api", "--client-id", "--client", "--broker", "--topic", "--group", "--errors", "--error", "--slower",
           "--from", "--to", "--id", "--connection", "--not", "--settled")  # fmt: skip


class FilterKind(NamedTuple):
    """Values asked for, and what a batch has of their kind."""

    asked: AskedValues
    of: Callable[[ExchangeBatch], Iterable[str]]
