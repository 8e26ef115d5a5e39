"""A frame with its contents replaced: every leaf of its span tree by what it is, and nothing that was not read.

Numbers, flags and times stay. Texts, keys, values, headers and ids are replaced; what is secret, compressed, unknown or
damaged is blank. Sizes stay what they are, and the checksum of a record batch is made anew where it was right.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from kwire.codec.quality import Quality
from kwire.codec.span import UNDECODED, Span
from kwire.payloads.open import open_payloads
from kwire.records.batch import crc32, crc32c
from kwire.redact.names import Pseudonyms
from kwire.session.exchange import Message

BLANK = b"*"
OWN = 16  # bytes in front of a struct's or an array's first child, at most: marks, counts, tags and sizes
HEADER = 8  # bytes: size and correlation id of a response
REQUEST = 12  # bytes: size, key, version and correlation id
WHOLE = {Quality.OK, Quality.TRAILING, Quality.TRUNCATED}  # of these the tree is believed, and of a request alone
KINDS = {  # what --keep may name: the entity or the field of a definition
    "topics": ("topicName",), "groups": ("groupId",), "clients": ("client_id", "ClientId", "ClientSoftwareName"),
    "members": ("MemberId", "GroupInstanceId"), "transactions": ("transactionalId",), "hosts": ("Host", "ClientHost"),
    "records": ("Key", "Value"),
}  # fmt: skip
WORDS = frozenset((  # of the protocol itself: they name nobody
    b"consumer", b"connect", b"range", b"roundrobin", b"sticky", b"cooperative-sticky", b"uniform", b"simple",
    b"compatible", b"sessioned", b"eager", b"stream", b"streams", b"share", b"classic", b"PLAIN", b"GSSAPI",
    b"SCRAM-SHA-256", b"SCRAM-SHA-512", b"OAUTHBEARER", b"metadata.version", b"group.version", b"transaction.version",
    b"kraft.version", b"share.version", b"streams.version", b"eligible.leader.replicas.version", b"PLAINTEXT", b"SSL",
    b"SASL_PLAINTEXT", b"SASL_SSL", b"CONTROLLER", b"User", b"*", b"Stable", b"Empty", b"Dead", b"PreparingRebalance",
    b"CompletingRebalance", b"Assigning", b"Reconciling", b"NotReady",
    b"__consumer_offsets", b"__transaction_state", b"__share_group_state", b"__cluster_metadata",
))  # fmt: skip
SOFTWARE = ("ClientSoftwareName", "ClientSoftwareVersion")


class Redactor:
    """frame() gives a frame's bytes with all replaced but the kinds that are kept."""

    def __init__(self, names: Pseudonyms, keep: Collection[str] = ()) -> None:
        self.names = names
        self._keep = {word for kind in keep for word in KINDS[kind]}
        self.blanked = 0  # bytes

    def frame(self, message: Message) -> bytes:
        """The frame as far as it was captured, of the same length."""
        data = bytearray(message.data)
        alone = message.kind == "request" and message.quality == Quality.ORPHAN
        if message.api is None or not (alone or message.quality in WHOLE):
            self._blank(
                data, min(len(data), REQUEST if message.kind == "request" and message.api else HEADER), len(data)
            )
            return bytes(data)
        tree = message.span()
        definition = message.api.message(message.kind)
        if definition is not None:
            tree = open_payloads(tree, message.data, definition.name)
        self._span(data, tree, False)
        return bytes(data)

    def _span(self, data: bytearray, span: Span, secret: bool) -> None:
        secret = secret or (span.secret and not span.children)
        if span.type == UNDECODED or span.buffer is not None:
            self._blank(data, span.start, span.end)
        elif span.children:
            if span.own_end - span.start > OWN:
                self._blank(data, span.start, span.own_end)
            before = bytes(data[span.start : span.end])
            for child in span.children:
                self._span(data, child, secret)
            _mend_checksum(data, span, before)
        else:
            self._leaf(data, span, secret)

    def _leaf(self, data: bytearray, span: Span, secret: bool) -> None:
        value = span.value
        if isinstance(value, str | bytes):
            raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            start = span.end - len(raw)
            if secret or start < span.start or data[start : span.end] != raw:
                self._blank(data, max(span.start, start), span.end)
            elif not self._is_kept(span, raw):
                isname = isinstance(value, str)
                data[start : span.end] = self.names.text(raw) if isname else self.names.blob(raw)
        elif isinstance(value, UUID):
            data[span.end - 16 : span.end] = self.names.uuid(bytes(data[span.end - 16 : span.end]))
        elif isinstance(value, list) and value and isinstance(value[0], UUID):
            for at in range(span.end - 16 * len(value), span.end, 16):
                data[at : at + 16] = self.names.uuid(bytes(data[at : at + 16]))
        elif secret or (value is None and span.end - span.start > OWN):
            self._blank(data, span.start, span.end)

    def _is_kept(self, span: Span, raw: bytes) -> bool:
        if raw in WORDS or span.name in SOFTWARE:
            return True
        entity = span.slot.field.entity if span.slot else ""
        return entity in self._keep or span.name in self._keep

    def _blank(self, data: bytearray, start: int, end: int) -> None:
        if end > start:
            data[start:end] = BLANK * (end - start)
            self.blanked += end - start


def _mend_checksum(data: bytearray, span: Span, before: bytes) -> None:
    """The checksum of a batch or of an old message, if it was right before."""
    crc = next((child for child in span.children if child.name == "Crc"), None)
    if crc is None or crc.end - crc.start != 4:
        return
    for check in (crc32c, crc32):
        if check(before[crc.end - span.start :]) == crc.value:
            data[crc.start : crc.end] = check(bytes(data[crc.end : span.end])).to_bytes(4)
            return
