"""Kafka for tests, without Kafka: a broker in this process, or several, and pytest fixtures of it.

    from kwire.testing import broker            # in conftest.py or in the test's own file

    def test_retries(broker):
        broker.fault("Produce:error=NOT_LEADER_OR_FOLLOWER,times=2")
        send(bootstrap_servers=broker.address)
        assert [record.value for record in broker.log("orders")] == [b"one"]
        assert len(broker.requests("Produce")) == 3

    @pytest.mark.parametrize("broker", [{"nodes": 3}], indirect=True)     # with other settings than Broker()'s
    def test_rebalance(broker): ...

    def test_failover(cluster):                 # three nodes, each topic on all of them
        leader = cluster.partition("orders").leader
        cluster.node(leader).kill()
        ...
        cluster.node(leader).start()

    with Proxy("broker:9092") as proxy: ...     # a cluster that is there, reached through ports of this process

broker and cluster are made for each test. module_broker and session_broker live longer, with all that is in them; rules
and hooks end with the test that set them. A hook that raises fails its test, and names the hook's line. Every broker
has ports of its own, so that tests may run in parallel (pytest -n).

pytest_plugins = ["kwire.testing"] in conftest.py does the same as the imports. Without pytest: with Broker() as broker,
or async with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kwire.broker.cluster_handles import NodeHandle, PartitionHandle
from kwire.broker.handle import Broker
from kwire.broker.nodes import Listener, NodeSetup, setups_of
from kwire.errors import HookFailed
from kwire.proxy.handle import Proxy

__all__ = [
    "Broker", "Cluster", "HookFailed", "Listener", "NodeHandle", "NodeSetup", "PartitionHandle", "Proxy", "broker",
    "cluster", "module_broker", "session_broker",
]  # fmt: skip


def Cluster(
    nodes: int | Iterable[int | NodeSetup] = 3, *, config: Mapping[str, object] | None = None, **settings: Any
) -> Broker:
    """Broker(…) of several nodes, whose topics have a replica on each unless they say otherwise, and of these one less
    must be in sync."""
    setups = setups_of(nodes)
    copies = {"default.replication.factor": len(setups), "min.insync.replicas": max(len(setups) - 1, 1)}
    return Broker(nodes=setups, config={**copies, **(config or {})}, **settings)


try:
    import pytest
except ImportError:  # Broker alone needs no pytest

    def broker() -> Iterator[Broker]:
        raise ImportError("the fixture needs pytest")

    cluster = module_broker = session_broker = broker

else:

    def _guarded(made: Broker, item: Any) -> None:
        """The test fails, and not something after it, when one of its hooks does."""
        run: Callable[[], None] = item.runtest

        def runtest() -> None:
            run()
            made.check()

        item.runtest = runtest

    def _made(request: pytest.FixtureRequest, make: Callable[..., Broker] = Broker) -> Iterator[Broker]:
        with make(**getattr(request, "param", {})) as made:
            yield made

    @pytest.fixture
    def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
        """A broker that lives as long as the test; request.param: the keywords of Broker."""
        for made in _made(request):
            _guarded(made, request.node)
            yield made
            made.faults.failures.clear()

    @pytest.fixture
    def cluster(request: pytest.FixtureRequest) -> Iterator[Broker]:
        """The same with three nodes; request.param: the keywords of Cluster."""
        for made in _made(request, Cluster):
            _guarded(made, request.node)
            yield made
            made.faults.failures.clear()

    BROKER = pytest.StashKey[Broker]()

    def _lasting(request: pytest.FixtureRequest, node: Any) -> Iterator[Broker]:
        """A broker that lives as long as node, a module or the session, for one of its tests."""
        if BROKER not in node.stash:
            node.stash[BROKER] = Broker().start()
            node.addfinalizer(lambda: node.stash[BROKER].stop())
        made = node.stash[BROKER]
        _guarded(made, request.node)
        yield made
        made.faults.clear()
        made.faults.failures.clear()

    @pytest.fixture
    def module_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
        """A broker of all tests of a file, with what they leave in it."""
        yield from _lasting(request, request.node.getparent(pytest.Module))

    @pytest.fixture
    def session_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
        """A broker of all tests of a run (of each worker of pytest -n)."""
        yield from _lasting(request, request.session)
