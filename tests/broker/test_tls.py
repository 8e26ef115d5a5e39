"""The certificate made on the spot: whom it names, and what is said where it cannot be made."""

from __future__ import annotations

import ssl
import sys

import pytest

from kwire.broker.tls import certificate, context
from kwire.errors import KwireError


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "kafka.example"])
def test_it_names_loopback_and_the_host(host: str) -> None:
    x509 = pytest.importorskip("cryptography.x509")
    made = x509.load_pem_x509_certificate(certificate(host)[0])
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = [str(name.value) for name in names]
    assert found[:3] == ["localhost", "127.0.0.1", "::1"]
    assert host in found
    assert made.issuer == made.subject


def test_the_context_is_a_servers() -> None:
    pytest.importorskip("cryptography")
    made, pem = context("127.0.0.1")
    assert made.protocol == ssl.PROTOCOL_TLS_SERVER
    assert pem.startswith("-----BEGIN CERTIFICATE-----")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(KwireError) as error:
        certificate("127.0.0.1")
    assert str(error.value) == "TLS needs the package cryptography: pip install 'kwire[tls]'"
