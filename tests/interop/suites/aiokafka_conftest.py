# mypy: disable-error-code="attr-defined,no-untyped-def"
"""Takes the place of aiokafka's tests/conftest.py: brokers that stand already, where that one starts a container.

SUITE_ADDRESSES holds JSON: protocol to host:port, and "certificate" to the file that clients must trust. Users and ACLs
are made with confluent-kafka, where the suite calls scripts inside the container. Kerberos is skipped.
"""

import asyncio
import gc
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

WHERE = json.loads(os.environ["SUITE_ADDRESSES"])
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "transactional_id": ResourceType.TRANSACTIONAL_ID}
PRODUCER, CONSUMER = ("DESCRIBE", "WRITE", "CREATE"), ("DESCRIBE", "READ")


@cache
def admin() -> AdminClient:
    """One for all: what it was asked for ends with it."""
    return AdminClient({"bootstrap.servers": WHERE["PLAINTEXT"]})


def bindings(params: dict[str, Any]) -> list[AclBinding]:
    """What kafka-acls.sh makes of these options."""
    found = []
    for permission, name in ((AclPermissionType.ALLOW, "allow"), (AclPermissionType.DENY, "deny")):
        who = params.get(f"{name}_principal")
        if who is None:
            continue
        host = params.get(f"{name}_host") or "*"
        places = [(kind, params[key]) for key, kind in KINDS.items() if params.get(key) is not None]
        if params.get("cluster"):
            places.append((ResourceType.BROKER, "kafka-cluster"))
        for kind, resource in places:
            operations = [params["operation"].upper()] if params.get("operation") else ["ALL"]
            if params.get("producer") or params.get("consumer"):
                operations = [
                    *(PRODUCER if params.get("producer") else ()),
                    *(CONSUMER if params.get("consumer") else ()),
                ]
                operations = ["READ"] if kind == ResourceType.GROUP else sorted(set(operations))
            for operation in operations:
                op = AclOperation[operation.replace("IDEMPOTENTWRITE", "IDEMPOTENT_WRITE")]
                pattern = ResourcePatternType.LITERAL
                found.append(AclBinding(kind, resource, pattern, f"User:{who}", host, op, permission))
    return found


class Acls:
    def __init__(self) -> None:
        self.active: list[AclBinding] = []

    def list_acl(self, principal: str | None = None) -> None:
        pass

    def add_acl(self, **params: Any) -> None:
        made = bindings(params)
        for future in admin().create_acls(made).values():
            future.result()
        self.active += made

    def cleanup(self) -> None:
        if self.active:
            wanted = [
                AclBindingFilter(b.restype, b.name, b.resource_pattern_type, b.principal, b.host, b.operation,
                                 b.permission_type) for b in self.active
            ]  # fmt: skip
            for future in admin().delete_acls(wanted).values():
                future.result()
        self.active = []


class Users:
    def add_scram_user(self, user: str, password: str) -> None:
        kinds = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
        changes = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(kind, 4096), password.encode()) for kind in kinds
        ]
        for change in changes:
            for future in admin().alter_user_scram_credentials([change]).values():
                future.result()


@pytest.fixture(scope="session")
def ssl_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ssl")
    shutil.copy(WHERE["certificate"], folder / "ca.crt")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=client", "-days", "30"]
    names = ["-keyout", str(folder / "client.key"), "-out", str(folder / "client.crt")]
    subprocess.run([*make, *names], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="class")
def loop():
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield made
    if not made.is_closed():
        made.call_soon(made.stop)
        made.run_forever()
        made.close()
    gc.collect()
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def collect_garbage():
    yield
    gc.collect()


@pytest.fixture(scope="class")
def setup_test_class_serverless(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> None:
    request.cls.loop = loop


@pytest.fixture(scope="class")
def setup_test_class(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop, ssl_folder: Path) -> None:
    ports = {protocol: int(place.rpartition(":")[2]) for protocol, place in WHERE.items() if protocol != "certificate"}
    test = request.cls
    test.loop, test.kafka_host, test.kafka_port = loop, "127.0.0.1", ports["PLAINTEXT"]
    test.kafka_ssl_port, test.kafka_sasl_plain_port = ports["SSL"], ports["SASL_PLAINTEXT"]
    test.kafka_sasl_ssl_port, test.ssl_folder = ports["SASL_SSL"], ssl_folder
    test.acl_manager, test.kafka_config = Acls(), Users()
    test.kerberos_utils = SimpleNamespace(kinit=no_kerberos, kdestroy=lambda: None)
    test.hosts = [f"127.0.0.1:{ports['PLAINTEXT']}"]
    test.kafka_version = "4.0.0"


def no_kerberos(_: str) -> None:
    pytest.skip("no Kerberos here")
