"""kafka-python and aiokafka: pytest, in a copy of their tests."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

from steps import Needs, Place, Results, Suite, call, must, pytest_results

HERE = Path(__file__).parent
KAFKA_PYTHON, AIOKAFKA = "2.3.0", "0.14.0"
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    start = stop = close = dump_logs = open


class SpawnedService:
    pass
"""


def named(only: list[str]) -> list[str]:
    """pytest's options for the tests of these names, without their parameters."""
    names = {name.rpartition("::")[2].partition("[")[0] for name in only}
    return ["-k", " or ".join(sorted(names))] if names else []


def build_kafka_python(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    print(
        call(*pip, "download", "-q", "--no-deps", "--no-binary", ":all:", f"kafka-python=={KAFKA_PYTHON}", "-d", folder)
    )
    with tarfile.open(next(folder.glob("kafka*python-*.tar.gz"))) as packed:
        packed.extractall(folder, filter="data")
    (folder / f"kafka_python-{KAFKA_PYTHON}").rename(folder / "source")
    tests = folder / "source" / "test"
    (tests / "__init__.py").touch()  # the archive lacks this, and what starts and stops brokers
    (tests / "service.py").write_text(SERVICE)
    (folder / "source" / "servers" / "4.0.0" / "kafka-bin").mkdir(parents=True)  # looked for, and not used


def run_kafka_python(folder: Path, place: Place, only: list[str]) -> Results:
    first = place.plain.split(",")[0].replace("localhost", "127.0.0.1")
    wanted = ["admin_integration", "consumer_group", "consumer_integration", "producer_integration"]
    files = [f"test/integration/test_{name}.py" for name in wanted]
    return pytest_results(folder / "source", files, *named(only), KAFKA_URI=f"kafka://{first}", KAFKA_VERSION="4.0.0")


def build_aiokafka(folder: Path) -> None:
    """The tests of a checkout, beside the package from the registry."""
    checkout = Path(os.environ[SUITES["aiokafka"].checkout])
    install: list[str | Path] = [sys.executable, "-m", "pip", "install", "-q", "--target", folder / "source"]
    must(*install, f"aiokafka=={AIOKAFKA}", "cramjam")
    must(*install, "--no-deps", "pytest-mock", "pytest-asyncio", "backports.asyncio.runner")
    shutil.copytree(checkout / "tests", folder / "source" / "tests")
    shutil.copy(HERE / "aiokafka_conftest.py", folder / "source" / "tests" / "conftest.py")


def run_aiokafka(folder: Path, place: Place, only: list[str]) -> Results:
    """The tests that talk to a broker."""
    where = json.dumps({**place.at, "certificate": place.certificate})
    tests = sorted((folder / "source" / "tests").glob("test_*.py"))
    wanted = [f"tests/{path.name}" for path in tests if "KafkaIntegrationTestCase" in path.read_text("utf-8")]
    return pytest_results(folder / "source", wanted, "-o", "asyncio_mode=auto", *named(only), SUITE_ADDRESSES=where)


FOUR = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SUITES = {
    "kafka-python": Suite(KAFKA_PYTHON, Needs(), build_kafka_python, run_kafka_python),
    "aiokafka": Suite(
        AIOKAFKA,
        Needs(listeners=FOUR, users=(("admin", "admin"), ("test", "test"), ("test2", "test2")), partitions=2),
        build_aiokafka,
        run_aiokafka,
        "KWIRE_SUITE_AIOKAFKA",
    ),
}
