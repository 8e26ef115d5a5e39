"""From bytes that nobody explained to what they are: frames in a row, a request, a response, a body, or not Kafka.

What is certain comes first: another protocol's signature, then frames whose sizes agree, then a request, which names
itself, then a response to a request that stands before it in the same bytes. Only what is left is inferred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import unpack_from

from kwire.codec import frames
from kwire.codec.frames import Frame, decode_frame
from kwire.codec.infer import Interpretation, as_message, infer, plausibility
from kwire.codec.library import Library, builtin_library
from kwire.codec.quality import Quality
from kwire.codec.secrets import conceal, hide_within, looks_secret, may_hold_secrets, withheld
from kwire.codec.span import UNDECODED, Span
from kwire.codec.verdict import Verdict, judge, judge_text
from kwire.schema.keys import PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwire.schema.model import Definition, MessageSchema

CUT_FRAME = "cut frame"
LOGIN = (SASL_HANDSHAKE, SASL_AUTHENTICATE)  # where one of them is, tokens may be too
SHORT = 8  # bytes; what is shorter is no secret of a message that is only a guess
FEW, EACH = 64, 2048  # frames in a row that may be tried as every message, and one more for so many bytes
PLAUSIBLE_SIZE = 4 * 1024 * 1024  # of a frame that nothing else speaks for: one in a thousand random numbers is below


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of the input, from start to end, and what it is; span's offsets count from start.

    frame: when it is one whose header was read. readings: how else it could be read, best first; the first is the one
    shown when the message was inferred (then sure is False). verdict: what it is when it is not Kafka. file: a file of
    a broker's log, or records alone: span is all that there is to say. guarded: what cannot be read of it may be a
    password, since frames of a login stand beside it, or it looks like one. conceal: who knows more of the frame than
    its bytes, as a capture does, says what of it is withheld.
    """

    start: int
    end: int
    span: Span
    message: MessageSchema | None = None
    frame: Frame | None = None
    readings: tuple[Interpretation, ...] = ()
    sure: bool = True
    verdict: Verdict | None = None
    file: bool = False
    guarded: bool = False
    conceal: Callable[[Span], Span] | None = None

    @property
    def quality(self) -> Quality:
        """ok, inferred, opaque (not Kafka), truncated (perhaps a frame that was cut), or the frame's quality."""
        if self.file:
            return Quality.MALFORMED if self.span.broken() else Quality.OK
        if self.verdict or (self.message is None and self.frame is None):
            return Quality.TRUNCATED if self.span.name == CUT_FRAME else Quality.OPAQUE
        if self.frame and self.frame.quality != Quality.OK:
            return self.frame.quality
        return Quality.MALFORMED if self.span.broken() else Quality.OK if self.sure else Quality.INFERRED


def shown(item: Item, opened: Span) -> Span:
    """The item's tree without its secrets; opened is its span, maybe with what its fields hold. Where others could be
    meant, what would be a secret of theirs is withheld too."""
    if item.conceal:
        return item.conceal(opened)
    if item.guarded and not (item.sure and item.message):
        return hide_within(opened, ((4, opened.end),))
    span = conceal(opened, item.message, item.guarded)
    if item.sure:
        return span
    ranges: list[tuple[int, int]] = []
    for reading in item.readings:
        if may_hold_secrets(reading.message):
            found = withheld(conceal(reading.span, reading.message))
            ranges += [(start, end) for start, end in found if end - start >= SHORT]
    return hide_within(span, tuple(ranges))


