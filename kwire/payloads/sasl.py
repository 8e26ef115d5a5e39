"""SASL tokens: PLAIN (RFC 4616), SCRAM (RFC 5802), OAUTHBEARER (RFC 7628), and by its first bytes GSSAPI.

The field is secret as a whole; opened, only the pieces are that are one: passwords, proofs, signatures. What cannot be
told apart stays one secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kwire.codec.span import Span

# group 1 is the gs2 header; tokenauth is Kafka's own, the login with a delegation token (KIP-48)
SCRAM = re.compile(rb"((?:[ny]|p=[^,\0]*),(?:a=[^,\0]*)?,)?[a-zA-Z]=[^,\0]*(?:,(?:[a-zA-Z]|tokenauth)=[^,\0]*)*")
EXTENSION = re.compile(rb"(?!auth=)[A-Za-z]+=[\x20-\x7e]*")  # of RFC 7628; what is none may be of a damaged token
GSSAPI = (b"\x60", b"\x05\x04")  # a token of ASN.1, one of RFC 4121
SCRAM_WORDS = {
    "n": ("username", False), "r": ("nonce", False), "s": ("salt", False), "i": ("iterations", False),
    "c": ("channel_binding", False), "p": ("proof", True), "v": ("server_signature", True), "e": ("error", False),
    "a": ("authorization_id", False),
}  # fmt: skip

SHAPES = ("nr", "crp", "rsi", "v", "e")  # the attributes of each message, extensions aside

Token = tuple[str, list[Span]]  # what it is, and its pieces


def client(span: Span, _data: bytes, _around: Sequence[Span]) -> Span:
    """What a client sends."""
    return _opened(span, _client)


def server(span: Span, _data: bytes, _around: Sequence[Span]) -> Span:
    """What a broker answers."""
    return _opened(span, _server)


def _opened(span: Span, read: Callable[[bytes, int], Token | None]) -> Span:
    raw = span.value
    assert isinstance(raw, bytes)
    found = ("GSSAPI token", []) if raw.startswith(GSSAPI) else read(raw, span.end - len(raw))
    return span if found is None else span._replace(text=found[0], children=tuple(found[1]))


def _client(raw: bytes, start: int) -> Token | None:
    if _is_plain(raw):
        return "PLAIN", _plain(raw, start)
    if raw.startswith(b"n,") and b"\x01auth=Bearer " in raw:
        return "OAUTHBEARER, client's message", _bearer(raw, start)
    if b"r=" in raw and _is_scram(raw):
        step = "final" if b",p=" in raw else "first"
        return f"SCRAM, client's {step} message", _scram(raw, start)
    return None


def _server(raw: bytes, start: int) -> Token | None:
    if raw.startswith((b"v=", b"e=", b"r=")) and _is_scram(raw):
        step = "first" if raw.startswith(b"r=") else "final"
        return f"SCRAM, server's {step} message", _scram(raw, start)
    return None


def _is_scram(raw: bytes) -> bool:
    """Attributes as one of the messages has them; a proof under another name would be shown."""
    match = SCRAM.fullmatch(raw)
    words = (
        [part[:1].decode() for part in raw[len(match[1] or b"") :].split(b",") if part[1:2] == b"="] if match else []
    )
    return "".join(word for word in words if word in SCRAM_WORDS) in SHAPES


def _is_plain(raw: bytes) -> bool:
    """Three texts between NULs, the last two not empty; anything else may be a secret in another form."""
    try:
        parts = raw.decode().split("\0")
    except UnicodeDecodeError:
        return False
    return len(parts) == 3 and all(parts[1:])


def _plain(raw: bytes, start: int) -> list[Span]:
    authorization, username, password = raw.split(b"\0")
    spans, pos = [], start
    for name, part, secret in (
        ("authorization_id", authorization, False),
        ("username", username, False),
        ("password", password, True),
    ):
        end = pos + len(part) + (0 if secret else 1)  # the NUL belongs to what it ends
        spans.append(_text(name, pos, end, part, secret))
        pos = end
    return spans


def _scram(raw: bytes, start: int) -> list[Span]:
    """The comma-separated attributes; the gs2 header in front of a client's first message is one piece."""
    spans, pos = [], start
    match = SCRAM.fullmatch(raw)
    head = match[1] if match and match[1] else b""
    if head:
        pos = start + len(head)
        spans.append(_text("gs2_header", start, pos, head, False))
    for part in raw[len(head) :].split(b","):
        end = min(pos + len(part) + 1, start + len(raw))
        word, _, value = part.partition(b"=")
        name, secret = SCRAM_WORDS.get(word.decode(), ("extension", word != b"tokenauth"))
        spans.append(_text(name, pos, end, part if name == "extension" else value, secret))
        pos = end
    return spans


def _bearer(raw: bytes, start: int) -> list[Span]:
    """gs2 header, then key=value pairs between 0x01; of a JWT, header and claims are shown, the signature is not."""
    spans, pos = [], start
    for part in raw.split(b"\x01"):
        end = min(pos + len(part) + 1, start + len(raw))
        if part.startswith(b"auth=Bearer "):
            spans += _token(part, pos, end)
        elif end > pos:
            name = "gs2_header" if pos == start else "extension" if part else "end"
            spans.append(_text(name, pos, end, part, name == "extension" and not EXTENSION.fullmatch(part)))
        pos = end
    return spans


def _token(part: bytes, pos: int, end: int) -> list[Span]:
    token = part.removeprefix(b"auth=Bearer ")
    pieces = token.split(b".")
    scheme = _text("scheme", pos, pos + 12, b"auth=Bearer", False)
    shown = [_decoded(piece) for piece in pieces[:2]]
    if len(pieces) != 3 or not all(text.startswith(b"{") for text in shown):
        return [scheme, _text("token", pos + 12, end, token, True)]
    spans, at = [scheme], pos + 12
    for name, piece, text in zip(("jwt_header", "jwt_claims"), pieces, shown, strict=False):
        spans.append(_text(name, at, at + len(piece) + 1, text, False))
        at += len(piece) + 1
    spans.append(_text("jwt_signature", at, end, pieces[2], True))
    return spans


def _decoded(piece: bytes) -> bytes:
    import base64
    import binascii

    try:
        return base64.urlsafe_b64decode(piece + b"=" * (-len(piece) % 4))
    except binascii.Error:
        return piece


def _text(name: str, start: int, end: int, raw: bytes, secret: bool) -> Span:
    return Span(name, "text", start, end, raw.decode("utf-8", "surrogateescape"), secret=secret)
