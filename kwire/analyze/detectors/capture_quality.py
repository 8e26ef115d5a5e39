"""What the capture itself lacks, so that nobody takes what is absent from it for what did not happen.

Sees bytes that are missing, packets cut by the snaplen, connections of which one direction is there, answers that stand
before their requests (reordering, or a clock that steps), the same connection captured at two points, tunnels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, lasted
from kwire.counted import counted
from kwire.session.connection_info import BROKER_ONLY, CLIENT_ONLY

MILLISECOND = 1_000_000


class CaptureQuality(Watch):
    def findings(self) -> Iterator[Finding]:
        coverage, start = self.case.coverage, self.case.start or 0
        total = counted(coverage.connections, "connection")
        for direction, who, other in (
            (CLIENT_ONLY, "clients", "brokers"),
            (BROKER_ONLY, "brokers", "clients"),
        ):
            count = coverage.counts[direction]
            if count:
                whose = "all" if count == coverage.connections else f"{count:,} of {total}:"
                what = f"{whose} packets come from {who} only; what {other} said is not in the capture"
                advice = "Capture both directions: a filter on a source or destination, or one side of a mirror port."
                yield self._warning(what, advice, count)
        if coverage.cut:
            what = f"{counted(coverage.cut, 'message')} cut off by the snaplen: errors and topics in them are not seen"
            yield self._warning(what, "Capture whole packets: tcpdump -s 0.", coverage.cut)
        missing = sum(coverage.missing)
        said = coverage.bytes + missing
        if missing and not coverage.cut and coverage.lossy:
            what = f"{counted(missing, 'byte')} of {said:,} were not captured, in {coverage.lossy:,} of {total}"
            advice = "Packets were dropped while capturing: a larger buffer (tcpdump -B), a filter, a faster disk."
            share = missing > self.limit("share") * said
            yield Finding("warning" if share else "note", what, (), advice, time=start, count=coverage.lossy)
        yield from self._clock()
        for translated, (count, second, first) in sorted(coverage.twins.items()):
            they = f"{counted(count, 'connection')} {'is' if count == 1 else 'are'}"
            if translated:
                what = f"{they} there twice, under other addresses ({second} is {first}), before and after address "
                what += "translation"
            else:
                what = f"{they} in two captures ({first} is the first), which were taken at two points"
            yield self._note(f"{what}; each is counted once, as it was seen first", count)
        doubled = coverage.repeated
        if doubled * 3 > coverage.bytes and coverage.bytes:
            what = f"{counted(doubled, 'byte')} came more than once: the same packets were captured at two points"
            yield self._note(what, 1)
        for tunnel, count in coverage.tunnels.items():
            yield self._note(f"{counted(count, 'connection')} came through {tunnel}", count)
        if coverage.encrypted:
            what = f"{counted(coverage.encrypted, 'connection')} in TLS, of which only the handshake can be read"
            yield self._note(what, coverage.encrypted)

    def _clock(self) -> Iterator[Finding]:
        """Where times go back: the clock stepped, or packets came in another order than they were captured in."""
        coverage, least = self.case.coverage, self.limit("backwards_ms") * MILLISECOND
        advice = "Times and latencies around it are not to be trusted."
        steps = [one for one in coverage.clock if one[0].before - one[0].after > least]
        if steps:
            step, proof = max(steps, key=lambda one: one[0].before - one[0].after)
            what = f"the capture's clock went back {counted(len(steps), 'time')}"
            what += f", by {lasted(step.before - step.after)} at packet {step.packet:,}"
            what += " at the most" if len(steps) > 1 else ""
            what += ": it was set, or packets stand in another order than they came in"
            yield replace(self._warning(what, advice, len(steps)), time=step.after, evidence=(proof,))
        elif coverage.most_negative < -least:
            what = f"{counted(coverage.negative, 'answer')} stand before their requests, by up to "
            what += f"{lasted(coverage.most_negative)}: the clock stepped, or packets came out of order"
            yield self._warning(what, advice, coverage.negative)

    def _warning(self, what: str, advice: str, count: int) -> Finding:
        return Finding("warning", what, (), advice, time=self.case.start or 0, count=count)

    def _note(self, what: str, count: int) -> Finding:
        return Finding("note", what, (), "", time=self.case.start or 0, count=count)


DETECTOR = Detector(
    "a direction, bytes or packets that the capture lacks",
    watch=CaptureQuality,
    fields="TCP sequence numbers, captured lengths, packet times, tunnels, TLS records",
    source="RFC 9293 section 3.4 for what is missing; the capture's own lengths for what is cut",
    means="The capture does not hold all that was said. What follows from absence is not judged where that matters.",
    proof="Sequence numbers that skip bytes, packets longer than what was kept of them, directions without packets.",
    advice="Capture anew: whole packets, both directions, on the broker or the client itself.",
    thresholds={"share": 0.001, "backwards_ms": 10},
)
