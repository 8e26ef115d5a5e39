"""The purgatory: an operation ends once, completed or expired."""

import pytest

from kwire.coordinator.purgatory import OperationKind, Purgatory
from kwire.coordinator.timers import Key

JOIN, OTHER = Key("join", "g"), Key("join", "h")


class Record:
    """A purgatory with one kind of operation, and what became of its operations."""

    def __init__(self) -> None:
        self.ready = False
        self.log: list[tuple[str, str, int]] = []
        self.purgatory = Purgatory()
        self.purgatory.kinds["join"] = OperationKind(
            lambda key, now: self.log.append(("expired", key.group, now)),
            lambda _: self.ready,
            lambda key, now: self.log.append(("completed", key.group, now)),
        )

    @property
    def counts(self) -> tuple[int, int, int, int]:
        purgatory = self.purgatory
        return purgatory.begun, purgatory.completed, purgatory.expired, len(purgatory)


@pytest.fixture
def record() -> Record:
    return Record()


def test_it_completes_when_it_is_ready(record: Record) -> None:
    record.purgatory.wait(JOIN, 10)
    assert not record.purgatory.check(JOIN, 1)
    record.ready = True
    assert record.purgatory.check(JOIN, 2)
    assert not record.purgatory.check(JOIN, 3)
    record.purgatory.tick(99)
    assert record.log == [("completed", "g", 2)]
    assert record.counts == (1, 1, 0, 0)


def test_it_expires_as_of_its_own_deadline(record: Record) -> None:
    record.purgatory.wait(OTHER, 30)
    record.purgatory.wait(JOIN, 10)
    assert (record.purgatory.due, record.purgatory.deadline(OTHER)) == (10, 30)
    record.purgatory.tick(9)
    assert record.log == []
    record.purgatory.tick(50)
    assert record.log == [("expired", "g", 10), ("expired", "h", 30)]
    assert record.counts == (2, 0, 2, 0)


def test_a_new_one_under_the_same_key_completes_the_old(record: Record) -> None:
    record.purgatory.wait(JOIN, 10)
    record.purgatory.wait(JOIN, 20)
    record.purgatory.tick(15)
    assert record.log == []
    assert record.counts == (2, 1, 0, 1)
    assert JOIN in record.purgatory


def test_ending_acts_on_nothing(record: Record) -> None:
    record.purgatory.wait(JOIN, 10)
    assert record.purgatory.end(JOIN)
    assert not record.purgatory.end(JOIN)
    record.purgatory.tick(99)
    assert record.log == []
    assert record.counts == (1, 1, 0, 0)


def test_what_expires_may_begin_anew(record: Record) -> None:
    def again(key: Key, now: int) -> None:
        record.log.append(("expired", key.group, now))
        if now < 40:
            record.purgatory.wait(key, now + 10)

    record.purgatory.kinds["join"] = record.purgatory.kinds["join"]._replace(expire=again)
    record.purgatory.wait(JOIN, 10)
    record.purgatory.tick(100)
    assert [time for _, _, time in record.log] == [10, 20, 30, 40]
    assert record.counts == (4, 0, 4, 0)
