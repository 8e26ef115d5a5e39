"""Steps 3 to 8 in a group of the classic protocol: JoinGroup, SyncGroup, Heartbeat, reading, LeaveGroup."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from kwire.client.assign import Assignment
from kwire.client.consumer import ClassicMember, JoinedGroup
from kwire.client.failure import Refusal
from kwire.client.topology import PASSING, GroupPlace
from kwire.client.walk.moves import Moves
from kwire.client.walk.reading import WalkReading, named
from kwire.client.walk.settings import WalkSettings
from kwire.client.walk.step import ERROR, NOTE, OK, Detail, Step
from kwire.client.walk.step_recorder import Ended, Teller, words
from kwire.errors import KwireError
from kwire.schema import codes
from kwire.schema.errorcodes import errors

SLACK_MS = 1_500  # behind the session timeout: by then the broker has noticed
REJOINED = (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION)  # the latter of a coordinator that took over
GONE = (codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID)  # no member any more
REJOINS = 5
ANEW = "The new coordinator does not know this member: so it joins anew, as clients do."
SHOWN = 8  # members, a line each
Steps = Generator[Step, None, int]
Waits = Callable[[str, float], None]


def quietly(_: str, __: float) -> None:
    """For who does not want to know."""


class ClassicWalk:
    """steps() gives what happens; its parts end with the error code that decides what comes next, 0 when all is well.
    inside: the group counts on this member."""

    def __init__(
        self,
        place: GroupPlace,
        teller: Teller,
        settings: WalkSettings,
        sleep: Callable[[float], None],
        waits: Waits = quietly,
    ) -> None:
        self.member = ClassicMember.at(place, settings.options)
        self.teller, self.settings, self._sleep, self._waits = teller, settings, sleep, waits
        self.inside = False
        self._moves = Moves(place, teller, sleep)
        self._reading = WalkReading(self.member.reader, teller, settings.records, self._moves)

    def steps(self) -> Iterator[Step]:
        for _ in range(REJOINS):
            code = yield from self._generation()
            if not code:
                break
        else:
            self.teller.begin()
            yield self.teller.tell(5, ERROR, f"the group did not settle in {REJOINS} rebalances", error=code)
        if self.settings.stop and self.inside:
            yield from self._silence()
        if self.inside:
            yield from self._farewell()

    def leave(self) -> int:
        self.inside = False
        return self.member.leave()

    def _generation(self) -> Steps:
        """From joining until the beats are over, 0, or another join is due: the code that says so."""
        yield self._join()
        self._moves.moved = False
        try:
            yield self._sync()
        except Refusal as error:
            if error.code in PASSING:
                yield from self._moves.seek(4, error.exchange.name, error.code)
                return error.code
            if error.code != codes.REBALANCE_IN_PROGRESS:
                raise Ended(self.teller.fail(4, error)) from error
            yield self.teller.tell(4, NOTE, "another rebalance began meanwhile: join again", error=error.code)
            return error.code
        for beat in range(max(self.settings.beats, 1)):
            if beat:
                self._sleep(self.settings.interval_ms / 1000)
            code = 0
            if self.settings.beats:
                code = yield from self._beat(beat + 1)
            if code:
                return code
            if not beat:
                yield from self._reading.steps()
        return 0

    def _join(self) -> Step:
        self.teller.begin()
        before = self.member.member
        self._waits("waiting for JoinGroup, answered when all members have joined", self.member.patience)
        try:
            joined = self.member.join()
        except KwireError as error:
            raise Ended(self.teller.fail(3, error)) from error
        finally:
            self.inside = bool(self.member.member)  # an id that was handed out keeps a place, joined or not
        role = "this member leads" if joined.leads else "another member leads"
        text = f"generation {joined.generation}, protocol {joined.protocol}: {role}"
        return self.teller.tell(
            3, OK, text, self._admission(joined, before), member=joined.member, generation=joined.generation,
            protocol=joined.protocol, leader=joined.leader,
            members=[{"member": row.member, "topics": list(row.topics)} for row in joined.members],
        )  # fmt: skip

    def _admission(self, joined: JoinedGroup, before: str) -> list[Detail]:
        out = []
        if joined.passed:
            labels = ", ".join(errors.label(code) for code in dict.fromkeys(joined.passed))
            out.append(Detail(f"not at once: {labels}; joined at {self.member.place.coordinator}", NOTE))
        if before == joined.member:
            out += [Detail(f"as the member that it was: {joined.member}")]
        elif joined.asked - len(joined.passed) > 1:
            out += [Detail(f"an empty id first: handed out {joined.member}, then joined with it")]
        else:
            out += [Detail(f"an empty id: admitted at once as {joined.member}")]
        options = self.settings.options
        out.append(Detail(f"session timeout {options.session_timeout_ms:,} ms"))
        if not joined.leads:
            return [*out, Detail(f"leader {joined.leader}; only it learns who is in the group")]
        others = [row.member for row in joined.members if row.member != joined.member]
        out += [Detail(f"member {member}") for member in others[:SHOWN]]
        if len(others) > SHOWN:
            out.append(Detail(f"… {len(others) - SHOWN} more members"))
        return out if others else [*out, Detail("no other members")]

    def _sync(self) -> Step:
        """Raises Refusal."""
        self.teller.begin()
        try:
            planned = self.member.plan()
            self._waits("waiting for SyncGroup, answered when the leader has assigned", self.member.patience)
            own = self.member.sync(planned)
        except Refusal:
            raise
        except KwireError as error:
            raise Ended(self.teller.fail(4, error)) from error
        text = f"assigned {named(own)}" if own else "assigned nothing: the others have all partitions"
        return self.teller.tell(
            4, OK if own else NOTE, text, self._plan(planned), assigned=[list(one) for one in own],
            planned={member: [list(one) for one in parts] for member, parts in planned.items()},
        )  # fmt: skip

    def _plan(self, planned: Assignment) -> list[Detail]:
        if not planned:
            return [Detail("computed by the leader; the others' SyncGroup waits for it")]
        head = Detail(f"computed here ({self.member.protocol}) and handed in, as the leader does")
        others = [(member, parts) for member, parts in planned.items() if member != self.member.member]
        rows = [Detail(f"{member}: {named(parts) or 'nothing'}") for member, parts in others[:SHOWN]]
        return [head, *rows, *([Detail(f"… {len(others) - SHOWN} more members")] if len(others) > SHOWN else [])]

    def _beat(self, number: int) -> Steps:
        of = f"beat {number} of {self.settings.beats}, generation {self.member.generation}"
        code = yield from self._heart(of)
        if not code:
            yield self.teller.tell(5, OK, of)
            return 0
        details, advice = words(code)
        text = f"{of}: {errors.label(code)}"
        if code == codes.REBALANCE_IN_PROGRESS:
            yield self.teller.tell(5, NOTE, text, details, error=code, advice="So it does now.")
            return code
        if self._moves.moved and code in REJOINED:
            yield self.teller.tell(5, NOTE, text, details, error=code, advice=ANEW)
            if code == codes.UNKNOWN_MEMBER_ID:
                self.member.forget()
            return code
        self.inside = code not in GONE
        raise Ended(self.teller.tell(5, ERROR, text, details, error=code, advice=advice))

    def _heart(self, of: str) -> Steps:
        """A heartbeat's code, from the coordinator that there is by then."""
        try:
            return (yield from self._moves.ask(5, of, self.member.heartbeat, int))
        except KwireError as error:
            raise Ended(self.teller.fail(5, error)) from error

    def _silence(self) -> Iterator[Step]:
        """No heartbeat until the session timeout is over, then one."""
        self.teller.begin()
        session = self.settings.options.session_timeout_ms
        wait = session + SLACK_MS
        text = f"no heartbeat for {wait:,} ms from here on; the session timeout is {session:,} ms"
        yield self.teller.tell(5, NOTE, text)
        self._sleep(wait / 1000)
        code = yield from self._heart("a beat after that silence")
        text = f"a beat after that silence: {errors.label(code)}"
        details, advice = words(code) if code else ([], None)
        if code != codes.UNKNOWN_MEMBER_ID:
            details.append(Detail("the coordinator did not evict this member", NOTE))
            yield self.teller.tell(5, ERROR if code else NOTE, text, details, error=code, advice=advice)
            return
        self.inside = False
        details = [
            Detail("evicted: the coordinator removed the member, and made the rest of the group rebalance", NOTE),
            Detail("a client that comes back learns it only by this code, in a heartbeat or a commit", NOTE),
        ]
        advice = "A real client drops its id, joins anew with an empty one, and reads again what it did not commit."
        yield self.teller.tell(5, NOTE, text, details, error=code, advice=advice)

    def _farewell(self) -> Iterator[Step]:
        generation = self.member.generation
        try:
            code = yield from self._moves.ask(8, "LeaveGroup", self.leave, int)
        except KwireError as error:
            raise Ended(self.teller.fail(8, error)) from error
        text = f"left generation {generation}: the others need not wait for the session timeout"
        if not code:
            yield self.teller.tell(8, OK, text)
            return
        details, advice = words(code)
        yield self.teller.tell(8, ERROR, f"LeaveGroup: {errors.label(code)}", details, error=code, advice=advice)
