"""TLS and SASL as options say them, and the TLS handshake with its errors in words."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from kwire.client.address import Address
from kwire.codec.echo import Echo
from kwire.errors import Failure, KwireError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Security:
    """tls: speak it; ca, cert, key: PEM files; insecure: believe any certificate. mechanism: of MECHANISMS, or None.
    keylog: where the sessions' secrets go."""

    tls: bool = False
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False
    mechanism: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    keylog: Path | None = None

    @property
    def echo(self) -> Echo:
        """What a peer might send back of the password."""
        return Echo(self.username, self.password)

    def context(self) -> ssl.SSLContext:
        """Raises KwireError for files that hold no certificates or keys, OSError for files that are not there."""
        context = ssl.create_default_context(cafile=_given(self.ca))
        if self.keylog is not None:
            context.keylog_filename = str(self.keylog)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert:
            try:
                context.load_cert_chain(self.cert, _given(self.key), password="")
            except ssl.SSLError as error:
                raise KwireError(f"{self.cert}: no certificate with its key, unencrypted: {_said(error)}") from error
        return context


def _given(path: Path | None) -> str | None:
    if path is None:
        return None
    if not path.stat().st_size:
        raise KwireError(f"{path}: empty")
    return str(path)


def wrap(plain: socket.socket, address: Address, security: Security) -> ssl.SSLSocket:
    """The socket, speaking TLS; its timeout holds for the handshake. Raises Failure, KwireError, OSError."""
    try:
        context = security.context()
    except ssl.SSLError as error:
        raise KwireError(f"{security.ca}: no certificates in PEM: {_said(error)}") from error
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLError as error:
        raise tls_failure(address, error) from error
    except ValueError as error:
        raise Failure("name", address, "no host name") from error
    except TimeoutError as error:
        raise Failure("timeout", address, "no answer to the TLS ClientHello", "a listener without TLS?") from error
    except (ConnectionError, OSError) as error:
        raise _gave_up(address) from error


def tls_failure(address: object, error: ssl.SSLError) -> Failure:
    """An error of TLS in words."""
    said = _said(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure("tls", address, f"certificate not trusted: {error.verify_message}", "--ca FILE, or --insecure")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or "EOF" in said:
        return _gave_up(address)
    if "WRONG_VERSION_NUMBER" in said or "RECORD_LAYER_FAILURE" in said or "HTTP" in said:
        return Failure("tls", address, "answers something else than TLS", "a plaintext listener: leave out --tls")
    if "CERTIFICATE_REQUIRED" in said or "HANDSHAKE_FAILURE" in said or "BAD_CERTIFICATE" in said:
        return Failure("tls", address, f"TLS refused: {said}", "the broker may want a client's certificate: --cert")
    return Failure("tls", address, f"TLS failed: {said}")


def speaks_tls(plain: socket.socket) -> bool:
    """Whether the peer takes part in a TLS handshake, whatever its certificate and whomever it lets in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_socket(plain).close()
    except ssl.SSLError as error:
        return "ALERT" in _said(error)
    except OSError:
        return False
    return True


def _gave_up(address: object) -> Failure:
    hint = "a plaintext listener does that: leave out --tls"
    return Failure("tls", address, "closed in the TLS handshake", hint)


def _said(error: ssl.SSLError) -> str:
    return error.reason or str(error.args[-1] if error.args else error)
