"""A certificate made on the spot, for tests: it signs itself and is gone when the broker ends. Needs kwire[tls]."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from pathlib import Path

from kwire.errors import KwireError

DAYS = 7


def certificate(*hosts: str) -> tuple[bytes, bytes]:
    """Certificate and key, PEM, for loopback and these hosts. Raises KwireError without the package cryptography."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise KwireError("TLS needs the package cryptography: pip install 'kwire[tls]'") from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kwire broker")])
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    for address in dict.fromkeys(("127.0.0.1", "::1", *hosts)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(pem), private


def context(*hosts: str) -> tuple[ssl.SSLContext, str]:
    """A server's context, and the certificate that clients must trust, as PEM text. Raises KwireError."""
    chain, key = certificate(*hosts)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # load_cert_chain reads files only
        path = Path(folder, "broker.pem")
        path.touch(0o600)
        path.write_bytes(chain + key)
        made.load_cert_chain(path)
    return made, chain.decode()
