"""What the proxy changes in answers: the addresses of brokers, and which versions ApiVersions offers.

All else passes as it came, also within such an answer; so does an answer in which nothing had to be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from struct import pack, unpack_from
from typing import Any

from kwire.codec.headers import request_header_version
from kwire.codec.library import builtin_library
from kwire.errors import KwireError
from kwire.proxy.cutter import Edit
from kwire.proxy.link import Edits, PendingRequest
from kwire.proxy.splice import MOST_READ, body_start, bounded, place_of, read, response_codec, spliced
from kwire.proxy.types import PeerRefused
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, DESCRIBE_CLUSTER, FIND_COORDINATOR
from kwire.schema.model import NONE, Versions
from kwire.session.broker_ids import ADDRESSES

LARGE = 64 << 10  # bytes of a request whose elements are counted before it is decoded
MOST_WHOLE = 1 << 20  # bytes of an answer that is read as a whole: ApiVersions, and FindCoordinator before v4

Local = Callable[[int, str, int, int], tuple[str, int]]
Body = dict[str, Any]


def edits(local: Local, ranges: Callable[[], dict[int, Versions]] = dict) -> Edits:
    """The proxy's edits. local: by API key, a broker's host, port and node id, the host and port that clients are
    told; may raise PeerRefused. ranges: by key, where less is offered than there is."""

    def request(asked: PendingRequest) -> None:
        carries_addresses(asked)  # what could not be rewritten is not asked

    def response(asked: PendingRequest) -> Edit | None:
        if asked.key == API_VERSIONS:
            return lambda frame: capped(frame, asked, ranges())
        if not carries_addresses(asked):
            return None
        if asked.key == FIND_COORDINATOR and asked.version < 4:
            return lambda frame: edited(frame, asked, lambda body: relocate([body], asked.key, local))
        return lambda frame: relocated(frame, asked, local)

    return Edits(request, response)


def carries_addresses(asked: PendingRequest) -> bool:
    """Whether the answer to a request may name brokers. Raises PeerRefused when it does and its layout is not known."""
    if asked.key not in ADDRESSES:
        return False
    message = builtin_library().api_message(asked.key, request=False)
    if message is None or asked.version not in message.versions:
        raise PeerRefused(f"API {asked.key} v{asked.version} names brokers, and its layout is not known")
    return asked.version >= _first(asked.key)


@cache
def _first(key: int) -> int:
    """The version from which on an API's answers name brokers."""
    message = builtin_library().api_message(key, request=False)
    assert message is not None
    if key == FIND_COORDINATOR:
        return 0
    return next(field.versions.low for field in message.fields if field.name == ADDRESSES[key])


def relocated(frame: bytes, asked: PendingRequest, local: Local) -> bytes:
    """The frame with local addresses in the place of brokers' own. Raises PeerRefused."""
    place = place_of(frame, asked, ADDRESSES[asked.key])
    if place is None:
        return frame
    found = read(frame, asked, place)
    return spliced(frame, asked, place, found) if relocate(found or (), asked.key, local) else frame


def relocate(found: Iterable[Body], key: int, local: Local) -> bool:
    """The same for what names brokers; whether there were any."""
    changed = False
    for each in found:
        if each["Host"] and 0 < each["Port"] < 65536:  # else there is no such broker: Host "", Port -1
            node = each["BrokerId"] if key == DESCRIBE_CLUSTER else each["NodeId"]
            each["Host"], each["Port"] = local(key, each["Host"], each["Port"], node)
            changed = True
    return changed


def capped(frame: bytes, asked: PendingRequest, ranges: dict[int, Versions]) -> bytes:
    """An ApiVersions answer that offers what is known and within ranges. Brokers give the same one to every client, so
    that the last few are remembered. Raises PeerRefused."""
    if len(frame) > LARGE:
        return edited(frame, asked, lambda body: cap(body, ranges))
    rest = frame[8:]
    made = _capped(rest, asked.version, tuple(sorted(ranges.items())))
    return frame if made == rest else b"".join((pack(">i", len(made) + 4), frame[4:8], made))


@lru_cache(16)
def _capped(rest: bytes, version: int, ranges: tuple[tuple[int, Versions], ...]) -> bytes:
    """What follows the correlation id."""
    frame = pack(">ii", len(rest) + 4, 0) + rest
    return edited(frame, PendingRequest(API_VERSIONS, version, 0), lambda body: cap(body, dict(ranges)))[8:]


def cap(body: Body, ranges: dict[int, Versions]) -> bool:
    """Leaves only what kwire knows of an ApiVersions answer, and within ranges; whether anything was taken away."""
    kept = []
    changed = False
    for each in body["ApiKeys"]:
        offered = Versions(each["MinVersion"], each["MaxVersion"])
        both = offered.within(known(each["ApiKey"]))
        if each["ApiKey"] in ranges:
            both = both.within(ranges[each["ApiKey"]])
        if both:
            changed = changed or both != offered
            kept.append({**each, "MinVersion": both.low, "MaxVersion": both.high})
        elif offered:
            changed = True
        else:  # as brokers say of what they do not serve
            kept.append(each)
    body["ApiKeys"] = kept
    return changed


@cache
def known(key: int) -> Versions:
    """The versions of an API whose layouts are known in both directions."""
    library = builtin_library()
    request, response = library.api_message(key, request=True), library.api_message(key, request=False)
    if request is None or response is None:
        return NONE
    return request.versions.within(response.versions)


def edited(frame: bytes, asked: PendingRequest, change: Callable[[Body], bool]) -> bytes:
    """The frame after a change of its body. Raises PeerRefused for what cannot be read."""
    if len(frame) > MOST_WHOLE:
        raise PeerRefused(f"the broker answers API {asked.key} with {len(frame):,} bytes, more than anybody needs")
    version = asked.version
    try:
        if asked.key == API_VERSIONS and (
            _error(frame) == codes.UNSUPPORTED_VERSION or version not in known(asked.key)
        ):
            version = 0  # KIP-511: the answer to a version that the broker does not know
        body_at = body_start(frame, asked.key, version)
        codec = response_codec(asked.key, version)
        body = codec.decode(frame[body_at:])
        if not change(body):
            return frame
        data = codec.encode(body)
    except PeerRefused:
        raise
    except KwireError as error:
        raise PeerRefused(f"the broker's answer cannot be read: {error}") from None
    return b"".join((pack(">i", body_at - 4 + len(data)), frame[4:body_at], data))


def request_body(frame: bytes, asked: PendingRequest) -> Body:
    """A request's body. Raises KwireError, also for one with too many elements."""
    library = builtin_library()
    message = library.api_message(asked.key, request=True)
    if message is None or asked.version not in message.versions:
        raise KwireError(f"no layout for API {asked.key} v{asked.version}")
    header = library.codec("RequestHeader", request_header_version(asked.key, asked.version, message))
    _, pos = header.decode_at(frame, 4)
    codec = library.codec(message.name, asked.version)
    if len(frame) > LARGE:
        bounded(codec.plan.root, frame, pos, MOST_READ)
    return codec.decode_at(frame, pos)[0]


def _error(frame: bytes) -> int:
    return int(unpack_from(">h", frame, 8)[0]) if len(frame) >= 10 else 0
