"""Steps 3 to 8 in a group of the consumer protocol (KIP-848): ConsumerGroupHeartbeat takes the place of four APIs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from kwire.client.epochs import EpochMember, HeartbeatAnswer
from kwire.client.failure import Refusal
from kwire.client.topology import PASSING, GroupPlace
from kwire.client.walk.moves import Moves
from kwire.client.walk.reading import WalkReading, named
from kwire.client.walk.settings import WalkSettings
from kwire.client.walk.step import ERROR, NOTE, OK, Detail, Step
from kwire.client.walk.step_recorder import Ended, Teller, words
from kwire.counted import counted
from kwire.errors import Failure, KwireError
from kwire.schema import codes
from kwire.schema.errorcodes import errors

API = "ConsumerGroupHeartbeat"
SESSION_MS = 45_000  # group.consumer.session.timeout.ms, the broker's default
SLACK_MS = 1_500
FENCED = (codes.UNKNOWN_MEMBER_ID, codes.FENCED_MEMBER_EPOCH)
ANEW = "The new coordinator does not know this member: so it joins with epoch 0, as clients do."
PATIENCE = 12  # heartbeats that an assignment may take
GROUP_RESOURCE = 32


class Fenced(Exception):
    """A coordinator that took over does not know the member."""

    def __init__(self, code: int) -> None:
        self.code = code


class EpochWalk:
    """steps() gives what happens. inside: the group counts on this member."""

    def __init__(
        self, place: GroupPlace, teller: Teller, settings: WalkSettings, sleep: Callable[[float], None]
    ) -> None:
        self.member = EpochMember(place, settings.options)
        self.place, self.teller, self.settings, self._sleep = place, teller, settings, sleep
        self.inside = False
        self._interval = settings.interval_ms
        self._moves = Moves(place, teller, sleep)
        self._reading = WalkReading(self.member.reader, teller, settings.records, self._moves)

    def steps(self) -> Iterator[Step]:
        self.inside = True
        yield from self._enter()
        for number in range(self.settings.beats):
            self._sleep(self._interval / 1000)
            yield from self._beat(f"beat {number + 1} of {self.settings.beats}")
        if self.settings.stop:
            yield from self._silence()
        if self.inside:
            yield from self._farewell()

    def leave(self) -> int:
        self.inside = False
        return self.member.leave()

    def _enter(self) -> Iterator[Step]:
        first = yield from self._guard(3, "the join")
        yield self._joined(first)
        yield from self._assigned(first)
        yield from self._reading.steps()
        self._moves.moved = False

    def _beat(self, of: str) -> Iterator[Step]:
        """A heartbeat; a coordinator that took over and does not know the member is joined anew."""
        try:
            beat = yield from self._guard(5, of)
        except Fenced as fenced:
            text = f"{of}: {errors.label(fenced.code)}"
            yield self.teller.tell(5, NOTE, text, words(fenced.code)[0], error=fenced.code, advice=ANEW)
            self.member.rejoin()
            yield from self._enter()
            return
        yield self.teller.tell(5, OK, f"{of}, epoch {beat.epoch}", self._news(beat), epoch=beat.epoch)

    def _guard(self, number: int, what: str) -> Generator[Step, None, HeartbeatAnswer]:
        """A heartbeat's answer. Raises Fenced once the coordinator is another, Ended."""
        try:
            return (yield from self._moves.ask(number, what, self.member.beat))
        except Failure as failure:
            if failure.kind == "unsupported":
                failure = Failure("unsupported", failure.where, f"{failure.reason}; it has no groups of this protocol")
            raise Ended(self.teller.fail(number, failure)) from failure
        except KwireError as error:
            if isinstance(error, Refusal):
                if number == 5 and self._moves.moved and error.code in FENCED:
                    raise Fenced(error.code) from error
                self.inside = self.inside and error.code in PASSING
            raise Ended(self.teller.fail(number, error)) from error

    def _joined(self, beat: HeartbeatAnswer) -> Step:
        self._interval = beat.interval_ms or self._interval
        details = [
            Detail(f"member {self.member.member}; joined with epoch 0, which asks for everything anew"),
            Detail(f"the broker wants a heartbeat every {beat.interval_ms:,} ms; it computes the assignment itself"),
        ]
        return self.teller.tell(3, OK, f"member epoch {beat.epoch}", details, member=self.member.member,
                                epoch=beat.epoch, interval_ms=beat.interval_ms)  # fmt: skip

    def _assigned(self, first: HeartbeatAnswer) -> Iterator[Step]:
        """Beats until an assignment came, and once more to say that it was taken over."""
        self.teller.begin()
        came, waited = first.assignment is not None and bool(first.assignment), 0
        while not came and waited < PATIENCE:
            waited += 1
            self._sleep(min(self._interval, 500) / 1000)
            beat = yield from self._guard(4, API)
            came = bool(beat.assignment)
        if self.member.owes:
            yield from self._guard(4, API)
        own = self.member.reader.partitions
        if not own:
            beats = counted(waited, "heartbeat")
            text = f"nothing assigned in {beats}: the others have all partitions, or must give up some"
            yield self.teller.tell(4, NOTE, text, assigned=[])
            return
        told = "with the answer to the join" if not waited else f"with heartbeat {waited} after the join"
        details = [Detail(f"it came {told}; the next heartbeat says that it was taken over")]
        yield self.teller.tell(4, OK, f"assigned {named(own)}, epoch {self.member.epoch}", details,
                                assigned=[list(one) for one in own], epoch=self.member.epoch)  # fmt: skip

    def _news(self, beat: HeartbeatAnswer) -> list[Detail]:
        if beat.assignment is None:
            return []
        return [Detail(f"another assignment: {named(self.member.reader.partitions) or 'nothing'}", NOTE)]

    def _silence(self) -> Iterator[Step]:
        self.teller.begin()
        session = self._session_ms()
        wait = session + SLACK_MS
        text = f"no heartbeat for {wait:,} ms from here on; the session timeout is {session:,} ms"
        yield self.teller.tell(5, NOTE, text)
        self._sleep(wait / 1000)
        try:
            code = 0
            yield from self._moves.ask(5, "a beat after that silence", self.member.beat)
        except Refusal as error:
            code = error.code
        except KwireError as error:
            raise Ended(self.teller.fail(5, error)) from error
        text = f"a beat after that silence: {errors.label(code)}"
        details, _ = words(code) if code else ([], None)
        if code not in FENCED:
            details.append(Detail("the coordinator did not evict this member", NOTE))
            yield self.teller.tell(5, ERROR if code else NOTE, text, details, error=code)
            return
        self.inside = False
        details.append(Detail("evicted: its partitions went to the others", NOTE))
        advice = "A real client gives up its partitions and joins anew with epoch 0, keeping its id."
        yield self.teller.tell(5, NOTE, text, [Detail(row.text, NOTE) for row in details], error=code, advice=advice)

    def _session_ms(self) -> int:
        """The group's, from its configuration; the default where the broker does not tell."""
        rows = [{"ResourceType": GROUP_RESOURCE, "ResourceName": self.place.group,
                 "ConfigurationKeys": ["consumer.session.timeout.ms"]}]  # fmt: skip
        try:
            results = self.place.ask("DescribeConfigs", lambda _: {"Resources": rows}).body()["Results"]
            return int(results[0]["Configs"][0]["Value"])
        except (KwireError, LookupError, TypeError, ValueError):
            return SESSION_MS

    def _farewell(self) -> Iterator[Step]:
        epoch = self.member.epoch
        try:
            code = yield from self._moves.ask(8, API, self.leave, int)
        except KwireError as error:
            raise Ended(self.teller.fail(8, error)) from error
        if not code:
            yield self.teller.tell(8, OK, f"left with epoch -1 (was {epoch}): its partitions are free at once")
            return
        details, advice = words(code)
        yield self.teller.tell(8, ERROR, f"{API}: {errors.label(code)}", details, error=code, advice=advice)
