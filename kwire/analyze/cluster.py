"""What brokers say of their cluster: addresses of nodes, leaders, coordinators, ids of topics; each with the first and
the last answer that said so. Metadata answers that repeat the one before are only counted."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.analyze.facts import host_of
from kwire.analyze.findings import Reference
from kwire.capture.ip import endpoint
from kwire.codec.quality import Quality
from kwire.schema import codes
from kwire.schema.keys import DESCRIBE_CLUSTER, FIND_COORDINATOR, METADATA
from kwire.wire import uuids

if TYPE_CHECKING:
    from kwire.session.exchange import Exchange, Message

KEYS = (METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER)
MOST = 100_000  # partitions, coordinators, topics, clients
MOST_STATES = 64  # of one partition, coordinator or controller
MOST_TOLD = 1000  # hosts that an address was told
WINDOW = 60_000_000_000  # ns in which Metadata requests are counted
COORDINATED = {0: "group", 1: "transactional id", 2: "share group"}


class NodeRole(NamedTuple):
    """Something that held from a time on, ns: node is the leader, controller or coordinator (-1: none). in_sync: a
    leader's replicas that were in sync when it was first told."""

    time: int
    node: int
    epoch: int
    proof: Reference
    in_sync: tuple[int, ...] = ()


@dataclass(slots=True)
class NodeAddress:
    """A node's address as the cluster tells it. told: hosts that were told, with when they were first."""

    node: int
    host: str
    port: int
    first: Reference
    last: Reference
    by: str  # the API whose answer told it
    told: dict[str, Reference] = field(default_factory=dict)


@dataclass(slots=True)
class MetadataRequests:
    """Metadata requests of a client. unchanged: answers that said what the one before said; most: of these, the most
    in WINDOW, which ended at most_at; wanted: the topics that were asked for."""

    client_id: str
    host: str
    count: int = 0
    unchanged: int = 0
    most: int = 0
    most_from: Reference | None = None
    most_to: Reference | None = None
    wanted: dict[str, int] = field(default_factory=dict)
    recent: deque[Reference] = field(default_factory=deque)
    said: dict[bytes, bytes] = field(default_factory=dict)


