"""Captures of real programs: what kwire decrypts is what tshark decrypts (tests/interop/tls_judge.py)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kwire.capture.connections import Connections
from kwire.capture.files import open_capture
from kwire.capture.segmenter import Segmenter
from kwire.capture.tcp import ConnectionFilter
from kwire.capture.tls.keylog import KeyLog
from kwire.capture.tls.layer import TlsLayer
from kwire.capture.tls.session import TlsSession

FIXTURES = Path(__file__).parents[3] / "fixtures/captures"


class Followed:
    """A capture with its key log: what travelled inside, by the ends' names, and the sessions."""

    def __init__(self, folder: Path) -> None:
        self.layer = TlsLayer(KeyLog.of([folder / "keys.log"]))
        self.inside: dict[frozenset[str], dict[str, bytes]] = {}
        self.sessions: list[TlsSession] = []
        connections, segmenter = Connections(tls=self.layer), Segmenter(ConnectionFilter())
        for packets in open_capture(folder / "capture.pcap.gz").blocks():
            for segments in segmenter.read(packets).segments:
                self._take(connections.feed(segments))
        self._take(connections.finish())

    def _take(self, touched) -> None:  # type: ignore[no-untyped-def]
        for connection in touched:
            if isinstance(connection.tls, TlsSession) and connection.finished:
                self.sessions.append(connection.tls)
            names = [f"{host}:{port}" for host, port in connection.ends]
            found = self.inside.setdefault(frozenset(names), dict.fromkeys(names, b""))
            for name, stream in zip(names, connection.streams, strict=True):
                if isinstance(connection.tls, TlsSession) and connection.tls.decrypted:
                    found[name] += b"".join(piece.data for piece in stream.pieces)
                stream.pieces = []


@pytest.fixture(scope="module")
def openssl() -> Followed:
    return Followed(FIXTURES / "tls-openssl")


@pytest.fixture(scope="module")
def kafka() -> Followed:
    return Followed(FIXTURES / "tls-kafka")


@pytest.mark.parametrize("name", ["openssl", "kafka"])
def test_all_that_tshark_decrypts_is_the_same(name: str, request: pytest.FixtureRequest) -> None:
    followed: Followed = request.getfixturevalue(name)
    text = gzip.decompress((FIXTURES / f"tls-{name}/inside.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in text.splitlines()]
    old = 0
    for row in rows:
        mine = {end: data.hex() for end, data in followed.inside[frozenset(row)].items()}
        if mine != row:
            assert not any(mine.values())
            old += 1
    assert old == (name == "openssl")  # TLS 1.1, which kwire does not decrypt
    assert len(rows) > 25


def test_every_form_is_there(openssl: Followed) -> None:
    facts = [session.facts for session in openssl.sessions if session.decrypted]
    modes = {(one.version, one.suite.mode) for one in facts if one.suite}
    assert modes == {
        *(("TLS 1.2", mode) for mode in ("gcm", "ccm", "ccm_8", "chacha20", "cbc")),
        *(("TLS 1.3", mode) for mode in ("gcm", "ccm", "ccm_8", "chacha20")),
    }
    assert {one.version for one in facts if one.resumed} == {"TLS 1.2", "TLS 1.3"}
    assert {one.version for one in facts if one.client_certificate} == {"TLS 1.2", "TLS 1.3"}
    assert {one.early_data for one in facts} == {"", "taken", "refused"}
    assert max(one.key_updates for one in facts) == 3
    assert max(one.renegotiated for one in facts) == 2
    assert any(one.retried for one in facts)
    assert all(not one.lost and not one.unread for one in facts)
    whys = {session.why for session in openssl.sessions if not session.decrypted}
    assert whys == {
        None, "this version of TLS is not decrypted",
        "the cipher suite TLS_RSA_WITH_ARIA_128_GCM_SHA256 is not supported",
    }  # fmt: skip