def identify(data: bytes, library: Library | None = None) -> list[Item]:
    """What data holds, piece by piece; the pieces cover all of it. Never raises for what is in the bytes."""
    library = library or builtin_library()
    verdict = judge(data) or judge_text(data)
    if verdict:
        return [Item(0, len(data), _opaque(data, verdict.what), verdict=verdict)]
    pieces = frames.split(data)
    if len(pieces) < 2 and not frames.has_size(data):
        return _guarded([_single(data, library)], data)
    asked: dict[int, Frame] = {}
    guesses = [FEW + len(data) // EACH]
    items = _guarded([_piece(data, start, end, asked, library, guesses) for start, end in pieces], data)
    if frames.has_size(data[pieces[-1][0] :]) or (items[0].sure and items[0].quality == Quality.OK):
        return items
    # the first size may be none: a Produce key with a version, or a correlation id, is a small number too
    single = _single(data, library)
    return _guarded([single], data) if single.quality in (Quality.OK, Quality.INFERRED) else items


def identify_as(
    data: bytes,
    definition: Definition,
    message: MessageSchema | None,
    version: int | None,
    library: Library | None = None,
) -> list[Item]:
    """The same, for bytes that are said to be this message, or either of this API's messages when message is None."""
    library = library or builtin_library()
    pieces = frames.split(data)
    whole = all(end - start >= 4 and frames.has_size(data[start:end]) for start, end in pieces)
    items = []
    for start, end in pieces if whole else [(0, len(data))]:
        found: list[Interpretation] = []
        for candidate in (message,) if message else definition.messages:
            versions = candidate.versions.each() if version is None else [version]
            found += as_message(data[start:end], candidate, definition, versions, library)
        found = [reading for reading in found if reading.span.broken() is None] or found
        found.sort(key=lambda reading: -reading.score)
        items.append(_from_readings(data, start, end, found, library, sure=version is not None or len(found) == 1))
    return _guarded(items, data)


def _guarded(items: list[Item], data: bytes) -> list[Item]:
    """What cannot be read may be a token where it looks like one, or where one of the frames is a login's; then also
    what is only a guess."""
    login = any(item.frame and item.sure and item.frame.api_key in LOGIN for item in items)
    fine = (Quality.OK,) if login else (Quality.OK, Quality.INFERRED)
    return [
        replace(item, guarded=True)
        if item.quality not in fine and (login or looks_secret(data[item.start : item.end]))
        else item
        for item in items
    ]


def _piece(data: bytes, start: int, end: int, asked: dict[int, Frame], library: Library, guesses: list[int]) -> Item:
    """One of several frames in a row; asked holds the requests before it by correlation id; guesses, how many frames
    may still be tried as every message."""
    raw = data[start:end]
    frame = _as_request(raw, True, library)
    request = asked.get(unpack_from(">i", raw, 4)[0]) if len(raw) >= 8 else None
    answer = None
    if request and request.api_key is not None and request.quality != Quality.UNSUPPORTED:
        answer = decode_frame(raw, api=request.api_key, version=request.api_version, size=True, library=library)
    if frame and (frame.quality == Quality.OK or _barely_trailing(frame)):
        # a response's correlation id below 65,536 looks like Produce's key, with a version
        body = frame.body or {}
        produces = body.get("Acks") in (-1, 0, 1) and bool(body.get("TopicData"))
        doubtful = (frame.api_key == PRODUCE and not produces) or frame.quality == Quality.TRAILING
        answered = answer is not None and answer.quality == Quality.OK
        if not doubtful or not (answered or _fits_better(raw, frame, library)):
            if frame.correlation_id is not None:
                asked[frame.correlation_id] = frame
            return _from_frame(start, end, frame, library)
    if answer:
        return _from_frame(start, end, answer, library)
    readings: list[Interpretation] = []
    if frames.has_size(raw) and len(raw) >= 8 and guesses[0] > 0:
        guesses[0] -= 1
        readings = infer(raw, library)
    if frame:  # a header that can be read outweighs guesses
        sure = _may_hold_secrets(frame, library)
        readings = [reading for reading in readings if not sure and reading.form == "frame" and reading.score > 0]
    if readings:
        return _from_readings(data, start, end, readings, library, sure=False)
    if frame:
        return _from_frame(start, end, frame, library)
    return Item(start, end, _opaque(raw, "bytes"))


def _may_hold_secrets(frame: Frame, library: Library) -> bool:
    """Whether the header's word is taken against all guesses: a wrong one would show what must not be seen."""
    message = None if frame.api_key is None else library.api_message(frame.api_key, request=True)
    return message is not None and may_hold_secrets(message)


def _fits_better(raw: bytes, frame: Frame, library: Library) -> bool:
    """Whether a response reads the bytes whole and makes more sense of them than the request does."""
    readings = infer(raw, library)
    if not readings or frame.api_key is None:
        return False
    return readings[0].score > plausibility(frame.span, raw, library.registry.api(frame.api_key))


def _barely_trailing(frame: Frame) -> bool:
    """A body that uses nearly all of its frame; some clients do send a byte or two too many."""
    broken = frame.span.broken()
    if frame.quality != Quality.TRAILING or broken is None:
        return False
    return 4 * (broken[1].end - broken[1].start) < frame.span.end


def _single(data: bytes, library: Library) -> Item:
    """Bytes without an agreeing size in front: an unsized frame, a body, or a frame that was cut."""
    frame = _as_request(data, False, library)
    if frame and (frame.quality == Quality.OK or _may_hold_secrets(frame, library)):
        return _from_frame(0, len(data), frame, library)
    cut = _as_request(data, True, library)
    if cut and cut.quality != Quality.TRUNCATED:
        cut = None
    if cut and cut.api_key and cut.body is not None:
        return _from_frame(0, len(data), cut, library)
    # a response's correlation id is a large size, and zeros behind it are Produce's key and version
    readings = [reading for reading in infer(data, library) if reading.score > 0]
    if readings:
        return _from_readings(data, 0, len(data), readings, library, sure=False)
    frame = cut or frame
    if frame:
        return _from_frame(0, len(data), frame, library)
    claimed = int(unpack_from(">i", data)[0]) if len(data) >= 12 or _begins_request(data, library) else 0
    name = CUT_FRAME if len(data) - 4 < claimed <= PLAUSIBLE_SIZE else "bytes"
    return Item(0, len(data), _opaque(data, name))


def _as_request(raw: bytes, size: bool, library: Library) -> Frame | None:
    """The bytes as a request, if their header is one: a known key, a version near the known ones, a readable id.

    In a frame whose size agrees the key may be unknown, if a client id follows that can be read.
    """
    start = 4 if size else 0
    if len(raw) < start + 8:
        return None
    key, version = unpack_from(">hh", raw, start)
    message = library.api_message(key, request=True)
    if key < 0 or not 0 <= version <= (message.versions.high if message else 0) + 8:
        return None
    if message is None and not (size and frames.has_size(raw)):
        return None
    if size and not 8 <= unpack_from(">i", raw)[0] <= frames.MAX_SIZE:
        return None
    frame = decode_frame(raw, size=size, library=library)
    client = frame.client_id
    if frame.correlation_id is None or (message is None and not client):
        return None
    return frame if client is None or client.isprintable() else None


def _begins_request(data: bytes, library: Library) -> bool:
    """Whether these few bytes are a size, and a key and a version that are known."""
    if len(data) < 8:
        return False
    key, version = unpack_from(">hh", data, 4)
    message = library.api_message(key, request=True) if key > 0 else None  # zeros are anything
    return message is not None and version in message.versions


def _from_frame(start: int, end: int, frame: Frame, library: Library) -> Item:
    message = None
    if frame.api_key is not None:
        message = library.api_message(frame.api_key, frame.kind == "request")
    return Item(start, end, frame.span, message, frame)


def _from_readings(
    data: bytes, start: int, end: int, found: list[Interpretation], library: Library, sure: bool
) -> Item:
    best = found[0]
    frame, message = None, best.message
    if best.form != "body" and best.definition.is_api:
        size = best.form == "frame"
        key = None if best.message.kind == "request" else best.definition.key
        version = None if key is None else best.versions[0]
        frame = decode_frame(data[start:end], api=key, version=version, size=size, library=library)
        if frame.kind == "request" and frame.api_key is not None:  # a request says itself what it is
            message = library.api_message(frame.api_key, request=True) or message
    return Item(start, end, frame.span if frame else best.span, message, frame, tuple(found), sure)


def _opaque(data: bytes, name: str) -> Span:
    child = Span(name, UNDECODED, 0, len(data), secret=name == CUT_FRAME)  # it may hold anything that an answer can
    return Span(name, "frame", 0, len(data), None, (child,) if data else ())
