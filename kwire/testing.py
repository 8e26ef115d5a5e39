"""Kafka for tests, without Kafka: a broker in this process, and a pytest fixture of it.

    from kwire.testing import broker            # in conftest.py or in the test's own file

    def test_retries(broker):
        broker.fault("Produce:error=NOT_LEADER_OR_FOLLOWER,times=2")
        send(bootstrap_servers=broker.address)
        assert [record.value for record in broker.log("orders")] == [b"one"]
        assert len(broker.requests("Produce")) == 3

    @pytest.mark.parametrize("broker", [{"nodes": 3}], indirect=True)     # with other settings than Broker()'s
    def test_rebalance(broker): ...

    with Proxy("broker:9092") as proxy: ...     # a cluster that is there, reached through ports of this process

pytest_plugins = ["kwire.testing"] in conftest.py does the same as the import. Without pytest: with Broker() as broker.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.broker.handle import Broker
from kwire.proxy.handle import Proxy

__all__ = ["Broker", "Proxy", "broker"]

try:
    import pytest
except ImportError:  # Broker alone needs no pytest

    def broker() -> Iterator[Broker]:
        raise ImportError("the fixture needs pytest")

else:

    @pytest.fixture
    def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
        """A broker that lives as long as the test; request.param: the keywords of Broker."""
        with Broker(**getattr(request, "param", {})) as made:
            yield made
