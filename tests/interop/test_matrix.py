"""The matrix of features for two clients that need no network to be had: each feature works. matrix/ tries the others.

kafka-python is not among them: under load its consumers now and then stay without partitions.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.testing import Broker

PROGRAMS = {"confluent_kafka": "librdkafka.py", "aiokafka": "aiokafka_features.py"}


@pytest.mark.slow
@pytest.mark.parametrize("library", PROGRAMS)
def test_each_feature_of_the_client_works(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    program = Path(__file__).parent / "matrix" / PROGRAMS[library]
    config = {"group.initial.rebalance.delay.ms": 0, "allow.everyone.if.no.acl.found": True}
    with Broker(super_users=["ANONYMOUS"], config=config) as broker:
        done = subprocess.run(
            [sys.executable, str(program), broker.address], capture_output=True, text=True, timeout=600
        )
    assert done.stdout, done.stderr
    assert [line for line in done.stdout.splitlines() if not line.startswith("ok ")] == []