class ClusterHistory:
    """exchange(exchange) of KEYS, in the order of time. addresses: by cluster, node, host and port; leaders: by
    cluster, topic and partition; coordinators: by cluster, kind and key; ids: of topics, by
    cluster and name."""

    def __init__(self) -> None:
        self.addresses: dict[tuple[str, int, str, int], NodeAddress] = {}
        self.leaders: dict[tuple[str, str, int], list[NodeRole]] = {}
        self.coordinators: dict[tuple[str, str, str], list[NodeRole]] = {}
        self.ids: dict[tuple[str, str], dict[str, tuple[Reference, Reference]]] = {}
        self.asking: dict[tuple[str, str], MetadataRequests] = {}
        self._of_broker: dict[str, str] = {}  # the cluster's id, by a broker's address in the capture

    def exchange(self, exchange: Exchange) -> None:
        """An exchange of one of KEYS."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or request.api is None or response.quality != Quality.OK:
            return
        key = request.api.key
        if key == METADATA and self._is_known(exchange, request, response):
            return
        answer = response.body()
        if answer is None:
            return
        broker = exchange.connection.ends[1]
        if answer.get("ClusterId") and len(self._of_broker) < MOST:
            self._of_broker[broker] = answer["ClusterId"]
        cluster = self._of_broker.get(broker, "")
        proof = Reference.of(response)
        if key == METADATA:
            self._metadata(exchange, answer, cluster, proof)
        elif key == FIND_COORDINATOR:
            self._coordinator(exchange, request.body() or {}, answer, cluster, proof)
        else:
            self._nodes(exchange, answer.get("Brokers") or (), "BrokerId", cluster, proof)

    def refused(self, exchange: Exchange) -> None:
        """A Produce or Fetch refused by a broker that does not lead: it may say who does (KIP-951). Where nobody said
        before who did, the client took it to be that broker."""
        response = exchange.response
        answer = None if response is None else response.body()
        if response is None or answer is None:
            return
        broker, proof = exchange.connection.ends[1], Reference.of(response)
        cluster, asked = self.cluster_of(broker), self.node_at(broker)
        self._nodes(exchange, answer.get("NodeEndpoints") or (), "NodeId", cluster, proof)
        for topic in answer.get("Responses") or ():
            name = topic.get("Name") or topic.get("Topic") or exchange.connection.topics.name(topic["TopicId"])
            for part in topic.get("PartitionResponses") or topic.get("Partitions") or ():
                now = part.get("CurrentLeader") or {}
                key = cluster, name, part.get("Index", part.get("PartitionIndex"))
                if (
                    part["ErrorCode"] != codes.NOT_LEADER_OR_FOLLOWER
                    or now.get("LeaderId", -1) < 0
                    or len(self.leaders) >= MOST
                ):
                    continue
                states = self.leaders.setdefault(key, [])
                if not states and asked is not None and exchange.request is not None:
                    _note(states, asked, -1, Reference.of(exchange.request))
                _note(states, now["LeaderId"], now["LeaderEpoch"], proof)

    def cluster_of(self, broker: str) -> str:
        """The id of the cluster that a broker belongs to, by its address in the capture: the one that the broker says,
        or in which others name it; empty where nobody said."""
        said = self._of_broker.get(broker)
        if said is not None:
            return said
        named = {
            cluster for cluster, _, host, port in self.addresses if broker in (f"{host}:{port}", f"[{host}]:{port}")
        }
        return named.pop() if len(named) == 1 else ""

    def advertises(self, endpoint: str) -> bool:
        """Whether an answer told this address."""
        return any(endpoint in (f"{host}:{port}", f"[{host}]:{port}") for _, _, host, port in self.addresses)

    def leader_at(self, cluster: str, topic: str, partition: int, time: int) -> NodeRole | None:
        """The leader of a partition at a time (ns), as of the last answer before."""
        states = self.leaders.get((cluster, topic, partition), ())
        return next((state for state in reversed(states) if state.time <= time), None)

    def node_at(self, endpoint: str) -> int | None:
        """The node whose advertised address is that of a broker in the capture; None where names hide it."""
        found = {node for _, node, host, port in self.addresses if endpoint in (f"{host}:{port}", f"[{host}]:{port}")}
        return found.pop() if len(found) == 1 else None

    def names_of(self, endpoint: str) -> frozenset[str]:
        """A broker's names in findings: its address and its node."""
        node = self.node_at(endpoint)
        return frozenset({endpoint} if node is None else {endpoint, node_name(self.cluster_of(endpoint), node)})

    def names_of_node(self, cluster: str, node: int) -> frozenset[str]:
        """A node's names in findings: its name and its advertised addresses."""
        told = {
            endpoint(host, port) for name, number, host, port in self.addresses if (name, number) == (cluster, node)
        }
        return frozenset({node_name(cluster, node), *told})

    def followers_of(self, endpoint: str, time: int) -> frozenset[str]:
        """Names of the brokers for which a write to all replicas waits, at a time, ns, at one that leads them."""
        node, cluster = self.node_at(endpoint), self.cluster_of(endpoint)
        leads = [self.leader_at(*key, time) for key in self.leaders if key[0] == cluster] if node is not None else []
        waited = {other for one in leads if one is not None and one.node == node for other in one.in_sync}
        return frozenset(node_name(cluster, other) for other in waited - {node})

    def _is_known(self, exchange: Exchange, request: Message, response: Message) -> bool:
        """Counts a Metadata request. Whether the answer is that which the same client got to the same question on the
        same connection: a new one begins with it."""
        who = request.client_id or "", host_of(exchange)
        asking = self.asking.get(who)
        if asking is None:
            if len(self.asking) >= MOST:
                return False
            asking = self.asking[who] = MetadataRequests(*who)
        asking.count += 1
        where = exchange.connection.full_name.encode("utf-8", "replace")
        question = hashlib.blake2b(where + request.data[(request.body_at or 0) :], digest_size=12).digest()
        at = (response.body_at or 0) + 4 * (request.api is not None and request.api.version >= 3)  # behind the throttle
        answer = hashlib.blake2b(response.data[at:], digest_size=12).digest()
        known = asking.said.get(question)
        if len(asking.said) > 1000:
            asking.said.clear()
        asking.said[question] = answer
        if known != answer:
            return False
        asking.unchanged += 1
        for topic in exchange.about.topics:
            if topic in asking.wanted or len(asking.wanted) < 100:
                asking.wanted[topic] = asking.wanted.get(topic, 0) + 1
        proof = Reference.of(request)
        asking.recent.append(proof)
        while len(asking.recent) > 10_000 or proof.time - asking.recent[0].time > WINDOW:
            asking.recent.popleft()
        if len(asking.recent) > asking.most:
            asking.most, asking.most_from, asking.most_to = len(asking.recent), asking.recent[0], proof
        return True

    def _metadata(self, exchange: Exchange, answer: dict[str, Any], cluster: str, proof: Reference) -> None:
        self._nodes(exchange, answer.get("Brokers") or (), "NodeId", cluster, proof)
        for topic in answer.get("Topics") or ():
            ident, name = topic.get("TopicId"), topic.get("Name")
            if name is None and ident is not None:
                name = exchange.connection.topics.name(ident)
            if name is None or topic["ErrorCode"]:
                continue
            if ident is not None and ident.int and ((cluster, name) in self.ids or len(self.ids) < MOST):
                known = self.ids.setdefault((cluster, name), {})
                text = uuids.to_text(ident)
                if text in known or len(known) < MOST_STATES:
                    known[text] = known.get(text, (proof, proof))[0], proof
            for part in topic["Partitions"]:
                key = cluster, name, part["PartitionIndex"]
                if key in self.leaders or len(self.leaders) < MOST:
                    leader = part["LeaderId"] if not part["ErrorCode"] or part["LeaderId"] >= 0 else -1
                    in_sync = tuple(part.get("IsrNodes") or ())[:MOST_STATES]
                    _note(self.leaders.setdefault(key, []), leader, part.get("LeaderEpoch", -1), proof, in_sync)

    def _nodes(self, exchange: Exchange, nodes: Any, ident: str, cluster: str, proof: Reference) -> None:
        for node in nodes:
            self._address(exchange, cluster, node[ident], node["Host"], node["Port"], proof)

    def _address(self, exchange: Exchange, cluster: str, node: int, host: str, port: int, proof: Reference) -> None:
        key = cluster, node, host, port
        known = self.addresses.get(key)
        if known is None:
            if len(self.addresses) >= MOST:
                return
            known = self.addresses[key] = NodeAddress(node, host, port, proof, proof, exchange.api)
        known.last = proof
        client = host_of(exchange)
        if client in known.told or len(known.told) < MOST_TOLD:
            known.told.setdefault(client, proof)

    def _coordinator(
        self, exchange: Exchange, asked: dict[str, Any], answer: dict[str, Any], cluster: str, proof: Reference
    ) -> None:
        kind = COORDINATED.get(asked.get("KeyType", 0), "group")
        for found in answer.get("Coordinators") or [{**answer, "Key": asked.get("Key", "")}]:
            if found["ErrorCode"] or found["NodeId"] < 0:
                continue
            key = cluster, kind, found["Key"]
            if key in self.coordinators or len(self.coordinators) < MOST:
                _note(self.coordinators.setdefault(key, []), found["NodeId"], -1, proof)
            self._address(exchange, cluster, found["NodeId"], found["Host"], found["Port"], proof)

    def moves(self) -> Iterator[tuple[str, str, int, NodeRole, NodeRole]]:
        """Partitions that got another leader: cluster, topic, partition, before and after."""
        for (cluster, topic, partition), states in self.leaders.items():
            for before, after in pairwise(states):
                yield cluster, topic, partition, before, after


def node_name(cluster: str, node: int) -> str:
    """A node's name among those on which findings depend."""
    return f"{cluster}/{node}"


def _note(states: list[NodeRole], node: int, epoch: int, proof: Reference, in_sync: tuple[int, ...] = ()) -> None:
    """Adds what an answer said, unless it is known or older than what is known: brokers learn at different times."""
    if states:
        last = states[-1]
        if last.node == node or (0 <= epoch < last.epoch) or len(states) >= MOST_STATES:
            return
    states.append(NodeRole(proof.time, node, epoch, proof, in_sync))
