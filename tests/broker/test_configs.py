"""Configurations: defaults, what was set, and what may not be."""

from __future__ import annotations

import pytest

from kwire.broker.configs import APPEND, BROKER, DELETE, DYNAMIC, GROUP, SET, SUBTRACT, TOPIC, Configs, known
from kwire.broker.refused import Refused
from kwire.schema import codes


def values(configs: Configs, *names: str) -> list[tuple[str, int]]:
    return [(value.value, value.source) for value in configs.describe(TOPIC, "t", list(names))]


def test_defaults_and_what_was_set() -> None:
    configs = Configs()
    configs.change(TOPIC, "t", [("retention.ms", SET, "5")])
    assert values(configs, "retention.ms", "segment.ms") == [("5", 1), ("604800000", 5)]
    assert configs.topic("t", "retention.ms") == "5"
    assert configs.topic("other", "retention.ms") == "604800000"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("cleanup.policy", APPEND, "compact")], "delete,compact"),
        ([("cleanup.policy", SET, "compact"), ("cleanup.policy", APPEND, "delete,compact")], "compact,delete"),
        ([("cleanup.policy", SUBTRACT, "delete")], ""),
        ([("cleanup.policy", SET, "compact"), ("cleanup.policy", DELETE, None)], "delete"),
    ],
)
def test_changes_of_a_list(changes: list[tuple[str, int, str | None]], expected: str) -> None:
    configs = Configs()
    configs.change(TOPIC, "t", changes)
    assert values(configs, "cleanup.policy")[0][0] == expected


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        (("no.such", SET, "1"), codes.INVALID_CONFIG, "Unknown topic config name: no.such"),
        (("retention.ms", SET, "soon"), codes.INVALID_CONFIG,
         "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
        (("preallocate", SET, "yes"), codes.INVALID_CONFIG,
         "Invalid value yes for configuration preallocate: Expected value to be either true or false"),
        (("min.cleanable.dirty.ratio", SET, "x"), codes.INVALID_CONFIG,
         "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"),
        (("retention.ms", APPEND, "1"), codes.INVALID_CONFIG,
         "Config value append is not allowed for config key: retention.ms"),
        (("retention.ms", 9, "1"), codes.INVALID_REQUEST, "Unknown operation 9 for retention.ms."),
    ],
)  # fmt: skip
def test_changes_that_cannot_be(change: tuple[str, int, str | None], code: int, why: str) -> None:
    configs = Configs()
    with pytest.raises(Refused) as refused:
        configs.change(TOPIC, "t", [("segment.ms", SET, "1"), change])
    assert (refused.value.code, refused.value.why, configs.given) == (code, why, {})


def test_all_at_once_replaces_all() -> None:
    configs = Configs()
    configs.change(TOPIC, "t", [("retention.ms", SET, "5")])
    configs.replace(TOPIC, "t", {"segment.ms": "7"})
    assert values(configs, "retention.ms", "segment.ms") == [("604800000", 5), ("7", 1)]
    configs.replace(TOPIC, "t", {"segment.ms": "9"}, dry=True)
    configs.forget_topic("t")
    assert configs.given == {}


def test_groups_and_brokers_have_configurations_of_their_own() -> None:
    configs = Configs()
    configs.change(GROUP, "g", [("share.auto.offset.reset", SET, "earliest")])
    assert configs.given == {(GROUP, "g"): {"share.auto.offset.reset": "earliest"}}
    configs.static["num.partitions"] = "4"
    (value,) = configs.describe(BROKER, "1", ["num.partitions"])
    assert (value.value, value.source) == ("4", 4)


def test_every_known_default_is_of_its_type() -> None:
    configs = Configs()
    for kind, word in ((TOPIC, "topic"), (BROKER, "broker"), (GROUP, "group")):
        for entry in known(word).values():
            if kind == TOPIC or entry.name in DYNAMIC:
                configs.change(kind, "x", [(entry.name, SET, entry.default)])
    assert len(configs.given[TOPIC, "x"]) == 33


