"""Reads a split.

The survey finds the part of each connection that the split can read by itself, and the state at its end. Irregular
connections (missing bytes, a response without its request, no beginning found) are left to the stitch, with their
segments if these are few. Connections that are regular from SYN to end are final. Rows of the exchanges that lie
completely in the split are made in the same pass, with provisional names (provisional.py), or by reading the split
again with the names from the stitch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from kwire.analyze.client_columns import clients_of
from kwire.analyze.clients import Clients
from kwire.capture.connections import Connections
from kwire.capture.segmenter import Segmenter
from kwire.capture.streams import WRAP
from kwire.capture.tcp import ConnectionFilter, Key, Segments
from kwire.errors import KwireError
from kwire.pipeline.connection_parts import ConnectionPart, is_over
from kwire.pipeline.leftover_segments import firsts, left_over, pair, weigh
from kwire.pipeline.midstream import Half
from kwire.pipeline.provisional import ProvisionalNames, provisional_name
from kwire.pipeline.remote_bytes import Finder, leave, long
from kwire.pipeline.splits import Split, SplitReader
from kwire.pipeline.survey import Fix, Survey, SurveyBlock, SurveyNames
from kwire.pipeline.tracks import Track
from kwire.session.api_versions import Kinds
from kwire.session.batch import ExchangeBatch, of_exchanges
from kwire.session.connection_info import ConnectionInfo
from kwire.session.conversation import Conversation
from kwire.session.decoded import Decoded
from kwire.session.exchange import Exchange
from kwire.session.reader import Settings
from kwire.session.resting import Resting
from kwire.session.roles import Brokers
from kwire.session.sasl import IDENTIFYING
from kwire.session.topic_columns import names_of
from kwire.session.topics import Topics
from kwire.session.twins import Twins, heads_of
from kwire.session.vectorized import Vectorized
from kwire.tables.build import Builder
from kwire.wire.columns import tally

QUIET = 14 * 60 * 1_000_000_000  # ns; after a longer silence a connection may have been given up
LONGEST = 400 * 1_000_000_000  # ns that a request may wait in a part
OPEN_MOST = 2000


def survey(
    split: Split, settings: Settings, wanted: SurveyNames, window: int | None = None, builder: Builder | None = None,
    finals: bool = False,
) -> Survey:  # fmt: skip
    """The survey of a split; failures are in its error. builder: gets rows with provisional names; finals: also of
    ended connections, of which the survey then holds only the endpoints."""
    try:
        return _Reading(split, settings, window, wanted=wanted, builder=builder).survey(finals)
    except (KwireError, OSError) as error:
        return Survey(split, error=str(getattr(error, "problem", None) or error))


def read(
    split: Split, settings: Settings, fixes: dict[tuple[Key, int], Fix], builder: Builder, names: dict[UUID, str],
    window: int | None = None,
) -> None:  # fmt: skip
    """Adds the rows of the split's parts to the builder. fixes: by the part's key and first packet number."""
    topics = Topics()
    topics.names.update(names)
    _Reading(split, settings, window, fixes=fixes, builder=builder, topics=topics).run()


class _Reading:
    """Reads a split, for survey() and read() alike."""

    def __init__(
        self, split: Split, settings: Settings, window: int | None, wanted: SurveyNames | None = None,
        fixes: dict[tuple[Key, int], Fix] | None = None, builder: Builder | None = None, topics: Topics | None = None,
    ) -> None:  # fmt: skip
        self._cut = SplitReader(split) if window is None else SplitReader(split, window)
        self._settings, self._wanted, self._fixes, self._builder = settings, wanted, fixes, builder
        self._kinds, self._brokers = Kinds(settings.library, settings.thresholds), Brokers(settings.ports)
        self._segmenter = Segmenter(ConnectionFilter(settings.ports, settings.hosts))
        self._connections = Connections(settings.held, settings.memory // 4)
        self._topics = topics or Topics()
        if fixes is None:
            self._topics.names = ProvisionalNames()
        self._aligned = self._cut.aligned
        self._tracks: dict[int, Track] = {}
        self._pairs: dict[Key, list[Track]] = {}
        self._spoiled: set[Key] = set()
        self._of: dict[int, Track] = {}  # by conversation
        self._survey = Survey(split)
        self._kept: list[tuple[int, bool, Segments, int | None]] = []
        scans = (builder is not None and builder.scans) or (wanted is not None and wanted.scans)
        self._vectorized = Vectorized(self._kinds, settings.max_size, scans)
        self._twins = Twins() if fixes is None and not settings.twins else None
        self._resting = Resting(self._vectorized, self._brokers, self._twins)
        self._name = Path(split.path).name
        self._clients = Clients()  # of connections that are final
        self._singles: list[Exchange] = []
        self._nows: list[int] = []  # of the blocks
        self._before = next(iter(fixes.values())).packets if fixes else 0

    def survey(self, finals: bool) -> Survey:
        """Reads the split and returns its survey. finals: as in survey()."""
        out = self._survey
        self.run()
        cut = self._cut
        out.begin, out.reached, out.odd, out.packets = cut.begin, cut.reached, cut.odd, cut.packets
        out.notes, out.drops, out.dropped, out.unread = cut.notes, cut.drops, cut.dropped, self._segmenter.counts
        if self._segmenter.pending and not cut.split.whole:
            out.odd = out.odd or "a datagram is cut by its splits"
        over: list[tuple[Track, ConnectionPart | None]] = []
        pairs: list[tuple[list[Track], list[ConnectionPart]]] = []
        for key, tracks in self._pairs.items():
            if finals and key not in self._spoiled and all(track.ended_at_rest for track in tracks):
                pairs.append((tracks, []))
                continue
            parts = [] if key in self._spoiled else [track.part_of() for track in tracks]
            good = [part for part in parts if part is not None]
            if not good or len(good) < len(tracks):
                self._spoiled.add(key)
            else:
                pairs.append((tracks, good))
        out.firsts = {first for _, _, segments, _ in self._kept for first in firsts(segments, self._spoiled)}
        for tracks, good in pairs:
            if finals and all(map(is_over, good)) and all(map(self._closed, tracks)):
                over += zip(tracks, good, strict=True) if good else ((track, None) for track in tracks)
            else:
                out.parts += good or [part for track in tracks if (part := track.part_of())]
        out.rows = self._builder is not None
        if any(long(part) for part in out.parts):
            finder = Finder((segments, base) for _, _, segments, base in self._kept if base is not None)
            out.parts = [leave(part, finder) for part in out.parts]
        out.parts.sort(key=lambda part: part.number)
        for track, part in sorted(over, key=lambda one: one[0].ordinal):
            self._final(track, part)
        out.clients = self._clients.all
        out.again, out.leftover = left_over([kept[:3] for kept in self._kept], self._spoiled)
        vars(self).clear()  # conversations refer back here: so all goes at once, without a collection of cycles
        return out

    def _closed(self, track: Track) -> bool:
        """Whether the connection ended here, and no second recording of it is likely in the splits beside this one."""
        connection, out = track.connection, self._survey
        margin = 0 if self._twins is None else 2 * self._twins.lag
        near = margin and not out.first_time + margin <= connection.first_time <= out.last_time - margin
        return connection.closed and not near and out.firsts.isdisjoint(one.first for one in connection.streams)

    def run(self) -> None:
        """Reads all packets."""
        out = self._survey
        for window, packets in self._cut.blocks():
            at = len(out.blocks)
            out.blocks.append(SurveyBlock(window))
            found = self._segmenter.read(packets)
            out.secrets += found.secrets
            if found.packets:
                out.first_time = found.first_time if not out.last_time else min(found.first_time, out.first_time)
                out.last_time = max(out.last_time, found.last_time)
            for joined, segments in enumerate(found.segments):
                self._block(at, segments, joined > 0)

    def _block(self, at: int, segments: Segments, joined: bool) -> None:
        if not len(segments):
            return
        block = self._survey.blocks[at]
        now = int(segments.time[-1])
        if joined:
            block.joined = now
        else:
            block.now = now
        self._nows.append(now)
        if self._fixes is None:
            stays = not joined and self._cut.base is not None
            self._kept.append((at, joined, segments if stays else weigh(segments), self._cut.base if stays else None))
        begins: dict[Key, int] = {}
        numbers = np.zeros(len(segments.keys), np.int64)
        numbers[segments.flow[::-1]] = segments.number[::-1]  # reversed, so that the first number of a flow remains
        for key, number in zip(segments.keys, numbers.tolist(), strict=True):
            begins[pair(key)] = min(number, begins.get(pair(key), number))
            if self._fixes is None and joined:
                self._spoiled.add(pair(key))
        for connection in self._connections.feed_opened(segments, self._resting.read, sweep=False):
            key = pair(connection.key)
            track = self._tracks.get(id(connection))
            if track is None:
                track = self._tracks[id(connection)] = Track(connection, at, begins[key], len(self._tracks))
                if connection.opening:
                    track.number = connection.opening[0]
                track.turn = begins[key]
                if key not in self._pairs and track.turn < track.number:  # of an earlier connection
                    self._spoiled.add(key)
                self._pairs.setdefault(key, []).append(track)
                self._first(track)
            if connection.finished and self._connections.known(key) is None:  # there are too many
                self._spoiled.add(key)
            if key in self._spoiled:
                track.spoil()
                continue
            self._go_on(track)
        for key in begins.keys() - self._pairs.keys():  # a FIN or RST of an unknown connection
            self._spoiled.add(key)
        rested = self._resting.batch()
        batches = [*([] if rested is None else [rested]), *self._vectorized.rounds()]
        for batch in [*batches, of_exchanges(self._singles)] if self._singles else batches:
            self._batch(batch, at)
        self._singles = []
        for track in self._of.values():
            self._look(track)
        self._of.clear()

    def _first(self, track: Track) -> None:
        """Takes the first segments of a connection."""
        connection = track.connection
        track.last_time, track.seen = connection.last_time, len(self._nows) - 1
        if self._fixes is not None:
            track.fix = self._fixes.get((pair(connection.key), track.number))
            if track.fix is None:
                self._spoiled.add(pair(connection.key))
                return
        if self._wanted is not None and self._wanted.clients:
            track.clients = Clients()
        if connection.opener is None:
            track.half = Half()
            return
        fine = connection.streams[connection.opener].syn is not None and all(
            stream.first is None if stream.syn is None else stream.first == (stream.syn + 1) % WRAP
            for stream in connection.streams
        )
        if not fine:
            self._spoiled.add(pair(connection.key))

    def _go_on(self, track: Track) -> None:
        """Takes more segments of a connection."""
        connection = track.connection
        streams = connection.streams
        odd = any(stream.missing for stream in streams)
        odd |= bool(connection.opening) and (track.half is not None or track.part is not None)  # a SYN that came late
        if not self._aligned:  # then what is late or comes again is taken otherwise than in a whole block
            odd = odd or any(stream.held or stream.repeated for stream in streams)
        silent = max(connection.last_time, *self._nows[track.seen :]) - track.last_time
        late = track.closed or silent > QUIET
        track.closed, track.last_time, track.seen = connection.closed, connection.last_time, len(self._nows) - 1
        if odd or late:
            self._spoil(track)
            return
        if track.half is not None:
            self._halfway(track)
        elif self._resting.turn(connection, lambda _: self._info(track)):
            track.rest = self._resting.wake(connection)
            assert track.rest is not None
            self._of[id(track.rest.info)] = track
        elif streams[0].pieces or streams[1].pieces:
            conversation = track.conversation = track.conversation or self._conversation(track, self._twins)
            self._of[id(conversation.info)] = track
            conversation.pump(self._vectorized)
            if conversation.info.verdict is not None:
                self._spoil(track)

    def _halfway(self, track: Track) -> None:
        half, connection = track.half, track.connection
        assert half is not None
        half.add(connection)
        begun = half.begin(connection, self._brokers, self._kinds)
        if begun is None:
            if half.hopeless:
                self._spoil(track)
            return
        client = begun.client
        key = connection.key if client == 0 else (*connection.key[3:], *connection.key[:3])
        fix = track.fix
        track.half, conversation = None, self._conversation(track)
        track.conversation = conversation
        conversation.known_from(client, conversation.info.name)
        conversation.info.heads = heads_of(half.pieces)
        left = list(begun.left)
        track.part = ConnectionPart(key, False, track.block, track.number, begun.heads, _NOWHERE, ordinal=track.ordinal)
        if fix is not None:
            conversation.indexes[:] = fix.indexes
            conversation.info.identity.take(fix.identity)
            for turn, base in enumerate(fix.bases):
                connection.streams[client ^ turn].shift(base)
                left[turn] = left[turn]._replace(
                    position=left[turn].position + base, starts=[start + base for start in left[turn].starts]
                )
        for framer, piece in zip((conversation.requests, conversation.responses), left, strict=True):
            framer.begin(piece.position)
        for turn in (0, 1):
            connection.streams[client ^ turn].pieces = [left[turn]]
        self._of[id(conversation.info)] = track
        conversation.pump(self._vectorized)

    def _conversation(self, track: Track, twins: Twins | None = None) -> Conversation:
        rest, track.rest = track.rest, None
        info = self._info(track) if rest is None else rest.info
        made = Conversation(info, self._brokers, lambda found: self._done(track, found), self._settings.max_size, twins)
        if rest is not None:
            made.stand(rest.taken, rest.ends)
        return made

    def _info(self, track: Track) -> ConnectionInfo:
        made, fix = ConnectionInfo(self._name, track.connection, self._kinds, self._topics), track.fix
        if self._fixes is None:
            made.name = provisional_name(track.ordinal)
        elif fix is not None:
            made.capture, track.connection.epoch = fix.capture, fix.epoch
        return made

    def _done(self, track: Track, exchange: Exchange) -> None:
        """Takes an exchange that is complete in the split; an incomplete one makes its connection irregular."""
        request, response = exchange.request, exchange.response
        if request is None or (response is None and not exchange.silent):
            self._spoiled.add(pair(track.connection.key))
            return
        kind = request.api
        if kind is not None:
            if track.part is not None and kind.key in IDENTIFYING:
                self._spoiled.add(pair(track.connection.key))
            track.kinds.setdefault((kind.key, kind.version), len(self._survey.blocks) - 1)
        if any(message and message.correlation_id is None and not message.token for message in (request, response)):
            self._spoiled.add(pair(track.connection.key))
        self._singles.append(exchange)

    def _batch(self, batch: ExchangeBatch, at: int) -> None:
        if self._before:
            for side in (batch.request, batch.response):
                side.packet, side.last_packet = side.packet + self._before, side.last_packet + self._before
        decoded = Decoded(batch)
        if self._builder is not None:
            self._builder.decoded(decoded)
        if self._wanted is None:
            return
        if self._wanted.broker_ids:
            self._survey.broker_ids.learn(batch)
        count = len(batch.kinds)
        for both in np.flatnonzero(tally(batch.connection * count + batch.kind)).tolist():
            kind, track = batch.kinds[both % count], self._of[id(batch.connections[both // count])]
            if kind is None:
                continue
            track.kinds.setdefault((kind.key, kind.version), at)
            if track.part is not None and kind.key in IDENTIFYING:
                self._spoiled.add(pair(track.connection.key))
        for owner, ident, name in names_of(batch) if self._wanted.names else ():
            self._of[id(batch.connections[owner])].names[ident] = name
        for connection, client in clients_of(decoded) if self._wanted.clients else ():
            met = self._of[id(connection)].clients
            if met is not None:
                met.merge([client])

    def _look(self, track: Track) -> None:
        """Leaves the connection to the stitch if it is no longer regular."""
        conversation = track.conversation
        if conversation is None:
            return
        framers, pairing = (conversation.requests, conversation.responses), conversation.pairing
        waits = pairing.open and pairing.open[0].time < track.connection.last_time - LONGEST
        odd = any(framer.skipped or framer.foreign for framer in framers)
        lost = conversation.info.client is not None and any(framer.lost for framer in framers)
        if odd or lost or waits or pairing.early or len(pairing.open) > OPEN_MOST:
            self._spoil(track)

    def _spoil(self, track: Track) -> None:
        self._spoiled.add(pair(track.connection.key))
        track.spoil()

    def _final(self, track: Track, part: ConnectionPart | None) -> None:
        """Closes a connection that is complete in the split; its names, kinds and clients go to the survey's totals.
        part: None if it ended at rest."""
        out, builder = self._survey, self._builder
        info = track.info
        assert info is not None
        assert builder is not None
        builder.close(info)
        if part is not None:
            out.final.add(part)
            part.clients, part.names, part.kinds, part.final = [], {}, {}, True
        elif track.rest is not None:
            out.final.add_at_rest(track.rest, track.block, track.number, track.turn, track.ordinal)
        for kind, block in track.kinds.items():
            if block < out.kinds.setdefault(kind, block):
                out.kinds[kind] = block
        if not info.twin_of:
            broker = track.connection.ends[1 - (info.client or 0)]
            if track.block < out.brokers.setdefault(broker, track.block):
                out.brokers[broker] = track.block
        out.names.update(track.names)
        if track.clients is not None:
            whose = {f"{track.ordinal} {out.split.number} {out.split.path}"}
            self._clients.merge([replace(client, connections=whose) for client in track.clients.all])


_NOWHERE: Any = None  # until the split is read
