"""What a message could be when nobody says: every message and version is tried, and what fits is ranked.

A reading counts only when it uses all bytes. How much sense it makes is judged leaf by leaf, weighted by the bytes that
the leaf explains: readable text is strong evidence, error codes that exist (and that this API returns) and numbers of
the usual size are some, unknown tags, odd varints and random numbers speak against it. Opaque bytes prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from struct import error as StructError
from typing import NamedTuple

from kwire.codec.annotate import Effort, annotate
from kwire.codec.frames import decode_frame, has_size
from kwire.codec.headers import response_header_version
from kwire.codec.library import Library, builtin_library
from kwire.codec.quality import Quality
from kwire.codec.span import TAG, UNDECODED, Span
from kwire.schema import keys
from kwire.schema.errorcodes import errors
from kwire.schema.model import Definition, MessageSchema

LARGE = 8192  # bytes from which it pays to walk over them before they are read
FORMS = ("frame", "unsized frame", "body")
# what most captures hold
USUAL = {
    keys.PRODUCE, keys.FETCH, keys.LIST_OFFSETS, keys.METADATA, keys.OFFSET_COMMIT, keys.OFFSET_FETCH,
    keys.FIND_COORDINATOR, keys.JOIN_GROUP, keys.HEARTBEAT, keys.LEAVE_GROUP, keys.SYNC_GROUP, keys.DESCRIBE_GROUPS,
    keys.LIST_GROUPS, keys.SASL_HANDSHAKE, keys.API_VERSIONS, keys.CREATE_TOPICS, keys.INIT_PRODUCER_ID,
    keys.DESCRIBE_CONFIGS, keys.SASL_AUTHENTICATE, keys.DESCRIBE_CLUSTER, keys.CONSUMER_GROUP_HEARTBEAT,
}  # fmt: skip


class Interpretation(NamedTuple):
    """One way to read the bytes. form: frame (size, header, body), unsized frame (header, body), body.

    versions: all that read the bytes alike, newest first. span covers the bytes as far as they could be read.
    """

    name: str
    versions: tuple[int, ...]
    form: str
    span: Span
    score: float
    definition: Definition
    message: MessageSchema

    @property
    def title(self) -> str:
        low, high = self.versions[-1], self.versions[0]
        return f"{self.name} v{low}" + ("" if low == high else f"-{high}")


def infer(
    data: bytes, library: Library | None = None, responses: bool = True, records: bool = True,
    effort: Effort | None = None,
) -> list[Interpretation]:  # fmt: skip
    """Readings that use all of data, the most plausible first; empty when nothing fits.

    responses: as responses of every API, whole or as bodies; requests are tried as bodies only, since a request says
    what it is. records: also as the messages that travel elsewhere. effort: what sized frames may cost; when it is used
    up, nothing is found.
    """
    library = library or builtin_library()
    found: list[Interpretation] = []
    if responses and len(data) >= 8 and has_size(data):  # not by chance: only a whole frame can be meant
        found = list(_frames(data, library, effort))
    else:
        found = list(_others(data, library, responses, records))
    if effort is not None and effort.left < 1:
        return []
    return sorted(found, key=lambda reading: -reading.score)


def _frames(data: bytes, library: Library, effort: Effort | None) -> Iterator[Interpretation]:
    """Readings of a sized frame as a response."""
    for key in sorted(library.registry.keys()):
        message, starts = library.registry.response(key), []
        for version in library.layout_starts(message):
            if effort is not None and effort.left < 1:
                return
            if _fits(data, key, message, version, library, effort):
                starts.append(version)
        if starts:
            definition = library.registry.api(key)
            yield from _readings(data, definition, definition.messages[1], message.versions.each(), FORMS[:1], library)


def _fits(data: bytes, key: int, message: MessageSchema, version: int, library: Library, effort: Effort | None) -> bool:
    """Whether the body of a sized frame, behind its header, is the message to the last byte."""
    start = 8 + response_header_version(key, version, message)
    plan = library.plan_of(message, version)
    if len(data) - start < plan.root.minimum:
        return False
    if start == 9 and data[8]:  # tags in the header, which nobody sends yet: look closer
        return True
    if effort is None and len(data) >= LARGE:
        return _walks(data, start, message, version, library)
    return annotate(plan, data, start, effort=effort).broken() is None


def _walks(data: bytes, start: int, message: MessageSchema, version: int, library: Library) -> bool:
    """Whether the message fills the bytes from start on, to the last one."""
    try:
        return library.scan(message, version)(data, start, []) == len(data)
    except (IndexError, ValueError, StructError):
        return False


def _others(data: bytes, library: Library, responses: bool, records: bool) -> Iterator[Interpretation]:
    """Readings without a size in front: unsized responses, bodies of all kinds."""
    for definition in library.registry.apis() if responses else ():
        for message in definition.messages:
            forms = FORMS[1:] if message.kind == "response" else FORMS[2:]
            yield from _readings(data, definition, message, message.versions.each(), forms, library)
    for definition in library.registry.data() if records else ():
        message = definition.messages[0]
        if message.kind != "header":
            yield from _readings(data, definition, message, message.versions.each(), FORMS[2:], library)


def as_message(
    data: bytes, message: MessageSchema, definition: Definition, versions: Iterable[int], library: Library
) -> list[Interpretation]:
    """Readings of data as this message, the best first: in every form and version that uses all bytes; when none does,
    the one that comes furthest."""
    forms = FORMS if definition.is_api else FORMS[2:]
    sized = definition.is_api and len(data) >= 8 and has_size(data)  # not by chance
    found = list(_readings(data, definition, message, versions, FORMS[:1] if sized else forms, library))
    if found:
        return sorted(found, key=lambda reading: -reading.score)
    partial = list(_readings(data, definition, message, versions, FORMS[:1], library, whole=False)) if sized else []
    partial = partial or list(_readings(data, definition, message, versions, forms, library, whole=False))
    return sorted(partial, key=lambda reading: -reading.score)[:1]


def _readings(
    data: bytes, definition: Definition, message: MessageSchema, versions: Iterable[int], forms: Iterable[str],
    library: Library, whole: bool = True,
) -> Iterator[Interpretation]:  # fmt: skip
    """One reading for each group of versions that read the bytes alike."""
    for form in forms:
        if form == "frame" and whole and not has_size(data):
            continue
        groups: dict[object, tuple[list[int], Span]] = {}
        key: object = None
        root: object = None
        for version in sorted(versions, reverse=True):
            plan = library.plan(message.name, version)
            if plan.root is root:  # the same layout reads the same
                if key is not None:
                    groups[key][0].append(version)
                continue
            root, key = plan.root, None
            if whole and len(data) >= LARGE and not _could_be(data, definition, message, version, form, library):
                continue
            span = read_as(data, definition, message, version, form, library)
            if span is not None and not (whole and span.broken()):
                key = _alike(span)
                groups.setdefault(key, ([], span))[0].append(version)
        for found, span in groups.values():
            score = plausibility(span, data, definition) if whole else _reach(span, form)
            yield Interpretation(message.name, tuple(found), form, span, score, definition, message)


def _could_be(
    data: bytes, definition: Definition, message: MessageSchema, version: int, form: str, library: Library
) -> bool:
    """A quick look whether the bytes are the message in one form; headers that have tags need a closer one."""
    start = 4 * (form == "frame")
    if form != "body":
        if message.kind == "request" or definition.key is None:
            return True
        start += 4 + response_header_version(definition.key, version, message)
        if start % 4 and data[start - 1]:
            return True
    return _walks(data, start, message, version, library)


def read_as(
    data: bytes, definition: Definition, message: MessageSchema, version: int, form: str, library: Library
) -> Span | None:
    """The bytes read in one form; None where the form cannot be."""
    plan = library.plan(message.name, version)
    if form == "body":
        return annotate(plan, data)
    size = form == "frame"
    if len(data) < plan.root.minimum + 4 * size:
        return None
    if message.kind == "request":
        frame = decode_frame(data, size=size, library=library)
        meant = (frame.api_key, frame.api_version) == (definition.key, version)
        # a body looks like no header by chance
        said = meant or frame.quality == Quality.OK or (size and has_size(data))
        return frame.span if said else None
    if definition.key is None or (not size and not _room(data, definition.key, message, version)):
        return None
    return decode_frame(data, api=definition.key, version=version, size=size, library=library).span


def _room(data: bytes, key: int, message: MessageSchema, version: int) -> bool:
    return len(data) >= 4 + response_header_version(key, version, message)


def _alike(span: Span) -> object:
    """What two readings share when they say the same: names, places and values of all leaves."""
    return tuple((leaf.name, leaf.start, leaf.end) for leaf in span.below() if not leaf.children)


def _reach(span: Span, form: str) -> float:
    broken = span.broken()
    return (broken[1].start if broken else span.end) + (2 - FORMS.index(form)) / 10


def plausibility(span: Span, data: bytes, definition: Definition) -> float:
    """How much sense a whole reading makes; comparable between readings of the same bytes only."""
    known = {error.name for error in definition.errors}
    score = 0.0
    for leaf in span.below():
        if leaf.note:
            score -= 3
        if leaf.type == TAG and leaf.slot is None:
            score -= 6
        elif not leaf.children and leaf.type != UNDECODED:
            score += _leaf(leaf, known)
    if definition.is_api:
        score += 1.5 if definition.key in USUAL else 0.5
    return score / math.sqrt(max(len(data), 1))


def _leaf(leaf: Span, known: set[str]) -> float:
    value, field = leaf.value, leaf.slot.field if leaf.slot else None
    if field and field.error:
        codes = value if isinstance(value, list) else [value]
        return sum(_code(code, known) for code in codes)
    if isinstance(value, bool):
        return 0.3
    if isinstance(value, int):
        return _number(value, leaf)
    if isinstance(value, list):
        return sum(_number(item, leaf) for item in value[:50] if isinstance(item, int)) / 2
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes) and value:
        return -0.02 * len(value)
    return 0.0


def _code(code: object, known: set[str]) -> float:
    error = errors.get(code) if isinstance(code, int) else None
    if error is None:
        return -12
    return 1.0 if error.code == 0 else 2.5 if error.name in known else -2.0


def _number(value: int, leaf: Span) -> float:
    name = leaf.name
    size = leaf.end - leaf.start
    if name == "correlation_id":
        return 1.0 if 0 <= value < 1 << 24 else 0.0
    if name.endswith("ThrottleTimeMs"):
        return 1.0 if value == 0 else 0.3 if 0 < value < 600_000 else -6
    if name in ("Port",):
        return 1.5 if 0 < value < 65536 else -6
    if "Timestamp" in name or name.endswith("TimeMs"):
        return 1.0 if value == -1 or 0 <= value < 1 << 42 else -4
    if value in (-1, 0):
        return 0.5
    if value in (-(1 << 31), (1 << 31) - 1, (1 << 63) - 1):
        return 0.2
    if size <= 1:
        return 0.2 if 0 < value < 32 else -1.5
    if 0 < value < 1 << 16:
        return 0.6 if size <= 4 else 0.3
    if 0 < value < 1 << 48 and size == 8:
        return 0.1
    return -2.5


def _text(value: str) -> float:
    if not value:
        return 0.0
    fine = sum(char.isprintable() and not "\udc80" <= char <= "\udcff" for char in value)
    bad = len(value) - fine
    return min(fine, 40) * 0.5 - bad * 4
