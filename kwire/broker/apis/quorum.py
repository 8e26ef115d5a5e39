"""DescribeQuorum (55), UpdateFeatures (57), AddRaftVoter (80), RemoveRaftVoter (81): the controllers, and the levels of
what the cluster can do.

Every node is a voter until it is removed from them, the first one leads, and all of them are up to date. Features take
any level that ApiVersions tells of, with two exceptions that a real cluster makes too: metadata.version and
kraft.version never go down.
"""

from __future__ import annotations

from kwire.broker.apis import Api, api_versions
from kwire.broker.context import MS, Body, Request
from kwire.broker.refused import Refused
from kwire.broker.state import BrokerState
from kwire.schema import codes
from kwire.schema.model import Versions
from kwire.wire.uuids import to_text

METADATA, CONTROLLER = "__cluster_metadata", "CONTROLLER"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def describe_quorum(request: Request, state: BrokerState) -> Body:
    topics = [
        {"TopicName": t["TopicName"], "Partitions": [_quorum(request, state, t, p) for p in t["Partitions"]]}
        for t in request.body["Topics"]
    ]
    nodes = [
        {"NodeId": node.id, "Listeners": [{"Name": CONTROLLER, "Host": node.host, "Port": node.port}]}
        for node in state.cluster.addresses(request.api, request.peer.listener)
    ]
    return {"ErrorCode": codes.NONE, "ErrorMessage": "", "Topics": topics, "Nodes": nodes}


def _quorum(request: Request, state: BrokerState, topic: Body, part: Body) -> Body:
    cluster, index = state.cluster, part["PartitionIndex"]
    row: Body = {"PartitionIndex": index, "ErrorCode": codes.NONE, "ErrorMessage": "", "Observers": []}
    if (topic["TopicName"], index) != (METADATA, 0):
        code, why = codes.UNKNOWN_TOPIC_OR_PARTITION, "Only the metadata's partition has a quorum."
        return {**row, "ErrorCode": code, "ErrorMessage": why, "LeaderId": -1, "CurrentVoters": []}
    end, now = len(cluster.topics) + 1, request.time // MS
    times = {"LogEndOffset": end, "LastFetchTimestamp": now, "LastCaughtUpTimestamp": now}
    alive = [cluster.nodes[number] for number in cluster.alive]
    rows = {node.id: {"ReplicaId": node.id, "ReplicaDirectoryId": node.directory, **times} for node in alive}
    voters = [rows[node.id] for node in alive if node.votes]
    watching = [rows[node.id] for node in alive if not node.votes]
    leads = voters[0]["ReplicaId"] if voters else -1
    row |= {"LeaderId": leads, "LeaderEpoch": 1, "HighWatermark": end}
    return {**row, "CurrentVoters": voters, "Observers": watching}


def add_voter(request: Request, state: BrokerState) -> Body:
    """A node that was removed from the voters is one again; nobody else can be reached."""
    body = request.body
    _check_cluster(body, state)
    if not any(each["Name"] == CONTROLLER for each in body["Listeners"]):
        why = "Add voter request didn't include the endpoint (Endpoints(endpoints={})) for the default listener "
        raise Refused(codes.INVALID_REQUEST, f"{why}ListenerName({CONTROLLER})")
    node = state.cluster.nodes.get(body["VoterId"])
    if node is not None and node.votes:
        why = f"The voter id for {_replica(body)} is already part of the set of voters {_voters(state)}."
        raise Refused(codes.DUPLICATE_VOTER, why)
    if node is None or not node.alive:
        why = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
        raise Refused(codes.REQUEST_TIMED_OUT, why)
    node.votes = True
    return {"ErrorCode": codes.NONE, "ErrorMessage": None}


