"""TLS alerts in words: who gave up and why (RFC 5246 section 7.2, RFC 8446 section 6)."""

from __future__ import annotations

CLOSE_NOTIFY = 0
WORDS = {
    0: "close_notify: it closes in good order",
    10: "unexpected_message: the other side broke the protocol",
    20: "bad_record_mac: a record arrived damaged, or the keys differ",
    22: "record_overflow: a record was longer than TLS allows",
    40: "handshake_failure: no cipher suite or signature in common, or a client certificate was wanted",
    42: "bad_certificate: the certificate is damaged or its signature wrong",
    43: "unsupported_certificate: a certificate of a type that it does not take",
    44: "certificate_revoked: the certificate was revoked",
    45: "certificate_expired: the certificate is expired, or not yet valid",
    46: "certificate_unknown: the certificate was not accepted (Java says so of nearly every doubt: an unknown "
    "authority, a name that does not match)",
    47: "illegal_parameter: a field out of range",
    48: "unknown_ca: it does not know the authority that signed the certificate",
    49: "access_denied: the certificate is valid, but its owner is not let in",
    50: "decode_error: a message could not be read",
    51: "decrypt_error: a signature or a Finished was wrong",
    70: "protocol_version: no TLS version in common",
    71: "insufficient_security: only cipher suites that are too weak for it",
    80: "internal_error: something else than the peer went wrong",
    86: "inappropriate_fallback: the client fell back to an older version without need",
    90: "user_canceled: the handshake was given up for other reasons",
    100: "no_renegotiation: it does not renegotiate",
    109: "missing_extension: an extension was missing",
    110: "unsupported_extension: an extension that was not asked for",
    112: "unrecognized_name: the server does not know the name that the client asked for",
    113: "bad_certificate_status_response: the certificate's status was wrong",
    115: "unknown_psk_identity: it does not know the session to resume",
    116: "certificate_required: the server wants a client certificate, and got none",
    120: "no_application_protocol: no protocol in common (ALPN)",
}
NAMES = {number: text.partition(":")[0] for number, text in WORDS.items()}


def alert_words(number: int) -> str:
    """An alert's name and what it means."""
    return WORDS.get(number, f"alert {number}")
