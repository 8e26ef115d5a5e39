"""Connections, groups and producers come and go under faults, and the broker keeps no more of them than it should."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

import pytest

from kwire.broker import core, state
from kwire.broker.context import BrokerLimits, BrokerSettings
from kwire.broker.handle import Broker
from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.consumer import ClassicMember, ConsumerConfig
from kwire.client.producer import produce
from kwire.coordinator.types import GroupSettings
from kwire.errors import KwireError

FAULTS = (
    "Produce:error=NOT_LEADER_OR_FOLLOWER,chance=0.2",
    "Fetch:short=30,chance=0.1",
    "Heartbeat:error=REBALANCE_IN_PROGRESS,chance=0.2",
    "JoinGroup:cut,chance=0.1",
)
SHORT = ConsumerConfig(session_timeout_ms=200, rebalance_timeout_ms=200)
RECORDS = [(b"key", bytes(500))] * 4


def live(broker: Broker, number: int) -> None:
    """One client's life, which a fault may cut short."""
    with (
        suppress(KwireError),
        BrokerConnection.open(Address.parse_all(broker.address)[0], client_id=f"p{number}") as opened,
    ):
        produce(opened, "soak", 0, RECORDS)
    with suppress(KwireError), ClassicMember(broker.address, f"group-{number % 3}", "soak", SHORT) as member:
        member.find()
        member.join()
        member.sync()
        member.poll(wait_ms=0)
        member.heartbeat()
        member.leave()


def blocks(broker: Broker, lives: range) -> int:
    """What the whole process has allocated behind these lives."""
    for number in lives:
        live(broker, number)
    gc.collect()
    return sys.getallocatedblocks()


def test_what_is_over_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "KEPT", 50)
    monkeypatch.setattr(core, "TOLD", 50)
    limits = BrokerLimits(log=20_000, producers=5)
    settings = BrokerSettings(
        limits=limits, groups=GroupSettings(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=100)
    )
    with Broker(topics={"soak": 1}, faults=FAULTS, settings=settings) as broker:
        warm = blocks(broker, range(60))
        after = blocks(broker, range(60, 180))
        assert len(broker.requests()) == 50
        assert sum(event.kind == "fault" for event in broker.events()) > 0
    assert after - warm < 3_000  # 120 lives; a request that is never let go has some thirty blocks
