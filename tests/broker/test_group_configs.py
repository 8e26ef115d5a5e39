"""A group's own configuration: what is refused."""

from __future__ import annotations

import pytest

from kwire.broker.configs import BROKER, GROUP, SET, Configs, checked, known
from kwire.broker.group_configs import BOUNDS, WORDS
from kwire.broker.refused import Refused


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("share.record.lock.duration.ms", "100", "greater than or equal to group.share.min.record.lock.duration.ms"),
        ("share.delivery.count.limit", "11", "less than or equal to group.share.max.delivery.count.limit"),
        ("streams.num.standby.replicas", "9", "less than or equal to group.streams.max.standby.replicas"),
        ("share.isolation.level", "dirty", "must be one of: read_uncommitted, read_committed"),
        ("share.auto.offset.reset", "by_duration:1h", "none of earliest, latest, by_duration"),
        ("share.auto.offset.reset", "by_number:PT1H", "none of earliest, latest, by_duration"),
        ("share.renew.acknowledge.enable", "yes", "Invalid value yes"),
        ("share.nonsense", "1", "Unknown group config name: share.nonsense"),
    ],
)
def test_what_is_refused(name: str, value: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        Configs().change(GROUP, "g", [(name, SET, value)])


@pytest.mark.parametrize("value", ["earliest", "latest", "by_duration:PT1H", "by_duration:P1DT0.5S"])
def test_where_a_group_may_begin(value: str) -> None:
    configs = Configs()
    configs.change(GROUP, "g", [("share.auto.offset.reset", SET, value)])
    assert configs.given[GROUP, "g"] == {"share.auto.offset.reset": value}


def test_every_bound_and_word_is_of_a_configuration_that_exists() -> None:
    for name in (*BOUNDS, *WORDS):
        if name in known("group"):
            Configs().change(GROUP, "g", [(name, SET, known("group")[name].default)])
        else:
            checked(BROKER, name, known("broker")[name].default)


def test_the_migration_policy_is_a_word() -> None:
    with pytest.raises(Refused, match="must be one of: disabled, downgrade, upgrade, bidirectional"):
        checked(BROKER, "group.consumer.migration.policy", "sideways")
