"""A folder in Kafka's own format: what is in it after a stop is there after a start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection
from kwire.client.producer import produce
from kwire.errors import KwireError
from kwire.payloads.files import open_file
from kwire.records import build
from kwire.testing import Broker


def asked(broker: Broker, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        return connection.request(api, version, body).body()


def write(broker: Broker, *values: bytes) -> None:
    with BrokerConnection.open(Address.parse(broker.address)) as connection:
        produce(connection, "t", 0, [(b"k", value) for value in values])


def test_topics_records_configs_and_offsets_come_back(tmp_path: Path) -> None:
    with Broker(data=tmp_path, topics={"t": 2}) as broker:
        write(broker, b"one", b"two")
        known = broker.server.state.cluster.topics["t"].id
        change = [{"Name": "retention.ms", "ConfigOperation": 0, "Value": "1234567890123"}]
        resource = {"ResourceType": 2, "ResourceName": "t", "Configs": change}
        asked(broker, "IncrementalAlterConfigs", 1, {"Resources": [resource], "ValidateOnly": False})
        part = {"PartitionIndex": 0, "CommittedOffset": 2, "CommittedLeaderEpoch": -1, "CommittedMetadata": "m"}
        commit = {"GroupId": "g", "GenerationIdOrMemberEpoch": -1, "MemberId": "",
                  "GroupInstanceId": None, "Topics": [{"Name": "t", "Partitions": [part]}]}  # fmt: skip
        assert asked(broker, "OffsetCommit", 8, commit)["Topics"][0]["Partitions"][0]["ErrorCode"] == 0
    with Broker(data=tmp_path, topics={"t": 7}) as broker:
        cluster = broker.server.state.cluster
        assert (cluster.topics["t"].id, len(cluster.topics["t"].partitions)) == (known, 2)
        assert cluster.configs.topic("t", "retention.ms") == "1234567890123"
        assert [record.value for record in broker.log("t")] == [b"one", b"two"]
        write(broker, b"three")
        fetch = {"Groups": [{"GroupId": "g", "Topics": None}], "RequireStable": False}
        (group,) = asked(broker, "OffsetFetch", 8, fetch)["Groups"]
        (row,) = group["Topics"][0]["Partitions"]
        assert (row["CommittedOffset"], row["Metadata"]) == (2, "m")
        assert [each["GroupId"] for each in asked(broker, "ListGroups", 4, {"StatesFilter": []})["Groups"]] == ["g"]
    with Broker(data=tmp_path) as broker:
        assert [record.offset for record in broker.log("t")] == [0, 1, 2]
        assert broker.partition("t").epoch == 2
        asked(broker, "DeleteTopics", 4, {"TopicNames": ["t"], "TimeoutMs": 1})
    assert not (tmp_path / "t-0").exists()
    with Broker(data=tmp_path) as broker:
        assert "t" not in broker.server.state.cluster.topics


def test_the_files_are_kafkas_own(tmp_path: Path) -> None:
    with Broker(data=tmp_path, topics={"t": 1}, config={"log.segment.bytes": 10_000}) as broker:
        for number in range(40):
            write(broker, b"%d" % number * 200)
        part = {"PartitionIndex": 0, "CommittedOffset": 2, "CommittedLeaderEpoch": -1, "CommittedMetadata": "m"}
        commit = {"GroupId": "g", "Topics": [{"Name": "t", "Partitions": [part]}], "GenerationIdOrMemberEpoch": -1,
                  "MemberId": "", "GroupInstanceId": None}  # fmt: skip
        asked(broker, "OffsetCommit", 8, commit)
    bases = sorted(int(path.stem) for path in (tmp_path / "t-0").glob("*.log"))
    assert bases[0] == 0
    assert len(bases) == 2
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    index = (tmp_path / "t-0" / f"{0:020d}.index").read_bytes()
    assert len(index) == 2 * 8
    assert len((tmp_path / "t-0" / f"{0:020d}.timeindex").read_bytes()) == 2 * 12
    assert "cluster.id=" in (tmp_path / "meta.properties").read_text()
    (offsets,) = tmp_path.glob("__consumer_offsets-*/*.log")
    assert offsets.parent.name == "__consumer_offsets-3"  # "g".hashCode() % 50
    assert b"g" in offsets.read_bytes()
    text = open_file(offsets.read_bytes(), "log", str(offsets)).text
    assert "1 batch of __consumer_offsets" in (text or "")


def test_what_a_crash_left_is_cut_off(tmp_path: Path) -> None:
    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        write(broker, b"one")
    log = tmp_path / "t-0" / f"{0:020d}.log"
    whole = log.read_bytes()
    log.write_bytes(whole + build([(None, b"cut")])[:-3])
    with Broker(data=tmp_path) as broker:
        assert [record.value for record in broker.log("t")] == [b"one"]
        write(broker, b"two")
        assert [record.offset for record in broker.log("t")] == [0, 1]
    assert log.read_bytes().startswith(whole)
    with Broker(data=tmp_path) as broker:
        assert len(broker.log("t")) == 2


def test_deleted_compacted_and_truncated_logs_stay_so(tmp_path: Path) -> None:
    with Broker(data=tmp_path, topics={"t": 1}, nodes=2) as broker:
        for value in (b"1", b"2", b"3"):
            write(broker, value)
        broker.partition("t").compact()
    with Broker(data=tmp_path, nodes=2) as broker:
        assert [record.value for record in broker.log("t")] == [b"3"]
        write(broker, b"4")
        broker.partition("t").delete_before(3)
    with Broker(data=tmp_path) as broker:
        assert (broker.partition("t").start, broker.partition("t").end) == (3, 4)
        assert broker.partition("t").replicas in ([1], [2])


def test_open_transactions_are_aborted(tmp_path: Path) -> None:
    how: Any = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    with Broker(data=tmp_path, topics={"t": 1}) as broker:
        log = broker.server.state.cluster.topics["t"].partitions[0].log
        broker.thread.call(lambda: log.append(build([(None, b"open")], **how), 0, 1))
    with Broker(data=tmp_path) as broker:
        assert broker.log("t", committed=True) == []
        assert broker.partition("t").end == 2


def test_a_folder_is_one_brokers(tmp_path: Path) -> None:
    with Broker(data=tmp_path), pytest.raises(KwireError, match="is in use by another broker"):
        Broker(data=tmp_path).start()
    (tmp_path / "kwire.json").write_text(json.dumps({"cluster": "x"}))
    with pytest.raises(KwireError, match=r"kwire.json: cannot be read: 'producers'"):
        Broker(data=tmp_path).start()
