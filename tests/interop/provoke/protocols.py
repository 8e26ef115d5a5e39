"""Troubles before any Kafka is spoken: logins that are refused, TLS against plain text, other protocols; and clients
and captures that are not what they should be."""

from __future__ import annotations

import base64
import http.server
import json
import socket
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from cluster import Cluster, java
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from scenarios import Scenario, Stage

WEB = 19008  # an HTTP server listens there
RIGHT, WRONG = "fixture-secret-plain", "fixture-secret-wrong"


def inside_topic(stage: Stage) -> None:
    """A topic made over the brokers' own listener, which is PLAINTEXT."""
    inside = AdminClient({"bootstrap.servers": f"127.0.0.1:{stage.cluster.port() + 1}"})
    for future in inside.create_topics([NewTopic(stage.topic, 1, 1)]).values():
        future.result(30)


def attempt(stage: Stage, client: str, seconds: float = 3, **config: Any) -> None:
    """A librdkafka producer with one record, for so long."""

    def say(error: Any) -> None:
        print(f"  {client}: {str(error)[:150]}")

    producer = stage.producer(client, linger_ms=0, message_timeout_ms=round(seconds * 1000), error_cb=say, **config)
    producer.produce(stage.topic, value="x", partition=0)
    producer.flush(seconds + 1)


# ---------------------------------------------------------------- logins


def token(lasts: float) -> str:
    """An unsecured token (RFC 7515, alg none) that lasts so many seconds, less than none when it has expired."""
    now = time.time()
    parts = {"alg": "none"}, {"sub": "fixture-bearer", "iat": round(now - 600), "exp": round(now + lasts)}
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + "."


def login_fails(stage: Stage) -> None:
    """SASL_PLAINTEXT: librdkafka with a wrong password (PLAIN), with a mechanism that is not enabled (SCRAM-SHA-512),
    with a token that has expired (OAUTHBEARER). Healthy: the right password twice, a token that is good."""
    sasl: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT"}
    user: dict[str, Any] = sasl | {"sasl_username": "fixture-plain"}
    if stage.sick:
        stage.found("login-fails", principal="fixture-plain", client_id="wrong-password")
    attempt(stage, "wrong-password", sasl_mechanism="PLAIN", sasl_password=WRONG if stage.sick else RIGHT, **user)
    if stage.sick:
        stage.found("login-fails", client_id="not-offered")
    other = "SCRAM-SHA-512" if stage.sick else "PLAIN"
    attempt(stage, "not-offered", sasl_mechanism=other, sasl_password=RIGHT, **user)
    if stage.sick:
        stage.found("login-fails", client_id="expired")

    def fresh(_: str) -> tuple[str, float]:
        return token(-60 if stage.sick else 3600), time.time() + 3600

    attempt(stage, "expired", sasl_mechanism="OAUTHBEARER", oauth_cb=fresh, **sasl)


MODULES = "org.apache.kafka.common.security."
LOGINS = {
    "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "listener.name.clients.plain.sasl.jaas.config":
        f'{MODULES}plain.PlainLoginModule required user_fixture-plain="{RIGHT}";',
    "listener.name.clients.oauthbearer.sasl.jaas.config":
        f'{MODULES}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
    "super.users": "User:ANONYMOUS;User:fixture-plain;User:fixture-bearer",
}  # fmt: skip


# ---------------------------------------------------------------- TLS and others


@cache
def certificates() -> dict[str, str]:
    """A broker's key store of this run, and authorities: the one that signed it (right), and another (wrong)."""
    folder = Path(tempfile.mkdtemp(prefix="provoke-tls-"))

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    for name in ("right", "wrong"):
        new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", f"/CN={name} authority"]
        openssl(*new, "-keyout", f"{name}.key", "-out", f"{name}.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kafka.example", "-keyout", "key", "-out", "asked")
    (folder / "names").write_text("subjectAltName=DNS:kafka.example,IP:127.0.0.1\n")
    sign = ["x509", "-req", "-in", "asked", "-CA", "right.pem", "-CAkey", "right.key", "-days", "3650"]
    openssl(*sign, "-extfile", "names", "-out", "cert")
    openssl("pkcs8", "-topk8", "-nocrypt", "-in", "key", "-out", "key8")
    (folder / "store.pem").write_text("".join((folder / part).read_text() for part in ("key8", "cert", "right.pem")))
    return {name: str(folder / name) for name in ("store.pem", "right.pem", "wrong.pem")}


class TlsCluster(Cluster):
    """A cluster whose clients' listener speaks TLS."""

    def __init__(self, folder: Path, **options: Any) -> None:
        store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates()["store.pem"]}
        settings = {f"listener.name.clients.{key}": value for key, value in store.items()}
        super().__init__(folder, **options, settings=settings, protocol="SSL")