def test_topics_have_from_the_broker_what_they_have_not_of_their_own() -> None:
    configs = Configs()
    assert configs.topic("t", "max.message.bytes") == "1048588"
    configs.change(BROKER, "", [("message.max.bytes", SET, "500")])
    assert configs.topic("t", "max.message.bytes") == "500"
    (value,) = configs.describe(TOPIC, "t", ["max.message.bytes"])
    assert (value.value, value.source) == ("500", 3)
    (value,) = configs.describe(BROKER, "1", ["message.max.bytes"])
    assert (value.value, value.source) == ("500", 3)
    configs.change(BROKER, "1", [("message.max.bytes", SET, "600")])
    assert configs.topic("t", "max.message.bytes") == "600"
    configs.change(TOPIC, "t", [("max.message.bytes", SET, "700")])
    assert (configs.topic("t", "max.message.bytes"), configs.topic("u", "max.message.bytes")) == ("700", "600")
    configs.change(BROKER, "1", [("message.max.bytes", DELETE, None)])
    configs.change(BROKER, "", [("message.max.bytes", DELETE, None)])
    assert configs.topic("u", "max.message.bytes") == "1048588"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [  # as a real 4.3 answers
        ("num.partitions", "3", "Cannot update these configs dynamically: [num.partitions]"),
        ("group.max.size", "3", "Cannot update these configs dynamically: [group.max.size]"),
        ("connections.max.idle.ms", "3", "Cannot update these configs dynamically: [connections.max.idle.ms]"),
        ("message.max.bytes", "x", "Invalid value x for configuration message.max.bytes: Not a number of type INT"),
        ("max.connections", "-1", "Invalid value -1 for configuration max.connections: Value must be at least 0"),
    ],
)
def test_what_a_running_broker_does_not_take(name: str, value: str, why: str) -> None:
    with pytest.raises(Refused) as refused:
        Configs().change(BROKER, "1", [(name, SET, value)])
    assert (refused.value.code, refused.value.why) == (codes.INVALID_REQUEST, why)


def test_a_nodes_value_comes_before_that_of_all() -> None:
    configs = Configs()
    configs.settle({"max.connections": "9", "metric.reporters": "given"})
    for node, value in (("1", "5"), ("", "7")):
        configs.change(BROKER, node, [("max.connections", SET, value), ("metric.reporters", SET, "")])
    assert (configs.broker("max.connections"), configs.broker("metric.reporters")) == ("5", "")
    configs.change(BROKER, "1", [("max.connections", DELETE, None)])
    assert configs.broker("max.connections") == "7"
    configs.change(BROKER, "", [("max.connections", DELETE, None)])
    assert configs.broker("max.connections") == "9"


def test_synonyms_are_those_of_a_real_broker() -> None:
    def told(kind: int, resource: str, name: str) -> list[tuple[str, str, int]]:
        found = configs.describe(kind, resource, [name])
        return [(each.name, each.value, each.source) for value in found for each in value.synonyms]

    configs = Configs()
    assert told(TOPIC, "t", "segment.bytes") == [("log.segment.bytes", "1073741824", 5)]
    assert told(TOPIC, "t", "preallocate") == [("log.preallocate", "false", 5)]
    assert (
        told(TOPIC, "t", "retention.ms") == told(TOPIC, "t", "flush.ms") == told(BROKER, "", "log.segment.bytes") == []
    )
    configs.change(TOPIC, "t", [("segment.bytes", SET, "2000000"), ("retention.ms", SET, "7")])
    configs.change(BROKER, "", [("log.segment.bytes", SET, "3000000"), ("log.retention.ms", SET, "5")])
    configs.change(BROKER, "1", [("log.segment.bytes", SET, "4000000")])
    below = [("log.segment.bytes", "4000000", 2), ("log.segment.bytes", "3000000", 3)]
    default = ("log.segment.bytes", "1073741824", 5)
    assert told(TOPIC, "t", "segment.bytes") == [("segment.bytes", "2000000", 1), *below, default]
    assert told(BROKER, "1", "log.segment.bytes") == [*below, default]
    assert told(BROKER, "", "log.segment.bytes") == below[1:]
    hours = [("log.retention.ms", "5", 3), ("log.retention.hours", "168", 5)]
    assert told(TOPIC, "t", "retention.ms") == [("retention.ms", "7", 1), *hours]
    assert told(BROKER, "1", "log.retention.ms") == hours


def test_the_rules_of_batches_follow_every_change() -> None:
    configs = Configs()
    assert (configs.rules("t").limit, configs.rules("t").retained) == (1_048_588, -1)
    configs.change(TOPIC, "t", [("max.message.bytes", SET, "7"), ("retention.bytes", SET, "9")])
    assert (configs.rules("t").limit, configs.rules("t").retained, configs.rules("u").limit) == (7, 9, 1_048_588)
    configs.replace(TOPIC, "t", {"cleanup.policy": "compact", "retention.bytes": "9"})
    assert (configs.rules("t").compacted, configs.rules("t").retained) == (True, -1)
    configs.change(BROKER, "", [("message.max.bytes", SET, "8")])
    assert configs.rules("t").limit == configs.rules("u").limit == 8
    configs.settle({"min.insync.replicas": "2"})
    assert configs.rules("u").least_in_sync == 2
    configs.forget_topic("t")
    assert not configs.rules("t").compacted
