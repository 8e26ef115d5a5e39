"""Which requests change something on a broker, by API key: what call does not send without a word of consent.

READS only look. WRITES change data, metadata, groups, or what the broker believes of other nodes, each with what it
does. An API in neither (a newer schema's) counts as one that writes. Some bodies turn a request round: a topic that is
named in Metadata may be created by that, a Fetch by a replica moves the high watermark, ValidateOnly only checks.
"""

from __future__ import annotations

from kwire.client.exchange import Body
from kwire.schema.keys import FETCH, METADATA

READS = frozenset({
    1, 2, 3, 9, 10, 15, 16, 17, 18, 23, 29, 32, 35, 36, 41, 46, 48, 50, 55, 59, 60, 61, 65, 66, 69, 71, 74, 75, 77, 84,
    87, 89, 90,
})  # fmt: skip
WRITES = {
    0: "appends records to a log",
    4: "tells a broker which partitions it leads",
    5: "makes a broker stop a replica, and delete it if asked",
    6: "changes a broker's view of the cluster",
    7: "takes a broker out of its leaderships",
    8: "moves a group's committed offsets",
    11: "joins a group: its members rebalance",
    12: "keeps a member alive in its group",
    13: "takes members out of their group: the others rebalance",
    14: "hands out a group's assignment, or takes part in it",
    19: "creates topics",
    20: "deletes topics with their records",
    21: "deletes records",
    22: "hands out a producer id, and fences the producer of a transactional id",
    24: "adds partitions to a transaction",
    25: "adds a group's offsets to a transaction",
    26: "commits or aborts a transaction",
    27: "ends transactions in the partitions' logs",
    28: "commits offsets within a transaction",
    30: "creates access rules",
    31: "deletes access rules",
    33: "replaces configurations",
    34: "moves replicas between disks",
    37: "adds partitions to topics, for good",
    38: "creates a delegation token",
    39: "extends a delegation token",
    40: "ends a delegation token",
    42: "deletes groups with their offsets",
    43: "elects partition leaders",
    44: "changes configurations",
    45: "moves partitions between brokers",
    47: "deletes committed offsets",
    49: "changes quotas",
    51: "changes logins",
    52: "votes in the election of a controller",
    53: "announces a controller's epoch",
    54: "ends a controller's epoch",
    56: "changes a partition's in-sync replicas",
    57: "changes the cluster's feature levels",
    58: "carries another request to the controller",
    62: "registers a broker",
    63: "speaks for a broker: it may be fenced or shut down",
    64: "takes a broker out of the cluster",
    67: "hands out a block of producer ids",
    68: "joins, keeps or leaves a place in a group",
    70: "registers a controller",
    72: "hands metrics to the broker",
    73: "assigns replicas to directories",
    76: "joins, keeps or leaves a place in a share group",
    78: "acquires records of a share group: others do not get them meanwhile",
    79: "acknowledges or releases records of a share group",
    80: "adds a voter to the controllers",
    81: "removes a voter from the controllers",
    82: "changes a voter's addresses",
    83: "initializes a share group's state",
    85: "writes a share group's state",
    86: "deletes a share group's state",
    88: "joins, keeps or leaves a place in a streams group",
    91: "moves a share group's offsets",
    92: "deletes a share group's offsets",
    93: "replaces the description of a streams group's topology",
    94: "takes a controller out of the cluster",
}


def changes(key: int, version: int, body: Body) -> str | None:
    """What the request changes on the broker; None for one that only looks."""
    if key == METADATA:
        return _creates_topics(version, body)
    if key == FETCH:
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