def java_producer(stage: Stage, client: str, seconds: float, **config: str) -> None:
    """Java's console producer with one record; what it logs of its connection."""
    command = ["org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", stage.cluster.address]
    command += ["--topic", stage.topic]
    own = {"client.id": client, "max.block.ms": str(round(seconds * 1000)), "enable.idempotence": "false"}
    for key, value in (own | config).items():
        command += ["--command-property", f"{key.replace('_', '.')}={value}"]
    log = f"-Dlog4j2.configurationFile={stage.cluster.folder}/log4j2.properties"
    done = subprocess.run(
        java("4.3.1", log, *command, heap="128m"), input="x\n", capture_output=True, text=True, timeout=90
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "WARN" in line or "ERROR" in line]
    for line in lines[:3]:
        print(f"  {client}: {line[:300]}")


def tls_mismatch(stage: Stage) -> None:
    """Clients that speak TLS (librdkafka, then Java) to a listener without. Healthy: plain text."""
    settings: dict[str, Any] = {"security_protocol": "SSL"} if stage.sick else {}
    for client, tries in (("secure", attempt), ("secure-java", java_producer)):
        if stage.sick and not stage.truth:
            stage.found("tls-mismatch", broker=f"127.0.0.1:{stage.cluster.port()}")
        tries(stage, client, 3, **settings)


def plain_to_tls(stage: Stage) -> None:
    """Clients that speak plain Kafka (librdkafka, then Java) to a listener with TLS, then one (librdkafka) that does
    not know the authority which signed the broker's certificate. Healthy: TLS, and the right authority."""
    known = certificates()
    tls: dict[str, Any] = {"security_protocol": "SSL"}
    broker = f"127.0.0.1:{stage.cluster.port()}"
    if stage.sick:
        stage.found("tls-mismatch", broker=broker)
    attempt(stage, "plain", **({} if stage.sick else tls | {"ssl_ca_location": known["right.pem"]}))
    trust = {"ssl_truststore_type": "PEM", "ssl_truststore_location": known["right.pem"]}
    java_producer(stage, "plain-java", 4, **({} if stage.sick else tls | trust))
    if stage.sick:
        stage.found("tls-mismatch", broker=broker)
    attempt(stage, "distrustful", ssl_ca_location=known["wrong.pem" if stage.sick else "right.pem"], **tls)


def wrong_protocol(stage: Stage) -> None:
    """A health check asks the broker's port for a page (curl), and librdkafka takes a web server for a broker. Healthy:
    the check only connects, and the client finds its broker."""
    plain = "127.0.0.1"
    attempt(stage, "good")
    for _ in range(3):
        if stage.sick:
            if not stage.truth:
                stage.found("wrong-protocol", broker=f"{plain}:{stage.cluster.port()}")
            subprocess.run(["curl", "-s", "-m", "2", f"http://{stage.cluster.address}/health"], check=False)
        else:
            socket.create_connection((plain, stage.cluster.port()), 10).close()
        time.sleep(0.5)
    web = http.server.ThreadingHTTPServer((plain, WEB), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        target: dict[str, Any] = {"bootstrap_servers": f"{plain}:{WEB}"} if stage.sick else {}
        if stage.sick:
            stage.found("wrong-protocol", broker=f"{plain}:{WEB}")
        attempt(stage, "misled", **target)
    finally:
        web.shutdown()
        web.server_close()


# ---------------------------------------------------------------- old clients, poor captures


def plain_topic(stage: Stage) -> None:
    stage.create()


def kafka4_blocked(stage: Stage) -> None:
    """Kafka 3.9: librdkafka that was told not to ask for versions (api.version.request=false,
    broker.version.fallback=0.9.0.1). Healthy: it asks."""
    old: dict[str, Any] = {"api_version_request": False, "broker_version_fallback": "0.9.0.1"} if stage.sick else {}
    if stage.sick:
        stage.found("kafka4-blocked", client_id="pinned")
    attempt(stage, "pinned", **old)


def capture_quality(stage: Stage) -> None:
    """Recorded with a snaplen of 120 bytes (tcpdump -s 120): a producer and a reader. Healthy: whole packets."""
    if stage.sick:
        stage.found("capture-quality")
    attempt(stage, "producer")
    consumer = stage.consumer()
    consumer.subscribe([stage.topic])
    stage.consume(consumer, 20, most=1)
    consumer.close()


SCENARIOS = {
    "login-fails": Scenario(login_fails, inside_topic, {"protocol": "SASL_PLAINTEXT", "settings": LOGINS}),
    "tls-mismatch": Scenario(tls_mismatch, plain_topic),
    "plain-to-tls": Scenario(plain_to_tls, inside_topic, {"tls": True}),
    "wrong-protocol": Scenario(wrong_protocol, plain_topic, ports=(WEB,)),
    "kafka4-blocked": Scenario(kafka4_blocked, plain_topic, {"release": "3.9.2"}),
    "capture-quality": Scenario(capture_quality, plain_topic, snaplen=120),
}
