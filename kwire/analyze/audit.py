"""What an upgrade breaks: per client, which APIs it asks for at which versions, and whether the other release takes
them.

A client is blocked if it asks for a version that the release refuses and would ask for it there too: the version is its
newest, or it does not negotiate. It is ready if the release takes all its versions, or if it negotiates and has others;
versions that it uses only because its present brokers offer them are listed. It is unproven if the release refuses the
newest version that its present broker has, and nothing shows what else it could use, or if it was seen to do nothing of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kwire.analyze.callers import callers, request_of
from kwire.analyze.client import BROKERS
from kwire.analyze.feature_gates import OPTIONAL, brokers_serving, gated
from kwire.analyze.findings import Reference, lasted
from kwire.analyze.libraries import ClientLibrary, cure_of, library_of, release_of
from kwire.analyze.offers import Release, is_gone, meet, offer_of, range_words, release_like, versions_at
from kwire.analyze.produced import produced
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, FIND_COORDINATOR, METADATA, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwire.schema.model import Versions
from kwire.schema.registry import builtin
from kwire.session.decoded import Decoded

if TYPE_CHECKING:
    from kwire.session.batch import ExchangeBatch
    from kwire.wire.columns import Ints

BLOCKED, READY, UNPROVEN = "blocked", "ready", "unproven"
VERDICTS = (BLOCKED, UNPROVEN, READY)
GREETINGS = {API_VERSIONS, METADATA, FIND_COORDINATOR, SASL_HANDSHAKE, SASL_AUTHENTICATE}  # what every client says
OLD_MAGIC = 2
COMING: Release = (4, 0)  # the release that is asked about when none is named: it takes old versions away (KIP-896)
MOST = 20_000


@dataclass(slots=True)
class Use:
    """One version of one API: how often it was asked for, and how often refused as unsupported."""

    count: int = 0
    refused: int = 0
    proof: Reference | None = None


@dataclass(slots=True)
class Speaker:
    """A client id with its software, and what it speaks. uses: by API key and version; magics: of batches it
    produced."""

    client_id: str
    software: str = ""
    software_version: str = ""
    addresses: set[str] = field(default_factory=set)
    brokers: set[str] = field(default_factory=set)
    principals: set[str] = field(default_factory=set)
    uses: dict[tuple[int, int], Use] = field(default_factory=dict)
    magics: dict[int, Reference] = field(default_factory=dict)
    negotiates: bool = False
    midstream: bool = False  # whether there are connections of which the beginning is not seen
    first: int = 0
    last: int = 0

    def merge(self, other: Speaker) -> None:
        """Adds what was seen of the same client elsewhere."""
        self.addresses |= other.addresses
        self.brokers |= other.brokers
        self.principals |= other.principals
        for key, use in other.uses.items():
            known = self.uses.setdefault(key, Use())
            known.count, known.refused, known.proof = (
                known.count + use.count, known.refused + use.refused, known.proof or use.proof
            )  # fmt: skip
        self.magics = {**other.magics, **self.magics}
        self.negotiates |= other.negotiates
        self.midstream |= other.midstream
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)

    @property
    def label(self) -> str:
        """Client id and library, as people know it."""
        library = self.library
        told = " ".join(filter(None, (self.software, self.software_version)))
        words = told or (f"{library.name} by its client id" if library else "")
        return f"{self.client_id or 'no client id'}" + (f" ({words})" if words else "")

    @property
    def library(self) -> ClientLibrary | None:
        return library_of(self.software, self.client_id)

    @property
    def is_broker(self) -> bool:
        return bool(self.client_id and BROKERS.search(self.client_id))


@dataclass(frozen=True, slots=True)
class BlockingApi:
    """An API that stands in the way: at these versions; taken: what the release takes, as "4-17" or "gone"; magic: of
    batches that are too old for it."""

    api: str
    versions: tuple[int, ...]
    taken: str
    proofs: tuple[Reference, ...]
    magic: tuple[int, ...] = ()

    def words(self) -> str:
        """As "Fetch v2 (takes 4-17)"."""
        if self.magic:
            return f"{self.api} of batches with magic {' and '.join(map(str, self.magic))}"
        return f"{self.api} v{', v'.join(map(str, self.versions))} ({self.taken})"


@dataclass(frozen=True, slots=True)
class ClientVerdict:
    """Of one client. by: what blocks it, or is not proven; cure: what would help; empty where nothing has to.
    negotiated: what the release refuses and the client asks for only as its present brokers offer it."""

    speaker: Speaker
    verdict: str
    by: tuple[BlockingApi, ...] = ()
    why: str = ""
    cure: str = ""
    negotiated: tuple[BlockingApi, ...] = ()

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        one = self.speaker
        return {
            "client_id": one.client_id or None, "addresses": sorted(one.addresses),
            "principal": " ".join(sorted(one.principals)) or None,
            "software": " ".join(filter(None, (one.software, one.software_version))) or None,
            "library": one.library.name if one.library else None, "brokers": sorted(one.brokers),
            "verdict": self.verdict,
            "blocked_by": [
                {"api": block.api, "versions": list(block.versions), "takes": block.taken}
                | ({"magic": list(block.magic)} if block.magic else {})
                | {"packets": [str(proof) for proof in block.proofs]}
                for block in self.by
            ],
            "negotiated": [
                {"api": block.api, "versions": list(block.versions), "takes": block.taken} for block in self.negotiated
            ],
            "why": self.why, "cure": self.cure or None, "negotiates": one.negotiates, "first_time": one.first,
            "last_time": one.last,
        }  # fmt: skip


class Audit:
    """add(batch) of captures, then verdicts(release). offered: ranges by broker and API key, of ApiVersions answers;
    start and end: ns, of what was seen."""

    def __init__(self) -> None:
        self.speakers: dict[tuple[str, str, str], Speaker] = {}
        self.offered: dict[str, Mapping[int, tuple[int, int]]] = {}
        self.start: int | None = None
        self.end = 0

    def add(self, batch: ExchangeBatch) -> None:
        """Exchanges."""
        if not len(batch):
            return
        known = np.array([kind is not None for kind in batch.kinds], bool)[batch.kind]
        rows = np.flatnonzero(batch.request.there & ~batch.token & batch.identified & known)
        speakers, which = self._speakers(batch, rows)
        rows, which = rows[which >= 0], which[which >= 0]
        if not len(rows):
            return
        groups = which * len(batch.kinds) + batch.kind[rows]
        order = np.argsort(groups, kind="stable")
        begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
        rows = rows[order]
        times, refused = batch.request.time[rows], batch.first_error[rows] == codes.UNSUPPORTED_VERSION
        self.start = min(self.start or int(times.min()), int(times.min()))
        self.end = max(self.end, int(times.max()))
        columns = (
            groups[order[begins]], np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins),
            np.diff(begins, append=len(rows)), np.add.reduceat(refused.astype(np.int64), begins), rows[begins],
        )  # fmt: skip
        for group, first, last, count, bad, row in zip(*(each.tolist() for each in columns), strict=True):
            speaker, kind = speakers[group // len(batch.kinds)], batch.kinds[group % len(batch.kinds)]
            assert kind is not None
            speaker.first = min(speaker.first or first, first)
            speaker.last = max(speaker.last, last)
            use = speaker.uses.setdefault((kind.key, kind.version), Use())
            use.count += count
            use.refused += bad
            use.proof = use.proof or request_of(batch, row)
            speaker.negotiates |= kind.key == API_VERSIONS
        self._offers(batch, rows)
        self._magics(batch)

    def _speakers(self, batch: ExchangeBatch, rows: Ints) -> tuple[list[Speaker], Ints]:
        """The speakers of these rows, and the index of each row's speaker, -1 beyond the bound."""
        people, who = callers(batch)
        pairs, which = np.unique(who[rows] * len(batch.connections) + batch.connection[rows], return_inverse=True)
        numbers: dict[int, int] = {}
        found: list[Speaker] = []
        of_pair = []
        for pair in pairs.tolist():
            at, number = divmod(pair, len(batch.connections))
            caller, connection = people[at], batch.connections[number]
            said = connection.identity
            speaker = self._of(caller.client_id, said.software or "", said.software_version or "")
            if speaker is None:
                of_pair.append(-1)
                continue
            if id(speaker) not in numbers:
                numbers[id(speaker)] = len(found)
                found.append(speaker)
            of_pair.append(numbers[id(speaker)])
            speaker.addresses.add(caller.host)
            speaker.brokers.add(caller.broker)
            speaker.midstream |= connection.tcp.opener is None or connection.resumed
            if said.principal:
                speaker.principals.add(said.principal)
        return found, np.array(of_pair, np.int64)[which]

    def _of(self, client_id: str, software: str, version: str) -> Speaker | None:
        key = client_id, software, version
        if key not in self.speakers and len(self.speakers) >= MOST:
            return None
        return self.speakers.setdefault(key, Speaker(*key))

    def _offers(self, batch: ExchangeBatch, rows: Ints) -> None:
        """What brokers offer, as the last answers say."""
        people, who = callers(batch)
        asks = np.array([kind is not None and kind.key == API_VERSIONS for kind in batch.kinds], bool)
        rows = rows[asks[batch.kind[rows]] & batch.response.there[rows] & (batch.errors[rows] == 0)]
        rows = rows[np.argsort(batch.response.time[rows], kind="stable")]
        last = {people[at].broker: row for at, row in zip(who[rows].tolist(), rows.tolist(), strict=True)}
        for broker, row in last.items():
            response = batch[row].response
            offer = None if response is None else offer_of(response)
            if offer is not None and len(self.offered) < MOST:
                self.offered[broker] = offer.ranges

    def _magics(self, batch: ExchangeBatch) -> None:
        old = [number for number, kind in enumerate(batch.kinds) if kind is not None and kind.key == PRODUCE]
        decoded = Decoded(batch) if old else None
        for number in old:
            kind = batch.kinds[number]
            if decoded is None or kind is None or not (batch.kind == number).any():
                continue
            made = produced(decoded, number)
            for place in np.unique(made.row[(made.magic >= 0) & (made.magic < OLD_MAGIC)]).tolist():
                connection = batch.connections[int(batch.connection[place])]
                said = connection.identity
                speaker = self._of(batch.client_id(place) or "", said.software or "", said.software_version or "")
                if speaker is not None:
                    for magic in np.unique(made.magic[made.row == place]).tolist():
                        if magic not in speaker.magics:
                            speaker.magics[magic] = request_of(batch, place)

    def clients(self) -> list[Speaker]:
        """All clients except brokers. A connection without a software name belongs to the only client with its client
        id and address that named one."""
        found: list[Speaker] = []
        silent: list[Speaker] = []
        for speaker in self.speakers.values():
            if not speaker.is_broker:
                (found if speaker.software else silent).append(speaker)
        for speaker in silent:
            alike = [one for one in found if one.client_id == speaker.client_id and one.addresses & speaker.addresses]
            if len(alike) == 1 and alike[0].software:
                alike[0].merge(speaker)
            else:
                found.append(speaker)
        return sorted(found, key=lambda one: (one.client_id, one.software, one.software_version))

    def release_of(self, broker: str) -> Release | None:
        """The release that a broker's offers match; None if it was not seen to offer any."""
        ranges = self.offered.get(broker)
        return None if ranges is None else release_like(frozenset((key, *range_) for key, range_ in ranges.items()))

    def verdicts(self, to: Release) -> list[ClientVerdict]:
        """What brokers of a release do to each client, the blocked ones first."""
        found = [self._judge(speaker, to) for speaker in self.clients()]
        return sorted(found, key=lambda one: VERDICTS.index(one.verdict))

    def _judge(self, speaker: Speaker, to: Release) -> ClientVerdict:
        blocks: list[BlockingApi] = []
        doubts: list[BlockingApi] = []
        fitting: list[BlockingApi] = []
        absent = False  # whether the release does not know an API yet
        own = release_of(speaker.library, speaker.software_version)
        names = builtin()
        known = names.keys()
        for key in sorted({key for key, _ in speaker.uses}):
            versions = {version: use for (of, version), use in speaker.uses.items() if of == key}
            taken = versions_at(key, to) if key in known else None
            if taken is None or key == API_VERSIONS:
                continue  # an ApiVersions that is refused is asked again in a version that is known
            works = [version for version, use in versions.items() if use.refused < use.count]
            wrong = {
                version: use for version, use in versions.items()
                if not taken.low <= version <= taken.high and (version in works or not works)
            }  # fmt: skip
            gone = is_gone(key, to)
            low = {version: use for version, use in wrong.items() if gone or (taken and version < taken.low)}
            high = {version: use for version, use in wrong.items() if version not in low}
            sure, unsure, bends = dict(low), {}, dict[int, Use]()
            if speaker.negotiates:
                tops = {self.offered[broker][key][1] for broker in speaker.brokers & self.offered.keys()
                        if key in self.offered[broker]}  # fmt: skip
                unsure = {version: use for version, use in low.items() if tops and version >= min(tops) and taken}
                sure = {version: use for version, use in low.items() if version not in unsure}
                bends = high
                if own is not None and meet(versions_at(key, own), taken):  # it has others, as is known of it
                    bends, unsure = bends | unsure, {}
                if not taken and key not in OPTIONAL:
                    sure, bends, absent = sure | bends, {}, absent or not gone
            elif speaker.midstream:
                unsure = high
            else:
                sure |= high
            name = names.name_of(key) or str(key)
            for kept, into in ((sure, blocks), (unsure, doubts), (bends, fitting)):
                if kept:
                    proofs = tuple(use.proof for use in kept.values() if use.proof)
                    into.append(BlockingApi(name, tuple(sorted(kept)), range_words(taken), proofs[:3]))
        if speaker.magics and versions_at(PRODUCE, to).low > OLD_MAGIC:
            magics = tuple(sorted(magic for magic in speaker.magics if magic < OLD_MAGIC))
            blocks.append(BlockingApi("Produce", (), "magic 2", tuple(speaker.magics.values())[:2], magics))
        if blocks:
            cure = cure_of(speaker.library, speaker.software_version) if not absent else brokers_serving(speaker.uses)
            return ClientVerdict(speaker, BLOCKED, tuple(blocks), "", cure, tuple(fitting))
        seen = f" in the {lasted(speaker.last - speaker.first)} that it was seen"
        if doubts:
            why = "it asks for the newest that its present brokers have"
            why = why if speaker.negotiates else f"it did not negotiate{seen}: its connections began before"
            return ClientVerdict(speaker, UNPROVEN, tuple(doubts), why, negotiated=tuple(fitting))
        if {key for key, _ in speaker.uses} <= GREETINGS:
            return ClientVerdict(speaker, UNPROVEN, (), f"it greeted brokers, and did nothing of its own{seen}")
        return self._conditional(speaker, to, speaker.brokers, tuple(fitting))

    def _conditional(
        self, speaker: Speaker, to: Release, brokers: set[str], fitting: tuple[BlockingApi, ...] = ()
    ) -> ClientVerdict:
        """For a client whose versions are taken: whether the release takes APIs that need a setting or a feature.
        brokers: those that show whether it is set."""
        found = gated(speaker.uses, map(self.release_of, brokers), to)
        shut = [one for one in found if one.shut]
        by = tuple(_use_of(speaker, one.key, versions_at(one.key, to)) for one in shut)
        reasons = [f"{builtin().name_of(one.key)} {one.gate.needs}" for one in (shut or found)[:1]]
        cure = shut[0].gate.cure if shut else ""
        return ClientVerdict(speaker, UNPROVEN if shut else READY, by, "".join(reasons), cure, fitting)

    def reverse(self, new: Release, brokers: Release | None) -> list[ClientVerdict]:
        """Whether clients of a new release that do what these do would be served: by brokers of another release, or
        (None) by those in the capture."""
        found = [self._served(speaker, new, brokers) for speaker in self.clients()]
        return sorted(found, key=lambda one: VERDICTS.index(one.verdict))

    def _served(self, speaker: Speaker, new: Release, brokers: Release | None) -> ClientVerdict:
        blocks = []
        known = False
        for key in sorted({key for key, _ in speaker.uses}):
            if key not in builtin().keys() or key == API_VERSIONS:  # noqa: SIM118
                continue
            spoken = versions_at(key, new)
            for taken in self._taken(speaker, key, brokers):
                known = True
                if key not in OPTIONAL and spoken and not (taken and meet(spoken, taken)):
                    blocks.append(_use_of(speaker, key, taken))
                    break
        if blocks:
            return ClientVerdict(speaker, BLOCKED, tuple(blocks), "", brokers_serving(speaker.uses, new))
        if not known:
            return ClientVerdict(speaker, UNPROVEN, (), "its brokers were not seen to say which versions they take")
        if brokers is not None:
            return self._conditional(speaker, brokers, set())
        there = [release for one in speaker.brokers if (release := self.release_of(one)) is not None]
        return self._conditional(speaker, min(there), speaker.brokers) if there else ClientVerdict(speaker, READY)

    def _taken(self, speaker: Speaker, key: int, brokers: Release | None) -> Iterator[Versions]:
        if brokers is not None:
            yield versions_at(key, brokers)
            return
        for broker in speaker.brokers & self.offered.keys():
            low, high = self.offered[broker].get(key, (0, -1))
            yield Versions(low, high)


def _use_of(speaker: Speaker, key: int, taken: Versions) -> BlockingApi:
    """All that a client asks for of an API."""
    uses = sorted((version, use.proof) for (of, version), use in speaker.uses.items() if of == key)
    proofs = tuple(proof for _, proof in uses if proof)
    name = builtin().name_of(key) or str(key)
    return BlockingApi(name, tuple(version for version, _ in uses), range_words(taken), proofs[:3])
