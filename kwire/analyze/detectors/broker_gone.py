"""A broker that clients could reach before and cannot any more, told once with all who dial it in vain; and addresses
where nobody listens at all.

Sees SYNs that are reset or get no answer, by address, and connections to the same address before and after. What an
answer advertised and nobody ever reached, as far as the capture shows from the beginning, is advertised-unreachable.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.connect_attempts import HostAttempts
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, about, lasted
from kwire.counted import counted

SECOND = 1_000_000_000


class Gone(Watch):
    def findings(self) -> Iterator[Finding]:
        targets: dict[str, list[HostAttempts]] = {}
        for attempts in self.case.attempts.known.values():
            targets.setdefault(attempts.target, []).append(attempts)
        for target, every in targets.items():
            failing = [attempts for attempts in every if self._counts(attempts)]
            if self.case.coverage.incomplete and not any(attempts.connected for attempts in every):
                continue  # it may be advertised, in an answer that cannot be read
            never = self.case.cluster.advertises(target) and not any(attempts.connected for attempts in every)
            if failing and not (never and all(attempts.host not in self.case.attempts.before for attempts in failing)):
                yield self._finding(target, every, failing)

    def _counts(self, attempts: HostAttempts) -> bool:
        """Whether a host's attempts in vain were that, and not the capture's."""
        silent = attempts.silent if self.case.coverage.answers_seen(attempts.host) else 0
        return attempts.refused + silent >= 1

    def _finding(self, target: str, every: list[HostAttempts], failing: list[HostAttempts]) -> Finding:
        clock, end = self.case.clock, self.case.end
        first, last = min(one.first for one in failing), max(one.last for one in failing)
        attempts = sum(one.failed for one in failing)
        before = max((one.reached_first for one in every if one.reached_first and one.reached_first < first), default=0)
        after = min((one.reached for one in every if one.reached and one.reached > last), default=0)
        refused = sum(one.refused for one in failing)
        how = "refused" if refused == attempts else "not answered" if not refused else "refused or not answered"
        what = f"broker {target} is gone" if before else f"nobody listens at {target}"
        if after:
            what = f"broker {target} was away"
        who = failing[0].host if len(failing) == 1 else counted(len(failing), "host")
        what += f": {counted(attempts, 'connection')} of {who} {how}"
        what += f" from {clock(first)} to {clock(last)}" if attempts > 1 else f" at {clock(first)}"
        away = (after or end) - first
        if after:
            what += f"; reached again at {clock(after)}, {lasted(away)} later"
        long = away > self.limit("seconds") * SECOND
        severity = "note" if after and not long else "warning" if after or attempts < 3 else "error"
        ports = {int(one.rpartition(":")[2]) for one in self.case.participants.brokers}
        advice = "See whether that broker runs, and what its log said before it went."
        if not before and not after:
            listens = f"; others in the capture are at port {', '.join(map(str, sorted(ports)[:4]))}" if ports else ""
            advice = f"Check bootstrap.servers and the listener's port{listens}."
        return Finding(
            severity, what, tuple(ref for one in failing for ref in one.samples)[:8], advice, time=first, last=last,
            about=about(broker=target, address=failing[0].host if len(failing) == 1 else ""), count=attempts,
            otherwise="a connection to that address came about afterwards", brokers=self.case.cluster.names_of(target),
        )  # fmt: skip


DETECTOR = Detector(
    "brokers that went away, addresses where nobody listens",
    watch=Gone,
    fields="SYN, SYN-ACK and RST of TCP, by address",
    source="RFC 9293 section 3.5.2; reconnect.backoff.ms, with which clients try again",
    means="Clients dial a broker's address and are refused or get no answer.",
    proof="SYNs that are reset, or sent again without an answer while others' answers are in the capture.",
    advice="Look at that broker: process, host, firewall. If it only restarted, see how long it was away.",
    thresholds={"seconds": 10},
    event=1,
)
