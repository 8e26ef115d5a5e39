"""Cipher suites: what their names say."""

from __future__ import annotations

import pytest

from kwire.capture.tls.suites import suite_of


@pytest.mark.parametrize(
    ("number", "name", "mode", "key", "mac", "hash"),
    [
        (0x1301, "TLS_AES_128_GCM_SHA256", "gcm", 16, "", "sha256"),
        (0x1302, "TLS_AES_256_GCM_SHA384", "gcm", 32, "", "sha384"),
        (0x1303, "TLS_CHACHA20_POLY1305_SHA256", "chacha20", 32, "", "sha256"),
        (0x1305, "TLS_AES_128_CCM_8_SHA256", "ccm_8", 16, "", "sha256"),
        (0xC030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "gcm", 32, "", "sha384"),
        (0xC0A3, "TLS_DHE_RSA_WITH_AES_256_CCM_8", "ccm_8", 32, "", "sha256"),
        (0x002F, "TLS_RSA_WITH_AES_128_CBC_SHA", "cbc", 16, "sha1", "sha256"),
        (0xC028, "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "cbc", 32, "sha384", "sha384"),
        (0x003D, "TLS_RSA_WITH_AES_256_CBC_SHA256", "cbc", 32, "sha256", "sha256"),
        (0x000A, "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "", 0, "", "sha256"),
        (0xFFFE, "0xfffe", "", 0, "", "sha256"),
    ],
)
def test_what_a_name_says(number: int, name: str, mode: str, key: int, mac: str, hash: str) -> None:
    found = suite_of(number)
    assert (found.name, found.mode, found.key, found.mac, found.hash) == (name, mode, key, mac, hash)
