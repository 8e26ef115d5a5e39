"""Transcripts of real brokers replayed against the coordinator: whole answers are compared, and when they come.

A transcript (fixtures/coordinator, tests/interop/record.py) is replayed at its own times; ids that the
broker made up are given to the coordinator as they stand there. Left out of the comparison: throttle times, messages
for people, and the order of members, topics, partitions and groups, for which Kafka has no rule.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from transcripts import Row, body_of, comparable, load, unlike

import kwire
from kwire.coordinator.coordinator import Coordinator
from kwire.coordinator.types import MS, Answer, ClientIdentity, GroupSettings, KnownTopic
from kwire.wire.uuids import from_text

FOLDER = Path(__file__).parents[2] / "fixtures" / "coordinator"
TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl.gz"))
EARLIER, LATER = 900, 250  # ms that an answer of the coordinator may come before or after the broker's, which was busy
APART = 60  # ms between two answers of the broker, from which on their order counts


@dataclass
class Replay:
    """A transcript under replay."""

    head: Row
    steps: list[Row]
    topics: dict[str, KnownTopic] = field(default_factory=dict)
    tickets: dict[int, int] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    now_at: int = 0

    def run(self) -> Coordinator:
        """Asks everything at its time; afterwards answers are there by the step's number."""
        version = tuple(int(part) for part in self.head["broker"].split(".")[:2])
        settings = GroupSettings(era=(version[0], version[1]), **self.head["settings"])
        coordinator = Coordinator(settings, self.new_id, lambda: self.topics)
        coordinator.may = lambda _, group: group not in self.head["denied"]
        coordinator.owns = lambda _: self.head["script"] != "no-offsets-topic"
        self.know(self.head["topics"])
        for number, step in enumerate(self.steps):
            self.now_at = number
            now = round(step["at_ms"] * MS)
            self.advance(coordinator, now)
            if "topics" in step:
                self.know(step["topics"])
                coordinator.topics_changed(now)
                continue
            caller = ClientIdentity(step["client"], "/127.0.0.1", "User:ANONYMOUS")
            body = body_of(step["api"] + "Request", step["version"], step["request"])
            self.tickets[coordinator.ask(step["api"], step["version"], body, caller, now)] = number
            self.collect(coordinator)
        last = max(step["at_ms"] + step.get("took_ms", 0) for step in self.steps)
        self.advance(coordinator, round((last + LATER) * MS))
        return coordinator

    def know(self, topics: Row) -> None:
        for name, row in topics.items():
            self.topics[name] = KnownTopic(name, from_text(row["id"]), row["partitions"])

    def advance(self, coordinator: Coordinator, now: int) -> None:
        while coordinator.due is not None and coordinator.due <= now:
            coordinator.tick(coordinator.due)
            self.collect(coordinator)
        coordinator.tick(now)
        self.collect(coordinator)

    def collect(self, coordinator: Coordinator) -> None:
        for answer in coordinator.answers():
            number = self.tickets[answer.ticket]
            assert number not in self.answers, f"step {number + 1} is answered twice"
            self.answers[number] = answer
            self.order.append(number)

    def new_id(self, prefix: str) -> str:
        return str(self.steps[self.now_at]["response"].get("MemberId") or f"{prefix}-unseen")


def transcript(path: Path) -> Replay:
    return Replay(*load(path))


def differences(replay: Replay) -> list[str]:
    """What the coordinator does otherwise than the broker, a line each."""
    found = []
    for number, step in enumerate(replay.steps):
        if "topics" in step:
            continue
        title = f"step {number + 1} at {step['at_ms']} {step['client']} {step['api']} v{step['version']}"
        answer = replay.answers.get(number)
        if answer is None:
            found.append(f"{title}: no answer; the broker's came after {step['took_ms']} ms")
            continue
        name = step["api"] + "Response"
        ours = comparable(kwire.decode(name, step["version"], kwire.encode(name, step["version"], answer.body)))
        real = comparable(step["response"])
        found += [f"{title}: {line} ({answer.check})" for line in unlike(real, ours)]
        late = answer.time / MS - step["at_ms"] - step["took_ms"]
        if not -EARLIER <= late <= LATER:
            found.append(f"{title}: answered {late:.0f} ms after the broker, who took {step['took_ms']} ms")
    return found + disorder(replay)


def disorder(replay: Replay) -> list[str]:
    """Pairs of answers that came in another order than the broker's."""
    came = {number: place for place, number in enumerate(replay.order)}
    real = {number: replay.steps[number]["at_ms"] + replay.steps[number]["took_ms"] for number in came}
    pairs = itertools.permutations(came, 2)
    wrong = [(one, two) for one, two in pairs if real[one] + APART < real[two] and came[one] > came[two]]
    return [f"the answer to step {one + 1} came after that to step {two + 1}" for one, two in wrong]


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_coordinator_answers_as_the_broker_did(path: Path) -> None:
    replay = transcript(path)
    replay.run()
    assert "\n".join(differences(replay)) == ""


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_nothing_waits_for_ever(path: Path) -> None:
    """Every delayed operation ends, and no clock runs on for a group that has no members."""
    replay = transcript(path)
    coordinator = replay.run()
    end = 3_600_000 * MS
    replay.advance(coordinator, end)
    assert coordinator.waiting == 0
    assert coordinator.due is None or coordinator.due > end
    assert len(replay.answers) == sum("topics" not in step for step in replay.steps)


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_there_are_transcripts_of_each_release(release: str) -> None:
    names = [path for path in TRANSCRIPTS if path.name.endswith(f".{release}.jsonl.gz")]
    assert len(names) > 50
