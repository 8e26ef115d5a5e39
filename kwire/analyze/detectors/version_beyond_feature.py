"""Requests that the broker refuses though it offers their version: a feature of the cluster is off.

Sees UNSUPPORTED_VERSION (35) in answers to requests whose version lies within what the broker's own ApiVersions answer
offers (ConsumerGroupHeartbeat with group.version 0, share groups with share.version 0), and transactional Produce from
version 12 on where the finalized transaction.version is below 2 (KIP-584, KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.callers import host_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.feature_gates import Gate, gate_of
from kwire.analyze.findings import Finding, Reference
from kwire.analyze.offers import offer_of, release_like
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, PRODUCE

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.analyze.facts import Fact
    from kwire.session.decoded import Decoded
    from kwire.session.exchange import Exchange

TRANSACTIONS_V2 = 12  # the version of Produce from which a transaction begins by itself
FEATURES = {  # by API: the cluster's feature behind it
    "ConsumerGroupHeartbeat": "group.version", "ConsumerGroupDescribe": "group.version",
    "ShareFetch": "share.version", "ShareAcknowledge": "share.version", "ShareGroupHeartbeat": "share.version",
    "ShareGroupDescribe": "share.version", "StreamsGroupHeartbeat": "streams.version",
    "StreamsGroupDescribe": "streams.version", "AddRaftVoter": "kraft.version",
}  # fmt: skip
MOST = 10_000


class Beyond(Watch):
    """offered: ranges by broker and API key; features: finalized levels by broker; eager: transactional Produce
    requests that are too new for them, by client and host: how often, the first and the last."""

    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.offered: dict[str, Mapping[int, tuple[int, int]]] = {}
        self.features: dict[str, Mapping[str, int]] = {}
        self.eager: dict[tuple[str, str], list[tuple[str, int, Reference]]] = {}

    def exchange(self, exchange: Exchange) -> None:
        response, broker = exchange.response, exchange.connection.ends[1]
        offer = None if response is None else offer_of(response)
        if offer is None or offer.error or len(self.offered) >= MOST:
            return
        self.offered[broker] = offer.ranges
        if offer.features is not None:
            self.features[broker] = offer.features

    def columns(self, decoded: Decoded, number: int) -> None:
        kind = decoded.batch.kinds[number]
        if kind is None or kind.version < TRANSACTIONS_V2:
            return
        from kwire.analyze.produced import produced

        made = produced(decoded, number)
        for row in dict.fromkeys(made.row[made.transactional > 0].tolist()):
            exchange = decoded.batch[row]
            who = exchange.client_id or "", host_of(exchange.connection)
            kept = self.eager.setdefault(who, []) if len(self.eager) < MOST or who in self.eager else []
            if len(kept) < 100:
                kept.append((exchange.connection.ends[1], kind.version, Reference.of(exchange.first)))

    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(codes.UNSUPPORTED_VERSION):
            fact = trouble.fact
            if fact.key == API_VERSIONS:
                continue
            low, high = self.offered.get(fact.broker, {}).get(fact.key, (0, -1))
            version = _version(fact.proof.message)
            if not low <= version <= high:
                continue
            feature = FEATURES.get(fact.api, "")
            who = fact.client_id or f"a client at {fact.host}"
            what = f"{who}: {fact.api} v{version} was refused {counted(trouble.count, 'time')} (UNSUPPORTED_VERSION), "
            what += f"though broker {fact.broker} offers v{low} to v{high}"
            gate = self._gate(fact)
            levels = self.features.get(fact.broker)
            if gate is not None:
                what += f"; it {gate.needs}"
                advice = f"{gate.cure[0].upper()}{gate.cure[1:]}."
            elif feature:
                what += f"; {feature} is {levels.get(feature, 0)} in this cluster" if levels is not None else ""
                advice = f"kafka-features upgrade --feature {feature}=…, or turn the client to the older way"
                advice += " (group.protocol=classic)." if feature == "group.version" else "."
            else:
                advice = "A feature of the cluster is off, or the client does not look at features: update it."
            yield Finding(
                "error", what, tuple(trouble.samples), advice, time=fact.time, last=trouble.last.time,
                count=trouble.count, about=trouble.about | {"api": fact.api}, words=trouble.words,
                otherwise="the broker was restarted as an older release after it offered that range",
            )  # fmt: skip
        for (client, host), rows in self.eager.items():
            wrong = [row for row in rows if self._level(row[0]) < 2]
            if wrong:
                yield self._eager(client, host, wrong)

    def _gate(self, fact: Fact) -> Gate | None:
        """What the broker's release, as its offers show it, takes such requests with, where it does not by default."""
        ranges = self.offered.get(fact.broker, {})
        release = release_like(frozenset((key, *range_) for key, range_ in ranges.items()))
        gate = None if release is None else gate_of(fact.key, release)
        return gate if gate is not None and not gate.open_ else None

    def _level(self, broker: str) -> int:
        """The transaction.version of a broker's cluster; high where the capture does not tell it."""
        known = self.features.get(broker)
        return 2 if known is None else known.get("transaction.version", 0)

    def _eager(self, client: str, host: str, wrong: list[tuple[str, int, Reference]]) -> Finding:
        what = (
            f"{client or f'a client at {host}'} sends transactional Produce v{wrong[0][1]}, and transaction.version of "
        )
        what += "this cluster is below 2: such a transaction is not begun by Produce"
        advice = "Update the client: it has to look at the finalized features; or kafka-features upgrade --feature "
        advice += "transaction.version=2."
        about = {"client_id": client, "address": host, "api": "Produce"}
        return Finding(
            "error", what, tuple(row[2] for row in wrong[:3]), advice, time=wrong[0][2].time, last=wrong[-1][2].time,
            count=len(wrong), about={name: value for name, value in about.items() if value},
            otherwise="the feature was raised after the ApiVersions answer that the capture has",
        )  # fmt: skip


def _version(message: str) -> int:
    """Of a message by its name, as "FetchResponse v16"."""
    return int(message.rpartition(" v")[2])


DETECTOR = Detector(
    "requests refused though their version is offered",
    watch=Beyond,
    fields="error 35; ApiVersions: ApiKeys, FinalizedFeatures; Produce 12+ with transactional batches",
    source="KIP-584, KIP-848, KIP-890, KIP-932; franz-go#1017, KAFKA-18659",
    means="The broker's code knows the request, and the cluster has not turned on the feature behind it.",
    proof="The answer with UNSUPPORTED_VERSION; the ApiVersions answer that offers the version.",
    advice="Raise the feature with kafka-features, or configure the client to do without.",
    exchanges=(API_VERSIONS,),
    bodies=(PRODUCE,),
)
