"""Which requests change something on a broker, by API key: what call does not send without a word of consent.

READS only look. WRITES change data, metadata, groups, or what the broker believes of other nodes, each with what it
does. An API in neither (a newer schema's) counts as one that writes. Some bodies turn a request round: a topic that is
named in Metadata may be created by that, a Fetch by a replica moves the high watermark, ValidateOnly only checks.
"""

from __future__ import annotations

from kwire.client.exchange import Body
from kwire.schema import keys

READS = frozenset({
    keys.FETCH, keys.LIST_OFFSETS, keys.METADATA, keys.OFFSET_FETCH, keys.FIND_COORDINATOR, keys.DESCRIBE_GROUPS,
    keys.LIST_GROUPS, keys.SASL_HANDSHAKE, keys.API_VERSIONS, keys.OFFSET_FOR_LEADER_EPOCH, keys.DESCRIBE_ACLS,
    keys.DESCRIBE_CONFIGS, keys.DESCRIBE_LOG_DIRS, keys.SASL_AUTHENTICATE, keys.DESCRIBE_DELEGATION_TOKEN,
    keys.LIST_PARTITION_REASSIGNMENTS, keys.DESCRIBE_CLIENT_QUOTAS, keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
    keys.DESCRIBE_QUORUM, keys.FETCH_SNAPSHOT, keys.DESCRIBE_CLUSTER, keys.DESCRIBE_PRODUCERS,
    keys.DESCRIBE_TRANSACTIONS, keys.LIST_TRANSACTIONS, keys.CONSUMER_GROUP_DESCRIBE, keys.GET_TELEMETRY_SUBSCRIPTIONS,
    keys.LIST_CONFIG_RESOURCES, keys.DESCRIBE_TOPIC_PARTITIONS, keys.SHARE_GROUP_DESCRIBE, keys.READ_SHARE_GROUP_STATE,
    keys.READ_SHARE_GROUP_STATE_SUMMARY, keys.STREAMS_GROUP_DESCRIBE, keys.DESCRIBE_SHARE_GROUP_OFFSETS,
})  # fmt: skip
WRITES = {
    keys.PRODUCE: "appends records to a log",
    keys.LEADER_AND_ISR: "tells a broker which partitions it leads",
    keys.STOP_REPLICA: "makes a broker stop a replica, and delete it if asked",
    keys.UPDATE_METADATA: "changes a broker's view of the cluster",
    keys.CONTROLLED_SHUTDOWN: "takes a broker out of its leaderships",
    keys.OFFSET_COMMIT: "moves a group's committed offsets",
    keys.JOIN_GROUP: "joins a group: its members rebalance",
    keys.HEARTBEAT: "keeps a member alive in its group",
    keys.LEAVE_GROUP: "takes members out of their group: the others rebalance",
    keys.SYNC_GROUP: "hands out a group's assignment, or takes part in it",
    keys.CREATE_TOPICS: "creates topics",
    keys.DELETE_TOPICS: "deletes topics with their records",
    keys.DELETE_RECORDS: "deletes records",
    keys.INIT_PRODUCER_ID: "hands out a producer id, and fences the producer of a transactional id",
    keys.ADD_PARTITIONS_TO_TXN: "adds partitions to a transaction",
    keys.ADD_OFFSETS_TO_TXN: "adds a group's offsets to a transaction",
    keys.END_TXN: "commits or aborts a transaction",
    keys.WRITE_TXN_MARKERS: "ends transactions in the partitions' logs",
    keys.TXN_OFFSET_COMMIT: "commits offsets within a transaction",
    keys.CREATE_ACLS: "creates access rules",
    keys.DELETE_ACLS: "deletes access rules",
    keys.ALTER_CONFIGS: "replaces configurations",
    keys.ALTER_REPLICA_LOG_DIRS: "moves replicas between disks",
    keys.CREATE_PARTITIONS: "adds partitions to topics, for good",
    keys.CREATE_DELEGATION_TOKEN: "creates a delegation token",
    keys.RENEW_DELEGATION_TOKEN: "extends a delegation token",
    keys.EXPIRE_DELEGATION_TOKEN: "ends a delegation token",
    keys.DELETE_GROUPS: "deletes groups with their offsets",
    keys.ELECT_LEADERS: "elects partition leaders",
    keys.INCREMENTAL_ALTER_CONFIGS: "changes configurations",
    keys.ALTER_PARTITION_REASSIGNMENTS: "moves partitions between brokers",
    keys.OFFSET_DELETE: "deletes committed offsets",
    keys.ALTER_CLIENT_QUOTAS: "changes quotas",
    keys.ALTER_USER_SCRAM_CREDENTIALS: "changes logins",
    keys.VOTE: "votes in the election of a controller",
    keys.BEGIN_QUORUM_EPOCH: "announces a controller's epoch",
    keys.END_QUORUM_EPOCH: "ends a controller's epoch",
    keys.ALTER_PARTITION: "changes a partition's in-sync replicas",
    keys.UPDATE_FEATURES: "changes the cluster's feature levels",
    keys.ENVELOPE: "carries another request to the controller",
    keys.BROKER_REGISTRATION: "registers a broker",
    keys.BROKER_HEARTBEAT: "speaks for a broker: it may be fenced or shut down",
    keys.UNREGISTER_BROKER: "takes a broker out of the cluster",
    keys.ALLOCATE_PRODUCER_IDS: "hands out a block of producer ids",
    keys.CONSUMER_GROUP_HEARTBEAT: "joins, keeps or leaves a place in a group",
    keys.CONTROLLER_REGISTRATION: "registers a controller",
    keys.PUSH_TELEMETRY: "hands metrics to the broker",
    keys.ASSIGN_REPLICAS_TO_DIRS: "assigns replicas to directories",
    keys.SHARE_GROUP_HEARTBEAT: "joins, keeps or leaves a place in a share group",
    keys.SHARE_FETCH: "acquires records of a share group: others do not get them meanwhile",
    keys.SHARE_ACKNOWLEDGE: "acknowledges or releases records of a share group",
    keys.ADD_RAFT_VOTER: "adds a voter to the controllers",
    keys.REMOVE_RAFT_VOTER: "removes a voter from the controllers",
    keys.UPDATE_RAFT_VOTER: "changes a voter's addresses",
    keys.INITIALIZE_SHARE_GROUP_STATE: "initializes a share group's state",
    keys.WRITE_SHARE_GROUP_STATE: "writes a share group's state",
    keys.DELETE_SHARE_GROUP_STATE: "deletes a share group's state",
    keys.STREAMS_GROUP_HEARTBEAT: "joins, keeps or leaves a place in a streams group",
    keys.ALTER_SHARE_GROUP_OFFSETS: "moves a share group's offsets",
    keys.DELETE_SHARE_GROUP_OFFSETS: "deletes a share group's offsets",
    keys.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: "replaces the description of a streams group's topology",
    keys.UNREGISTER_CONTROLLER: "takes a controller out of the cluster",
}


def changes(key: int, version: int, body: Body) -> str | None:
    """What the request changes on the broker; None for one that only looks."""
    if key == keys.METADATA:
        return _creates_topics(version, body)
    if key == keys.FETCH:
        state = body.get("ReplicaState")
        replica = state.get("ReplicaId", -1) if isinstance(state, dict) else body.get("ReplicaId", -1)
        return "speaks for a follower: moves its position and the high watermark" if replica >= 0 else None
    if key in READS or body.get("ValidateOnly") is True:
        return None
    return WRITES.get(key, "may change something: kwire does not know this API")


def _creates_topics(version: int, body: Body) -> str | None:
    named = any(topic.get("Name") is not None for topic in body.get("Topics") or [])
    allowed = body.get("AllowAutoTopicCreation", True) if version >= 4 else True
    return "creates the topics that it names, where the broker allows that" if named and allowed else None
