"""Records what OpenSSL's own client and server say in every form of TLS that kwire decrypts.

Run as root, for tcpdump: python tests/interop/tls_openssl.py DIR. DIR gets capture.pcap and keys.log. It needs openssl
with `s_client -keylogfile`, and DIR/pki as pki() makes it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

FIRST_PORT = 19500
SUITES_12 = [
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "DHE-RSA-AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-CCM",
    "AES256-CCM8",
    "DHE-RSA-AES256-CCM",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "DHE-RSA-CHACHA20-POLY1305",
    "AES128-SHA",
    "AES256-SHA256",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-RSA-AES128-SHA256",
    "DHE-RSA-AES256-SHA",
]
EC_SUITES = [
    "ECDHE-ECDSA-AES128-CCM8",
    "ECDHE-ECDSA-AES256-CCM",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
]
SUITES_13 = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
]
NO_EMS = """openssl_conf = a
[a]
ssl_conf = b
[b]
system_default = c
[c]
Options = -ExtendedMasterSecret
"""
ANY = "-cipher ALL:@SECLEVEL=0"
ANY_13 = f"-ciphersuites {':'.join(SUITES_13)}"


def pki(folder: Path) -> None:
    """An authority, a server's RSA and EC certificates, a client's."""
    folder.mkdir(parents=True, exist_ok=True)
    names = "subjectAltName=DNS:kafka.example,DNS:*.kafka.example,DNS:localhost,IP:127.0.0.1"
    ca = "-x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 3650 -subj"
    subprocess.run(["openssl", "req", *ca.split(), "/CN=kwire test CA"], cwd=folder, check=True, capture_output=True)
    for name, key in (("server", "rsa:2048"), ("client", "rsa:2048"), ("ec", "ec -pkeyopt ec_paramgen_curve:P-256")):
        made = f"-x509 -CA ca.pem -CAkey ca.key -newkey {key} -nodes -keyout {name}.key -out {name}.pem -days 3650"
        said = ["-subj", f"/O=Example/CN={name}.kafka.example", "-addext", names]
        subprocess.run(["openssl", "req", *made.split(), *said], cwd=folder, check=True, capture_output=True)


class Lab:
    """Servers and clients one after the other, all keys in one log."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, FIRST_PORT
        self.log = folder / "keys.log"
        self.log.unlink(missing_ok=True)

    def run(
        self, server: str, *clients: tuple[str, list[tuple[float, str]]], cert: str = "server", rev: str = "-rev",
        extended: bool = True,
    ) -> None:  # fmt: skip
        """A server with these options, and clients that say these lines, each before so many seconds. extended: with
        the extended master secret, which only a configuration file turns off."""
        self.environment = {**os.environ, **({} if extended else {"OPENSSL_CONF": str(self.folder / "no_ems.cnf")})}
        self.port += 1
        command = (
            f"openssl s_server -accept 127.0.0.1:{self.port} -cert pki/{cert}.pem -key pki/{cert}.key {rev} {server}"
        )
        with open(self.folder / "server.out", "ab") as out:
            serving = subprocess.Popen(
                command.split(), cwd=self.folder, stdin=subprocess.PIPE, stdout=out, stderr=out, env=self.environment
            )
        time.sleep(0.5)
        for options, lines in clients:
            self._client(options, lines)
        serving.kill()
        serving.wait()

    def _client(self, options: str, lines: list[tuple[float, str]]) -> None:
        command = (
            f"openssl s_client -connect 127.0.0.1:{self.port} -servername kafka.example -CAfile pki/ca.pem "
            f"-keylogfile {self.log} {options}"
        )
        out = subprocess.DEVNULL
        client = subprocess.Popen(
            command.split(), cwd=self.folder, stdin=subprocess.PIPE, stdout=out, stderr=out, env=self.environment
        )
        assert client.stdin is not None
        time.sleep(0.15)
        try:
            for wait, line in lines:
                client.stdin.write(line.encode() + b"\n")
                client.stdin.flush()
                time.sleep(wait)
            client.stdin.close()
        except BrokenPipeError:
            pass
        try:
            client.wait(3)
        except subprocess.TimeoutExpired:
            client.kill()
            client.wait()


