"""A server that plays a broker's part, and plays it badly: a script of answers for each connection, on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.client.address import Address
from kwire.codec.frames import decode_frame
from kwire.codec.headers import header_plan, response_header_version
from kwire.codec.library import builtin_library
from kwire.codec.values import Codec

Reply = Callable[[bytes], bytes | None]
PATIENCE = 30.0


def answer(body: dict[str, Any], *, version: int | None = None, shift: int = 0) -> Reply:
    """A reply to whatever is asked: body at the request's version, or at another. shift: wrong correlation ids."""

    def reply(request: bytes) -> bytes:
        frame = decode_frame(request, size=True)
        message = builtin_library().message(f"{frame.api}Response")
        at = frame.api_version if version is None else version
        assert frame.api_key is not None
        assert frame.correlation_id is not None
        header = Codec(header_plan("ResponseHeader", response_header_version(frame.api_key, at, message)))
        data = header.encode({"CorrelationId": frame.correlation_id + shift})
        data += builtin_library().codec(message.name, at).encode(body)
        return len(data).to_bytes(4, "big") + data

    return reply


def raw(data: bytes) -> Reply:
    """A reply of just these bytes."""
    return lambda _: data


def close(_: bytes) -> None:
    """The connection is closed instead of an answer."""


def versions(*rows: tuple[int, int, int]) -> Reply:
    """ApiVersions: (key, from, to)."""
    keys = [{"ApiKey": key, "MinVersion": low, "MaxVersion": high} for key, low, high in rows]
    return answer({"ErrorCode": 0, "ApiKeys": keys})


def _read(sock: socket.socket) -> bytes:
    """A request; b"" when the peer closed."""
    head = sock.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return b""
    return head + sock.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


class Fake:
    """requests: what was asked, in order. Connection n plays script n, the last script again and again."""

    def __init__(self, scripts: list[list[Reply]]) -> None:
        self.requests: list[bytes] = []
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.address = Address(*self._listener.getsockname()[:2])
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def asked(self) -> list[str]:
        """As "Metadata v13"."""
        frames = [decode_frame(request, size=True) for request in self.requests]
        return [f"{frame.api} v{frame.api_version}" for frame in frames]

    def stop(self) -> None:
        self._closing.set()
        self._listener.close()
        self._thread.join(PATIENCE)

    def _accept(self) -> None:
        number = 0
        while not self._closing.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            script = self._scripts[min(number, len(self._scripts) - 1)]
            number += 1
            threading.Thread(target=self._play, args=(sock, script), daemon=True).start()

    def _play(self, sock: socket.socket, script: list[Reply]) -> None:
        with sock:
            sock.settimeout(PATIENCE)
            try:
                for reply in script:
                    request = _read(sock)
                    if not request:
                        return
                    self.requests.append(request)
                    data = reply(request)
                    if data is None:
                        return
                    sock.sendall(data)
                self._closing.wait(PATIENCE) if script and script[-1] is silent else None
            except OSError:
                return


def silent(_: bytes) -> bytes:
    """No answer, and the connection stays open."""
    return b""


@pytest.fixture
def fake() -> Iterator[Callable[..., Fake]]:
    """fake(script, …): each script is a list of replies."""
    made: list[Fake] = []

    def make(*scripts: list[Reply]) -> Fake:
        made.append(Fake(list(scripts)))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def replies() -> Any:
    """The kinds of replies, as a namespace."""

    class Replies:
        pass

    for name, reply in (("answer", answer), ("raw", raw), ("close", close), ("versions", versions), ("silent", silent)):
        setattr(Replies, name, staticmethod(reply))
    return Replies


@pytest.fixture
def unused() -> Address:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return Address(*sock.getsockname()[:2])
