"""Client quotas: what is set for users, client ids and addresses, and how long a client that takes more has to wait.

A rate is measured over eleven seconds, as quota.window.num and quota.window.size.seconds have it, and never over less
than ten; a client above its quota waits as long as it takes the rate to come down (ClientQuotaManager, QuotaUtils), at
most eleven seconds. The answer says so (ThrottleTimeMs), and the connection is not heard until then (KIP-219).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.broker.refused import Refused
from kwire.schema import codes

SECOND = 1_000_000_000  # ns
SAMPLES = 11
LEAST = (SAMPLES - 1) * SECOND
USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCED, CONSUMED = "producer_byte_rate", "consumer_byte_rate"
KEYS = {PRODUCED: True, CONSUMED: True}  # those that are enforced; whether whole numbers only
MOST_ENTITIES = MOST_METERS = 10_000
Entity = tuple[tuple[str, str | None], ...]  # type and name (None: the default), sorted


@dataclass(slots=True)
class Meter:
    """One client's rate: amounts by their second."""

    samples: deque[tuple[int, int]] = field(default_factory=deque)  # when the second began, ns; how much
    total: int = 0

    def record(self, amount: int, now: int) -> None:
        if self.samples and now - self.samples[-1][0] < SECOND:
            self.samples[-1] = (self.samples[-1][0], self.samples[-1][1] + amount)
        else:
            self.samples.append((now, amount))
        self.total += amount
        while now - self.samples[0][0] >= SAMPLES * SECOND:
            self.total -= self.samples.popleft()[1]

    def wait(self, quota: float, now: int) -> int:
        """How long until the rate is within the quota, ns."""
        window = max(now - self.samples[0][0], LEAST)
        rate = self.total * SECOND / window
        return min(int((rate - quota) / quota * window), SAMPLES * SECOND) if rate > quota else 0


class QuotaFilter(NamedTuple):
    """A component of a filter. match: 0 exact, 1 the default, 2 any."""

    type: str
    match: int
    name: str | None

    def fits(self, entity: dict[str, str | None]) -> bool:
        if self.type not in entity:
            return False
        return self.match == 2 or entity[self.type] == (self.name if self.match == 0 else None)


class Quotas:
    """By entity, key to value."""

    def __init__(self) -> None:
        self.given: dict[Entity, dict[str, float]] = {}
        self._meters: OrderedDict[tuple[str, str, str], Meter] = OrderedDict()

    def change(self, entity: list[tuple[str, str | None]], ops: list[tuple[str, float, bool]], dry: bool) -> None:
        """Sets or, with true, removes values. Raises Refused for what cannot be."""
        types = [kind for kind, _ in entity]
        if not types or len(set(types)) != len(types):
            raise Refused(codes.INVALID_REQUEST, "Invalid empty client quota entity or a type named twice")
        if not set(types) <= {USER, CLIENT_ID}:
            what = "quotas of addresses are not enforced here" if types == [IP] else f"Invalid entity {types}"
            raise Refused(codes.INVALID_REQUEST, what)
        if any(name == "" for _, name in entity):
            raise Refused(codes.INVALID_REQUEST, "Invalid empty entity name")
        if len({key for key, _, _ in ops}) != len(ops):
            raise Refused(codes.INVALID_REQUEST, "Duplicate key in one entity's operations")
        key = tuple(sorted(entity, key=lambda part: part[0]))
        made = dict(self.given.get(key, {}))
        for name, value, remove in ops:
            if name not in KEYS:
                raise Refused(codes.INVALID_REQUEST, f"{name} is not enforced here; {' and '.join(KEYS)} are")
            if remove:
                made.pop(name, None)
                continue
            if not 0 < value < 1 << 63 or value != int(value):
                raise Refused(codes.INVALID_REQUEST, f"Quota {name} must be a whole number above 0, not {value}")
            made[name] = value
        if made and key not in self.given and len(self.given) >= MOST_ENTITIES:
            raise Refused(codes.POLICY_VIOLATION, f"this broker keeps quotas of at most {MOST_ENTITIES} entities")
        if dry:
            return
        self.given.pop(key, None)
        if made:
            self.given[key] = made

    def find(self, wanted: list[QuotaFilter], strict: bool) -> list[tuple[Entity, dict[str, float]]]:
        """Entities that fit all components; strict: and have no other parts."""
        types = [each.type for each in wanted]
        if len(set(types)) != len(types) or any(not 0 <= each.match <= 2 for each in wanted):
            raise Refused(codes.INVALID_REQUEST, "an entity type twice, or a match type that is not known")
        if unknown := set(types) - {USER, CLIENT_ID, IP}:
            raise Refused(codes.UNSUPPORTED_VERSION, f"Custom entity type '{min(unknown)}' not supported")
        return [
            (entity, values)
            for entity, values in self.given.items()
            if all(each.fits(dict(entity)) for each in wanted) and (not strict or len(entity) == len(wanted))
        ]

    def charge(self, key: str, user: str, client: str, amount: int, now: int) -> int:
        """A client took so many bytes; gives how long it has to wait, ns."""
        if not self.given:
            return 0
        found = self._quota(key, user, client)
        if found is None:
            return 0
        quota, who = found
        meter = self._meters.get((key, *who))
        if meter is None:
            meter = self._meters[(key, *who)] = Meter()
            if len(self._meters) > MOST_METERS:
                self._meters.popitem(last=False)
        self._meters.move_to_end((key, *who))
        meter.record(amount, now)
        return meter.wait(quota, now)

    def _quota(self, key: str, user: str, client: str) -> tuple[float, tuple[str, str]] | None:
        """The value that counts, and for whom together: (user, client id), "" for all."""
        for named, parts in (
            ((user, client), (user, client)), ((user, None), (user, client)), ((user,), (user, "")),
            ((None, client), (user, client)), ((None, None), (user, client)), ((None,), (user, "")),
        ):  # fmt: skip
            entity: Entity = ((USER, named[0]),) if len(named) == 1 else ((CLIENT_ID, named[1]), (USER, named[0]))
            if key in self.given.get(entity, {}):
                return self.given[entity][key], parts
        for name in (client, None):
            if key in self.given.get(((CLIENT_ID, name),), {}):
                return self.given[((CLIENT_ID, name),)][key], ("", client)
        return None