def say(*words: str) -> list[tuple[float, str]]:
    return [(0.08, word) for word in words] + [(0.05, "Q")]


def traffic(lab: Lab) -> None:
    """Every form once."""
    talk = say("first line", "x" * 60, "last")
    for suite in SUITES_12:
        lab.run(ANY, (f"-tls1_2 -cipher {suite}:@SECLEVEL=0", talk))
    for suite in EC_SUITES:
        lab.run(ANY, (f"-tls1_2 -cipher {suite}:@SECLEVEL=0", talk), cert="ec")
    for suite in ("AES128-SHA", "ECDHE-RSA-AES256-SHA384"):
        lab.run(ANY, (f"-tls1_2 -no_etm -cipher {suite}:@SECLEVEL=0", talk))
    for suite in ("AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"):
        lab.run(ANY, (f"-tls1_2 -cipher {suite}:@SECLEVEL=0", talk), extended=False)
    lab.run(f"{ANY} -no_ticket", ("-tls1_2 -sess_out s.pem", talk), ("-tls1_2 -sess_in s.pem", talk))
    lab.run(ANY, ("-tls1_2 -sess_out t.pem", talk), ("-tls1_2 -sess_in t.pem", talk))
    lab.run(
        f"{ANY} -client_renegotiation -legacy_renegotiation",
        ("-tls1_2", [(0.1, "before"), (0.4, "R"), (0.1, "after"), (0.4, "R"), (0.1, "again"), (0.1, "Q")]),
    )
    lab.run(f"{ANY} -Verify 1 -CAfile pki/ca.pem", ("-tls1_2 -cert pki/client.pem -key pki/client.key", talk))
    lab.run(ANY, ("-tls1_2 -cipher ARIA128-GCM-SHA256:ECDHE-ARIA128-GCM-SHA256:@SECLEVEL=0", talk))
    lab.run(f"{ANY} -tls1_1", ("-tls1_1 -cipher AES128-SHA:@SECLEVEL=0", talk))
    for suite in SUITES_13:
        lab.run(f"-tls1_3 {ANY_13}", (f"-tls1_3 -ciphersuites {suite}", talk))
    lab.run("-tls1_3 -groups P-384", ("-tls1_3 -groups X25519:P-384", talk))
    lab.run("-tls1_3 -Verify 1 -CAfile pki/ca.pem", ("-tls1_3 -cert pki/client.pem -key pki/client.key", talk))
    lab.run(
        "-tls1_3",
        ("-tls1_3", [(0.1, "before"), (0.2, "k"), (0.1, "between"), (0.2, "K"), (0.1, "after"), (0.2, "K"),
                     (0.1, "end"), (0.1, "Q")]),
    )  # fmt: skip
    lab.run("-tls1_3", ("-tls1_3 -sess_out u.pem", talk), ("-tls1_3 -sess_in u.pem", talk))
    (lab.folder / "early.txt").write_text("early words\n")
    both = ("-tls1_3 -sess_out v.pem", talk), ("-tls1_3 -sess_in v.pem -early_data early.txt", talk)
    lab.run("-tls1_3 -early_data", *both, rev="")
    lab.run("-tls1_3 -max_early_data 16384", *both)  # offered, and not taken
    lab.run("-tls1_2", ("-tls1_3", talk))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "no_ems.cnf").write_text(NO_EMS)
    if not (folder / "pki/ca.pem").exists():
        pki(folder / "pki")
    command = f"tcpdump -i lo -s 0 -B 65536 -U -w {folder}/capture.pcap tcp portrange {FIRST_PORT}-{FIRST_PORT + 200}"
    dump = subprocess.Popen(command.split(), stderr=subprocess.DEVNULL)
    time.sleep(1)
    traffic(Lab(folder))
    time.sleep(1)
    dump.terminate()
    dump.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
