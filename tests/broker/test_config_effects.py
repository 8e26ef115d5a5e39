"""Every configuration that is accepted has an effect, with its test, or changes nothing for a reason that is told."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.broker.configs import (
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    INHERITED,
    KINDS,
    OF_ALL_GROUPS,
    SET,
    TOPIC,
    known,
)
from kwire.broker.context import BrokerSettings
from kwire.broker.idle_configs import IDLE, NOTES, OF_FILES
from kwire.broker.server import BrokerServer
from kwire.broker.static_configs import configured, settings_field
from kwire.guide import page
from kwire.schema import codes

ROOT = Path(__file__).parents[2]
BATCHES = {  # of batches that are written: a value, and the configurations that it needs
    "max.message.bytes": "70", "message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": "7",
    "message.timestamp.after.max.ms": "7", "compression.type": "gzip", "compression.gzip.level": "2",
    "compression.lz4.level": "2", "compression.zstd.level": "2", "min.insync.replicas": "2", "retention.bytes": "9",
    "cleanup.policy": "compact",
}  # fmt: skip
COMPACTION = {  # of cleaning
    "segment.bytes": "700", "segment.ms": "7", "segment.jitter.ms": "604000000", "delete.retention.ms": "7",
    "min.compaction.lag.ms": "7", "max.compaction.lag.ms": "7", "min.cleanable.dirty.ratio": "0.7",
}  # fmt: skip
TESTED = {  # where the others have their test
    **{name: f"test_segments.py::test_{name.replace('.', '_')}" for name in OF_FILES},
    "segment.index.bytes": "test_segments.py::test_where_segments_begin",
    "retention.ms": "test_compaction.py::test_the_sweep_compacts_and_keeps_what_only_deleting_would_drop",
    "unclean.leader.election.enable": "test_topology.py::test_unclean_elections_may_be_allowed",
    **dict.fromkeys(
        (f"{side}.replication.throttled.{what}" for side in ("leader", "follower") for what in ("replicas", "rate")),
        "apis/test_reassignments.py::test_copying_is_throttled_where_the_topic_says_so",
    ),
    "allow.everyone.if.no.acl.found": "test_static_configs.py::test_what_no_acl_speaks_of_is_open_when_told_so",
    "replica.selector.class": "test_topology.py::test_consumers_are_sent_to_the_replica_in_their_rack",
    "metric.reporters": "apis/test_telemetry.py::test_it_is_announced_when_somebody_takes_the_metrics",
    "share.auto.offset.reset": "test_config_effects.py::test_a_share_groups_own_configuration",
    "share.isolation.level": "test_config_effects.py::test_a_share_groups_own_configuration",
    "share.renew.acknowledge.enable": "test_config_effects.py::test_a_share_groups_own_configuration",
    "default.replication.factor": "test_config_effects.py::test_new_topics_have_as_many_replicas_as_told",
    "delete.topic.enable": "test_config_effects.py::test_topics_may_be_kept_from_being_deleted",
    "log.cleaner.backoff.ms": "test_config_effects.py::test_logs_are_looked_at_as_often_as_told",
    "log.retention.check.interval.ms": "test_config_effects.py::test_logs_are_looked_at_as_often_as_told",
    **dict.fromkeys(
        ("max.connections", "max.connections.per.ip"),
        "test_limits.py::test_how_many_connections_there_may_be_is_altered_while_it_runs",
    ),
    "interval.ms": "apis/test_telemetry.py::test_subscriptions_are_configurations",
    "match": "apis/test_telemetry.py::test_subscriptions_are_configurations",
    "metrics": "apis/test_telemetry.py::test_subscriptions_are_configurations",
}


def other(kind: str, name: str) -> str:
    """A value that is not the default."""
    entry = known(kind)[name]
    if entry.type == 1:
        return "false" if entry.default == "true" else "true"
    if name.endswith("migration.policy"):
        return "upgrade"
    return str(int(entry.default) + (1 if int(entry.default) < 2 else -1))


ALL = [(kind, name) for kind in KINDS.values() for name in known(kind)]
IN_SETTINGS = [name for name in known("broker") if settings_field(name) and name not in TESTED]
OF_GROUPS = [name for name in known("group") if name not in TESTED]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_each_has_a_test_or_a_reason(kind: str, name: str) -> None:
    inherited = kind == "broker" and name in INHERITED.values()
    known_ways = (BATCHES, COMPACTION) if kind == "topic" else (IN_SETTINGS, OF_GROUPS)
    if name in IDLE or inherited or any(name in way for way in known_ways):
        return
    path, _, test = TESTED[name].partition("::")
    assert f"def {test}(" in (Path(__file__).parent / path).read_text("utf-8")


def test_reasons_are_of_configurations_that_exist_and_stand_in_the_guide() -> None:
    text = page("test-broker").text
    assert set(NOTES) <= {name for _, name in ALL}
    assert [name for name in NOTES if f"`{name}`" not in text] == []


def test_the_reason_is_told_as_documentation(make_socketless: Any) -> None:
    socketless = make_socketless(BrokerSettings(topics=(("t", 1),)))
    asked = {"ResourceType": TOPIC, "ResourceName": "t", "ConfigurationKeys": ["local.retention.ms", "retention.ms"]}
    for wanted, reasons in ((True, [IDLE["local.retention.ms"], None]), (False, [None, None])):
        rows = socketless.ask("DescribeConfigs", 4, {"Resources": [asked], "IncludeDocumentation": wanted})["Results"]
        assert [row["Documentation"] for row in rows[0]["Configs"]] == reasons


# ---------------------------------------------------------------- topics


def changed(make_socketless: Any, name: str, value: str, shown: Callable[[Any], Any], **needed: str) -> bool:
    """Whether what is shown of a socketless is another thing when topic t has the value."""
    socketless = make_socketless(BrokerSettings(topics=(("t", 1),)))
    for each, text in needed.items():
        socketless.state.cluster.configs.change(TOPIC, "t", [(each.replace("_", "."), SET, text)])
    before = shown(socketless.state)
    socketless.state.cluster.configs.change(TOPIC, "t", [(name, SET, value)])
    return bool(shown(socketless.state) != before)


@pytest.mark.parametrize("name", BATCHES)
def test_rules_of_batches_are_the_topics(make_socketless: Any, name: str) -> None:
    kind = name.split(".")[1] if name.endswith(".level") else ""
    needed = {"compression_type": kind} if kind else {}
    assert changed(make_socketless, name, BATCHES[name], lambda state: state.cluster.configs.rules("t"), **needed)


@pytest.mark.parametrize("name", COMPACTION)
def test_rules_of_cleaning_are_the_topics(make_socketless: Any, name: str) -> None:
    assert changed(make_socketless, name, COMPACTION[name], lambda state: state.compaction("t"))


@pytest.mark.parametrize(("mine", "theirs"), INHERITED.items())
def test_topics_have_the_brokers(make_socketless: Any, mine: str, theirs: str) -> None:
    values = {**BATCHES, **COMPACTION, "retention.ms": "7", "unclean.leader.election.enable": "true"}
    socketless = make_socketless(configured(BrokerSettings(topics=(("t", 1),)), {theirs: values[mine]}))
    assert socketless.state.cluster.configs.topic("t", mine) == values[mine] != known("topic")[mine].default
    socketless.state.cluster.configs.change(BROKER, "", [(theirs, SET, known("topic")[mine].default)])
    assert socketless.state.cluster.configs.topic("t", mine) == known("topic")[mine].default


# ---------------------------------------------------------------- brokers and groups


@cache
def attributes_read() -> frozenset[str]:
    """Every attribute that code of brokers and coordinators reads."""
    files = [*(ROOT / "kwire/broker").rglob("*.py"), *(ROOT / "kwire/coordinator").rglob("*.py")]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    return frozenset(node.attr for node in nodes if isinstance(node, ast.Attribute))


@pytest.mark.parametrize("name", IN_SETTINGS)
def test_settings_are_the_brokers_and_are_read(name: str) -> None:
    found = settings_field(name)
    assert found is not None
    part, field = found
    made = configured(BrokerSettings(), {name: other("broker", name)})
    before = BrokerSettings()
    holder, default = (getattr(made, part), getattr(before, part)) if part else (made, before)
    assert getattr(holder, field) != getattr(default, field)
    assert field in attributes_read()


@pytest.mark.parametrize("name", OF_GROUPS)
def test_settings_are_the_groups_and_are_read(make_socketless: Any, name: str) -> None:
    socketless, field = make_socketless(), f"group_{name.replace('.', '_')}"
    value = str(int(known("group")[name].default) + 1)
    socketless.state.cluster.configs.change(GROUP, "g", [(name, SET, value)])
    assert getattr(socketless.state.groups.coordinator.settings_of("g"), field) == int(value)
    assert getattr(socketless.state.groups.coordinator.settings_of("h"), field) != int(value)
    assert field in attributes_read()


def test_a_share_groups_own_configuration(make_socketless: Any) -> None:
    socketless = make_socketless()
    sharing, configs = socketless.state.sharing, socketless.state.cluster.configs
    for name, value in (("share.auto.offset.reset", "earliest"), ("share.isolation.level", "read_committed")):
        configs.change(GROUP, "g", [(name, SET, value)])
        assert (sharing.config("g", name), sharing.config("h", name)) == (value, known("group")[name].default)
    before = sharing.rules("g")
    configs.change(GROUP, "g", [("share.renew.acknowledge.enable", SET, "false")])
    assert sharing.rules("g") != before


def test_new_topics_have_as_many_replicas_as_told(make_socketless: Any) -> None:
    socketless = make_socketless(configured(BrokerSettings(nodes=3), {"default.replication.factor": 2}))
    assert len(socketless.state.create("t", 1).partitions[0].replicas) == 2


def test_topics_may_be_kept_from_being_deleted(make_socketless: Any) -> None:
    socketless = make_socketless(configured(BrokerSettings(topics=(("t", 1),)), {"delete.topic.enable": False}))
    (row,) = socketless.ask("DeleteTopics", 4, {"TopicNames": ["t"], "TimeoutMs": 1})["Responses"]
    assert row["ErrorCode"] == codes.TOPIC_DELETION_DISABLED


@pytest.mark.parametrize("name", ["log.cleaner.backoff.ms", "log.retention.check.interval.ms"])
def test_logs_are_looked_at_as_often_as_told(name: str) -> None:
    async def seconds(told: dict[str, int]) -> float:
        return BrokerServer(configured(BrokerSettings(), told)).pause

    assert [asyncio.run(seconds(told)) for told in ({}, {name: 1_000})] == [15.0, 1.0]


@pytest.mark.parametrize("name", OF_ALL_GROUPS)
def test_groups_have_what_was_altered_while_the_broker_runs(make_socketless: Any, name: str) -> None:
    socketless, field, own = make_socketless(), name.replace(".", "_"), name.removeprefix("group.")
    configs = socketless.state.cluster.configs

    def told(group: str) -> Any:
        return getattr(socketless.state.groups.coordinator.settings_of(group), field)

    configs.change(GROUP, "g", [(own, SET, "7")])
    configs.change(BROKER, "", [(name, SET, "5")])
    assert (told("g"), told("h")) == (7, 5)
    configs.change(BROKER, "", [(name, DELETE, None)])
    assert (told("g"), told("h")) == (7, 1_000)


def test_clients_metrics_are_taken_from_when_there_is_a_reporter(make_socketless: Any) -> None:
    socketless, asked = make_socketless(), {"ClientSoftwareName": "a", "ClientSoftwareVersion": "1"}

    def announced() -> bool:
        return 71 in [row["ApiKey"] for row in socketless.ask("ApiVersions", 4, asked)["ApiKeys"]]

    before = announced()
    socketless.state.cluster.configs.change(BROKER, "1", [("metric.reporters", SET, "some.Reporter")])
    assert (before, announced()) == (False, True)
    assert socketless.ask("GetTelemetrySubscriptions", 0, {"ClientInstanceId": UUID(int=0)})["ErrorCode"] == codes.NONE


def test_client_metrics_are_a_kind_of_their_own(make_socketless: Any) -> None:
    socketless = make_socketless()
    socketless.state.cluster.configs.change(CLIENT_METRICS, "m", [("interval.ms", SET, "1000")])
    assert socketless.state.cluster.configs.given[CLIENT_METRICS, "m"] == {"interval.ms": "1000"}