def remove_voter(request: Request, state: BrokerState) -> Body:
    body = request.body
    _check_cluster(body, state)
    node = state.cluster.nodes.get(body["VoterId"])
    if node is None or not node.votes or node.directory != body["VoterDirectoryId"]:
        why = f"Cannot remove voter {_replica(body)} from the set of voters {_voters(state)}"
        raise Refused(codes.VOTER_NOT_FOUND, why)
    if sum(each.votes for each in state.cluster.nodes.values()) == 1:
        raise Refused(codes.INVALID_REQUEST, f"{_replica(body)} is the last voter.")
    node.votes = False
    return {"ErrorCode": codes.NONE, "ErrorMessage": None}


def _check_cluster(body: Body, state: BrokerState) -> None:
    given = body["ClusterId"]
    if given is not None and given != state.cluster.id:
        why = f'The given id "{given}" doesn\'t match the cluster id "{state.cluster.id}"'
        raise Refused(codes.INCONSISTENT_CLUSTER_ID, why)


def _replica(body: Body) -> str:
    return f"ReplicaKey(id={body['VoterId']}, directoryId={to_text(body['VoterDirectoryId'])})"


def _voters(state: BrokerState) -> str:
    voters = [node for node in state.cluster.nodes.values() if node.votes]
    return f"[{', '.join(f'ReplicaKey(id={each.id}, directoryId={to_text(each.directory)})' for each in voters)}]"


def update_features(request: Request, state: BrokerState) -> Body:
    """All that is asked, or nothing of it."""
    body = request.body
    updates = body["FeatureUpdates"]
    answer: Body = {"ErrorCode": codes.NONE, "ErrorMessage": None}
    rows = [{"Feature": each["Feature"], "ErrorCode": codes.NONE, "ErrorMessage": None} for each in updates]
    for each, row in zip(updates, rows, strict=True):
        try:
            _check(each, state)
        except Refused as refused:
            row["ErrorCode"], row["ErrorMessage"] = refused.code, refused.why
            answer |= {"ErrorCode": refused.code, "ErrorMessage": f"The update failed: {refused.why}"}
    if request.version < 2:
        answer |= {"ErrorCode": codes.NONE, "ErrorMessage": None}  # each row has its own
    if not any(row["ErrorCode"] for row in rows) and not body.get("ValidateOnly", False):
        for each in updates:
            state.cluster.levels[each["Feature"]] = each["MaxVersionLevel"]
            if each["Feature"] == "transaction.version":
                state.transactions.coordinator.level = each["MaxVersionLevel"]
        state.cluster.features += 1
    return {**answer, "Results": rows}


def _check(update: Body, state: BrokerState) -> None:
    name, level = update["Feature"], update["MaxVersionLevel"]
    found = api_versions.features(state).get(name)
    if found is None:
        raise Refused(codes.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {name}: unknown")
    low, high, now = found
    kind = update.get("UpgradeType", SAFE_DOWNGRADE if update.get("AllowDowngrade") else UPGRADE)
    if not low <= level <= high:
        why = f"Invalid update version {level} for feature {name}. Local controller 1 only supports {low}-{high}"
    elif kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise Refused(codes.INVALID_UPDATE_VERSION, f"The upgrade type {kind} is not known")
    elif level < now and kind == UPGRADE:
        why = f"Invalid update version {level} for feature {name}. Can't downgrade the version of this feature without"
        why += " setting the upgrade type to either safe or unsafe downgrade."
    elif level > now and kind != UPGRADE:
        why = f"Invalid update version {level} for feature {name}. Can't downgrade to a newer version."
    elif level < now and name == "kraft.version":
        why = f"Invalid update version {level} for feature {name}. Can't downgrade the version of this feature."
    elif level < now and name == "metadata.version":
        why = f"Invalid metadata.version {level}. "
        why += (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
    else:
        return
    raise Refused(codes.INVALID_UPDATE_VERSION, why)


APIS = (
    Api("DescribeQuorum", Versions(0, 2), describe_quorum),
    Api("UpdateFeatures", Versions(0, 2), update_features),
    Api("AddRaftVoter", Versions(0, 1), add_voter),
    Api("RemoveRaftVoter", Versions(0, 0), remove_voter),
)
