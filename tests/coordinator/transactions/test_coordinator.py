"""The transaction coordinator asked from outside; whole answers are compared with real brokers' in tests/broker."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.transactions.coordinator import TransactionCoordinator, offsets_place
from kwire.coordinator.transactions.transaction import LAST_EPOCH, TxnState
from kwire.coordinator.types import MS, Answer, ClientIdentity, TransactionSettings
from kwire.errors import UnknownName
from kwire.schema import codes

ORDERS = ("orders", 0)
HOUR = 3_600_000


class Lab:
    """Times are ms. Markers are written at once, unless hold is set."""

    def __init__(self, **settings: Any) -> None:
        self.coordinator = TransactionCoordinator(TransactionSettings(**settings))
        self.now, self.hold = 0, False
        self.markers: list[Any] = []

    def ask(self, api: str, version: int, **body: Any) -> Answer:
        answer = self.coordinator.ask(api, version, body, ClientIdentity("a"), self.now * MS)
        self.write()
        return answer

    def write(self) -> None:
        self.markers += self.coordinator.markers()
        if not self.hold:
            for marker in self.markers:
                self.coordinator.marked(marker.id, marker.places, self.now * MS)

    def init(self, name: str = "x", version: int = 5, **body: Any) -> tuple[int, int, int]:
        given = {"TransactionTimeoutMs": 10_000, "ProducerId": -1, "ProducerEpoch": -1}
        got = self.ask("InitProducerId", version, TransactionalId=name, **(given | body)).body
        return got["ErrorCode"], got["ProducerId"], got["ProducerEpoch"]

    def add(self, producer: int, epoch: int, *places: tuple[str, int], name: str = "x") -> int:
        check = self.coordinator.add(name, producer, epoch, places or (ORDERS,), self.now * MS)
        return check.error

    def end(self, producer: int, epoch: int, commit: bool = True, version: int = 5) -> Answer:
        return self.ask(
            "EndTxn", version, TransactionalId="x", ProducerId=producer, ProducerEpoch=epoch, Committed=commit
        )

    def wait(self, ms: int) -> None:
        self.now += ms
        while self.coordinator.due is not None and self.coordinator.due <= self.now * MS:
            self.coordinator.tick(self.coordinator.due)
            self.write()
        self.coordinator.tick(self.now * MS)

    def state(self, name: str = "x") -> TxnState:
        return self.coordinator.transactions[name].state


def test_a_transaction_from_its_first_partition_to_its_markers() -> None:
    lab = Lab()
    lab.hold = True
    _, producer, epoch = lab.init()
    assert lab.add(producer, epoch, ORDERS, ("orders", 1)) == codes.NONE
    assert lab.state() is TxnState.ONGOING
    answer = lab.end(producer, epoch)
    assert (answer.body["ProducerId"], answer.body["ProducerEpoch"]) == (producer, epoch + 1)
    (marker,) = lab.markers
    assert (marker.commit, marker.epoch, marker.places) == (True, epoch + 1, {ORDERS, ("orders", 1)})
    lab.coordinator.marked("x", [ORDERS], 0)
    assert lab.state() is TxnState.PREPARE_COMMIT
    lab.coordinator.marked("x", [("orders", 1), ("strange", 5)], 0)
    assert lab.state() is TxnState.COMPLETE_COMMIT


def test_while_markers_are_written_everything_else_waits() -> None:
    lab = Lab()
    lab.hold = True
    _, producer, epoch = lab.init()
    lab.add(producer, epoch)
    lab.end(producer, epoch)
    waits = codes.CONCURRENT_TRANSACTIONS
    assert lab.add(producer, epoch + 1) == waits
    assert lab.init()[0] == waits
    check = lab.end(producer, epoch).check
    assert check is not None
    assert (check.error, check.name) == (waits, "pending")
    assert check.why == "PrepareCommit: markers of the transaction before are still being written"
    check, inside = lab.coordinator.verify("x", producer, epoch + 1, [ORDERS], 0)
    assert (check.error, inside) == (waits, set())


def test_before_4_0_ids_and_epochs_are_compared_first() -> None:
    for era, error in (((3, 9), codes.PRODUCER_FENCED), ((4, 0), codes.CONCURRENT_TRANSACTIONS)):
        lab = Lab(era=era)
        lab.hold = True
        _, producer, epoch = lab.init()
        lab.add(producer, epoch)
        lab.end(producer, epoch, version=4)
        assert lab.add(producer, epoch + 7) == error


@pytest.mark.parametrize(("level", "epoch"), [(2, 1), (0, 1)])
def test_what_is_open_for_too_long_is_aborted_and_its_producer_fenced(level: int, epoch: int) -> None:
    lab = Lab(transaction_version=level)
    _, producer, _ = lab.init()
    lab.add(producer, 0)
    lab.wait(9_999)
    assert lab.state() is TxnState.ONGOING
    lab.wait(1)
    assert lab.state() is TxnState.COMPLETE_ABORT
    assert (lab.markers[0].commit, lab.markers[0].epoch) == (False, epoch)
    assert lab.add(producer, 0) == codes.PRODUCER_FENCED
    (event,) = [event for event in lab.coordinator.events() if event.kind == "abort"]
    assert event.why.endswith("open for longer than its 10,000 ms")


def test_a_transaction_that_somebody_else_decides_does_not_time_out() -> None:
    lab = Lab(transaction_two_phase_commit_enable=True)
    _, producer, epoch = lab.init(version=6, Enable2Pc=True, KeepPreparedTxn=False, TransactionTimeoutMs=1)
    lab.add(producer, epoch)
    lab.wait(100 * HOUR)
    assert lab.state() is TxnState.ONGOING
    lab.end(producer, epoch)
    assert lab.state() is TxnState.COMPLETE_COMMIT


@pytest.mark.parametrize(
    ("body", "error", "name"),
    [
        ({"Enable2Pc": True}, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "two phases"),
        ({"KeepPreparedTxn": True}, codes.UNSUPPORTED_VERSION, "keep prepared"),
        ({"TransactionTimeoutMs": 900_001}, codes.INVALID_TRANSACTION_TIMEOUT, "timeout"),
        ({"TransactionalId": ""}, codes.INVALID_REQUEST, "transactional id"),
        ({"ProducerId": 5}, codes.INVALID_REQUEST, "id and epoch"),
    ],
)
def test_what_a_producer_may_not_ask(body: dict[str, Any], error: int, name: str) -> None:
    lab = Lab()
    given = {"TransactionalId": "x", "TransactionTimeoutMs": 1, "ProducerId": -1, "ProducerEpoch": -1}
    check = lab.ask("InitProducerId", 6, **(given | {"Enable2Pc": False, "KeepPreparedTxn": False} | body)).check
    assert check is not None
    assert (check.error, check.name) == (error, name)


def test_ids_that_are_not_used_expire() -> None:
    lab = Lab(transactional_id_expiration_ms=HOUR)
    _, producer, epoch = lab.init()
    lab.wait(HOUR - 1)
    lab.add(producer, epoch)
    lab.wait(10_000)  # it times out, and its time begins anew
    lab.wait(HOUR - 1)
    assert "x" in lab.coordinator.transactions
    lab.wait(1)
    assert lab.coordinator.transactions == {}
    assert lab.add(producer, epoch) == codes.INVALID_PRODUCER_ID_MAPPING
    assert lab.coordinator.due is None


def test_the_gates() -> None:
    lab = Lab()
    _, producer, epoch = lab.init()
    lab.coordinator.loading.add("x")
    assert lab.init()[0] == codes.COORDINATOR_LOAD_IN_PROGRESS
    assert lab.ask("ListTransactions", 0, StateFilters=[], ProducerIdFilters=[]).body["ErrorCode"] == 14
    lab.coordinator.loading.clear()
    lab.coordinator.owns = lambda name: name != "x"
    assert lab.end(producer, epoch).body["ErrorCode"] == codes.NOT_COORDINATOR
    lab.coordinator.owns = lambda _: True
    lab.coordinator.may = lambda caller, _: caller.client_id != "a"
    for answer in (lab.end(producer, epoch), lab.ask("DescribeTransactions", 0, TransactionalIds=["x"])):
        rows = answer.body.get("TransactionStates", [answer.body])
        assert rows[0]["ErrorCode"] == codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert lab.ask("ListTransactions", 0, StateFilters=[], ProducerIdFilters=[]).body["TransactionStates"] == []


def test_a_stranger_cannot_fill_the_memory() -> None:
    lab = Lab(most_ids=2, most_places=3)
    _, producer, epoch = lab.init("x")
    assert lab.add(producer, epoch, ("t", 0), ("t", 1)) == codes.NONE
    assert lab.init("y")[0] == lab.init("z")[0] == codes.NONE
    assert set(lab.coordinator.transactions) == {"x", "z"}  # y was idle, x is open
    _, other, first = lab.init("z")
    assert lab.add(other, first, ("t", 0), ("t", 1), name="z") == codes.COORDINATOR_NOT_AVAILABLE
    assert lab.add(other, first, ("t", 0), name="z") == codes.NONE
    assert lab.init("more")[0] == codes.COORDINATOR_NOT_AVAILABLE
    lab.end(producer, epoch)
    assert lab.add(other, first, ("t", 1), ("t", 2), name="z") == codes.NONE


def test_the_last_epoch_is_kept_for_fencing() -> None:
    lab = Lab()
    _, producer, _ = lab.init()
    lab.coordinator.transactions["x"].epoch = LAST_EPOCH
    lab.add(producer, LAST_EPOCH)
    answer = lab.end(producer, LAST_EPOCH)
    assert lab.markers[0].epoch == LAST_EPOCH + 1
    assert answer.body["ProducerId"] != producer
    assert answer.body["ProducerEpoch"] == 0
    again = lab.end(producer, LAST_EPOCH)
    assert (again.body, again.check and again.check.error) == (answer.body, codes.NONE)


def test_dropping_and_timing_out_on_purpose() -> None:
    lab = Lab()
    _, producer, epoch = lab.init()
    assert not lab.coordinator.expire("x")
    lab.add(producer, epoch)
    assert lab.coordinator.expire("x")
    lab.write()
    assert lab.state() is TxnState.COMPLETE_ABORT
    lab.coordinator.forget("x")
    lab.coordinator.forget("never")
    assert lab.coordinator.transactions == {}
    assert lab.coordinator.epoch == 0


def test_where_a_groups_offsets_lie() -> None:
    assert offsets_place("g", 50) == ("__consumer_offsets", 3)
    assert offsets_place("polygenelubricants", 50) == ("__consumer_offsets", 0)  # its hash is the least of all
    assert offsets_place("gruppe-ä-\U0001f600", 50)[1] in range(50)


def test_what_nobody_answers() -> None:
    with pytest.raises(UnknownName):
        Lab().ask("JoinGroup", 9)
