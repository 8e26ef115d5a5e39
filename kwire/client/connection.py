"""One connection to a broker: a blocking socket on which every wait has a deadline.

Opening it goes as Kafka's own clients do: TCP, TLS, ApiVersions (where the broker does not know our version, once more
with one that it named, KIP-511), SaslHandshake v1, SaslAuthenticate. Everything that was asked is kept in exchanges
until take() fetches it.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from kwire.client.address import Address
from kwire.client.exchange import Body, ClientExchange, request_frame
from kwire.client.inbox import WANTS_TLS, Inbox
from kwire.client.login import log_in
from kwire.client.security import Security, speaks_tls, tls_failure, wrap
from kwire.client.software import SAID
from kwire.codec.library import Library, builtin_library
from kwire.codec.verdict import judge
from kwire.errors import Failure, UnknownName
from kwire.schema import codes
from kwire.schema.keys import API_VERSIONS, METADATA, VOTE
from kwire.schema.model import Versions

CHUNK = 1 << 18
PROBE = 1.0  # seconds for a TLS handshake that only finds out
KEPT = 10_000  # exchanges that nobody fetched; older ones are dropped
CLIENT_ID = "kwire"
BEFORE_VERSIONS = "brokers before 0.10 do that (walk --era 0.9 and call -v 0 suit them), and what is no broker"


class BrokerConnection:
    """open() makes one. offered: by API key the versions that the broker takes, None when it was not asked."""

    def __init__(
        self, sock: socket.socket, address: Address, client_id: str | None = CLIENT_ID, timeout: float = 10.0,
        library: Library | None = None,
    ) -> None:  # fmt: skip
        self.address, self.client_id, self.timeout = address, client_id, timeout
        self.library = library or builtin_library()
        self.offered: dict[int, Versions] | None = None
        self.closed = False
        self.exchanges: list[ClientExchange] = []
        self.client = str(Address(*sock.getsockname()[:2]))
        self._socket, self._inbox, self._next = sock, Inbox(address), 0

    @classmethod
    def open(
        cls, address: Address, security: Security = Security(), *, client_id: str | None = CLIENT_ID,  # noqa: B008
        timeout: float = 10.0, library: Library | None = None, negotiate: bool = True,
        offered: dict[int, Versions] | None = None,
    ) -> BrokerConnection:  # fmt: skip
        """Connects, and logs in where security says so. timeout: seconds for each step. negotiate: ask which versions
        the broker takes, unless offered says what it told an earlier connection. Raises Failure, Refusal; KwireError
        and OSError for unusable certificate files."""
        plain = dial(address, timeout)
        try:
            sock = wrap(plain, address, security) if security.tls else plain
        except BaseException:
            plain.close()
            raise
        connection = cls(sock, address, client_id, timeout, library)
        try:
            connection.offered = offered
            if negotiate and offered is None:
                connection.negotiate()
            if security.mechanism:
                log_in(connection, security)
        except BaseException as error:
            connection.close()
            if isinstance(error, Failure) and error.kind == "closed" and not security.tls and _wants_tls(address):
                raise Failure("closed", address, error.reason, WANTS_TLS) from error
            raise
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def take(self) -> list[ClientExchange]:
        """What was asked since the last call."""
        taken, self.exchanges = self.exchanges, []
        return taken

    # ---------------------------------------------------------------- versions

    def negotiate(self) -> ClientExchange:
        """Asks ApiVersions and keeps the answer in offered."""
        newest = self.library.message("ApiVersionsRequest").versions.high
        exchange = self.request("ApiVersions", newest, SAID if newest >= 3 else {})
        body = exchange.body()
        if body.get("ErrorCode") == codes.UNSUPPORTED_VERSION:
            theirs: Body = next((row for row in body.get("ApiKeys") or [] if row.get("ApiKey") == API_VERSIONS), {})
            version = min(newest - 1, int(theirs.get("MaxVersion", 0)))
            exchange = self.request("ApiVersions", max(version, 0), SAID if version >= 3 else {})
            body = exchange.body()
        if body.get("ErrorCode"):
            raise Failure("unsupported", self.address, f"ApiVersions is answered with error {body['ErrorCode']}")
        rows = body.get("ApiKeys") or []
        self.offered = {row["ApiKey"]: Versions(row["MinVersion"], row["MaxVersion"]) for row in rows}
        return exchange

    def version(self, api: str) -> int:
        """The newest version that both sides know; without ApiVersions, ours. Raises Failure (unsupported)."""
        definition = self.library.registry.find(api).definition
        ours = definition.messages[0].versions
        if self.offered is None or definition.key is None:
            return ours.high
        theirs = self.offered.get(definition.key)
        if theirs is None:
            raise Failure("unsupported", self.address, unserved(definition.name, self.offered))
        both = ours.within(theirs)
        if not both:
            raise Failure("unsupported", self.address, f"takes {definition.name} v{theirs}, kwire knows v{ours}")
        return both.high

    # ---------------------------------------------------------------- asking

    def request(
        self, api: str, version: int, body: Body, timeout: float | None = None, answer: bool = True
    ) -> ClientExchange:
        """Sends and waits for the answer, at most timeout (the connection's otherwise) seconds. answer: False where
        none is due. Raises Failure, EncodeError, UnknownName."""
        definition = self.library.registry.find(api).definition
        if definition.key is None or not definition.is_api:
            raise UnknownName("API", api)
        self._next = (self._next + 1) & 0x7FFFFFFF
        frame = request_frame(self.library, definition.name, version, body, self._next, self.client_id)
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        asked = ClientExchange(
            self.library, definition.name, definition.key, version, self._next, self.client, str(self.address),
            frame, time.time_ns(),
        )  # fmt: skip
        try:
            self._send(frame, deadline, asked.name)
            if answer:
                response = self._receive(asked, deadline)
                asked = replace(asked, response=response, answered=time.time_ns())
        except BaseException:  # an interrupt too: the answer that comes later is nobody's
            self.close()
            raise
        finally:
            self._keep(asked)
        return asked

    def tell(self, data: bytes, timeout: float) -> bytes:
        """Sends bytes as they are, whatever they are, and gives the next frame that comes. Raises Failure."""
        deadline = time.monotonic() + timeout
        self._send(data, deadline, "these bytes")
        while (frame := self._inbox.frame()) is None:
            self._inbox.feed(self._more("these bytes", deadline))
        return frame

    def _keep(self, exchange: ClientExchange) -> None:
        self.exchanges.append(exchange)
        if len(self.exchanges) > KEPT:
            del self.exchanges[: KEPT // 2]

    def _send(self, frame: bytes, deadline: float, name: str) -> None:
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(frame)
        except TimeoutError as error:
            raise Failure("timeout", self.address, f"does not take {name} of {len(frame):,} bytes in time") from error
        except ssl.SSLError as error:
            raise tls_failure(self.address, error) from error
        except OSError as error:
            raise self._lost(name, error) from error

    def _receive(self, asked: ClientExchange, deadline: float) -> bytes:
        while True:
            frame = self._inbox.frame()
            if frame is not None:
                got = int.from_bytes(frame[4:8], "big", signed=True)
                if got != asked.correlation_id:
                    reason = f"answers {asked.name} (correlation id {asked.correlation_id}) with id {got}"
                    raise Failure("malformed", self.address, reason)
                return frame
            self._inbox.feed(self._more(asked.name, deadline))

    def _more(self, name: str, deadline: float) -> bytes:
        try:
            self._socket.settimeout(_left(deadline))
            data = self._socket.recv(CHUNK)
        except TimeoutError as error:
            if name.startswith("ApiVersions") and not len(self._inbox):
                self._coax()
            raise self._silent(name) from error
        except ssl.SSLError as error:
            raise tls_failure(self.address, error) from error
        except OSError as error:
            raise self._lost(name, error) from error
        if not data:
            raise self._lost(name, None)
        return data

    def _coax(self) -> None:
        """A server that reads lines waits for the end of one: told so, it says what it is. Raises Failure (not
        kafka) for what that brings."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(PROBE)
            self._socket.sendall(b"\r\n\r\n")
            self._inbox.feed(self._socket.recv(CHUNK))
        verdict = judge(self._inbox.held) if len(self._inbox) >= 4 else None
        if verdict is not None and verdict.known:
            raise self._inbox.not_kafka()

    def _silent(self, name: str) -> Failure:
        """No answer in time, or the beginning of one."""
        if len(self._inbox):
            reason = f"timed out in the answer to {name}: {self._inbox.short()} came"
            return Failure("timeout", self.address, reason)
        hint = "Kafka answers this at once: a broker that hangs, or no broker" if name.startswith("ApiVersions") else ""
        return Failure("timeout", self.address, f"timed out: no answer to {name}", hint)

    def _lost(self, name: str, error: OSError | None) -> Failure:
        """The peer closed; what came before it may tell why."""
        if len(self._inbox):
            if len(self._inbox) < 4:
                return self._inbox.not_kafka()
            return Failure("closed", self.address, f"closed in the answer to {name}: {self._inbox.short()} came")
        how = "reset" if isinstance(error, ConnectionResetError) else "closed"
        hint = BEFORE_VERSIONS if name.startswith("ApiVersions") else ""
        return Failure("closed", self.address, f"{how} the connection instead of an answer to {name}", hint)


def unserved(api: str, offered: dict[int, Versions]) -> str:
    """That a listener lacks an API; a controller's is called so (KIP-919)."""
    if METADATA in offered or VOTE not in offered:
        return f"this listener does not serve {api}"
    return f"this is a controller's listener: it does not serve {api}, brokers' listeners do"


def dial(address: Address, timeout: float) -> socket.socket:
    """A TCP connection. Raises Failure: name, refused, timeout, unreachable."""
    if not address.host or not 0 < address.port < 65536:  # as a broker may say it
        raise Failure("name", address, "no address to connect to")
    try:
        sock = socket.create_connection(address, timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except socket.gaierror as error:
        raise Failure("name", address, f"no address for {address.host}: {error.strerror}") from error
    except ValueError as error:
        raise Failure("name", address, "no host name") from error
    except TimeoutError as error:
        reason = f"no TCP connection within {timeout:g} s: packets are dropped, or the host is down"
        raise Failure("timeout", address, reason) from error
    except ConnectionRefusedError as error:
        raise Failure("refused", address, "connection refused: nothing listens there") from error
    except OSError as error:
        raise Failure("unreachable", address, f"cannot be reached: {error.strerror or error}") from error
    return sock


def _wants_tls(address: Address) -> bool:
    """Asked on a connection of its own."""
    try:
        with dial(address, PROBE) as plain:
            return speaks_tls(plain)
    except Failure:
        return False


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
