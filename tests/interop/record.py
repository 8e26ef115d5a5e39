"""Plays scripts of requests to a real broker and keeps its answers: fixtures/FOLDER/NAME.VERSION.jsonl.gz.

    python tests/interop/record.py SUITE --broker 127.0.0.1:9092 --version 4.3.1 [--set KEY=VALUE]... [NAME]...

SUITE is coordinator, transactions, share or streams. A script is an async function of a module in SUITE_scripts/, or an
entry of that module's SCRIPTS; its docstring says what it shows, its name is that of the group or the transactional id.
Scripts run beside each other; those that the broker cannot play (an API or a version that it lacks) are named. A broker
just started with the properties of fixtures/README.md is expected. One to three minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from coordinator_lab import Client, Lab, NotOffered, topic_row  # noqa: E402
from share_lab import ShareLab  # noqa: E402
from streams_lab import StreamsLab  # noqa: E402
from transaction_lab import RETRIED, TxnLab  # noqa: E402

import kwire  # noqa: E402

FIXTURES = HERE.parents[1] / "fixtures"
TOPICS = {"orders": 4, "payments": 3}
NONE, GROUP_ID_NOT_FOUND = 0, 69
Head = dict[str, Any]


# ------------------------------------------------------------ the broker


async def versions_of(admin: Client) -> dict[str, tuple[int, int]]:
    from kwire.schema.registry import builtin

    known = set(builtin().keys())
    rows = (await admin.ask("ApiVersions", 0, {}))["ApiKeys"]
    return {
        builtin().api(row["ApiKey"]).name: (row["MinVersion"], row["MaxVersion"])
        for row in rows
        if row["ApiKey"] in known
    }


async def make_topics(admin: Client, wanted: dict[str, int]) -> dict[str, Head]:
    """Topics with so many partitions, made when they are not there; by name: uuid and partitions."""
    rows = [{"Name": name, "NumPartitions": count, "ReplicationFactor": 1} for name, count in wanted.items()]
    await admin.ask("CreateTopics", 7, {"Topics": rows, "TimeoutMs": 5000})
    await asyncio.sleep(0.5)
    asked = {"Topics": [{"Name": name} for name in wanted], "AllowAutoTopicCreation": False}
    found = (await admin.ask("Metadata", 12, asked))["Topics"]
    return {row["Name"]: {"uuid": row["TopicId"], "partitions": len(row["Partitions"])} for row in found}


async def offsets_topic(admin: Client) -> bool:
    """Whether the broker has its __consumer_offsets."""
    asked = {"Topics": [{"Name": "__consumer_offsets"}], "AllowAutoTopicCreation": False}
    return bool((await admin.ask("Metadata", 12, asked))["Topics"][0]["ErrorCode"] == NONE)


async def ready(admin: Client) -> None:
    """Waits until the broker coordinates groups, and transactions where it does."""
    for _ in range(40):
        found = (await admin.ask("FindCoordinator", 4, {"KeyType": 0, "CoordinatorKeys": ["any"]}))["Coordinators"][0]
        if found["ErrorCode"] == 0:
            await asyncio.sleep(1)  # until every partition is loaded
            return
        await asyncio.sleep(0.25)
    raise SystemExit("no coordinator")


async def transactions_ready(admin: Client) -> None:
    await ready(admin)
    asked = {"TransactionalId": "warm-up", "TransactionTimeoutMs": 1000}
    for _ in range(100):
        await admin.ask("FindCoordinator", 4, {"KeyType": 1, "CoordinatorKeys": ["warm-up"]})
        if (await admin.ask("InitProducerId", 4, asked))["ErrorCode"] not in RETRIED:
            await asyncio.sleep(1)
            return
        await asyncio.sleep(0.2)
    raise SystemExit("no transaction coordinator")


async def share_ready(admin: Client) -> None:
    """Waits until the broker keeps the state of share groups too, and knows where logs end."""
    await transactions_ready(admin)
    name = "warm-up-share"
    await make_topics(admin, {name: 1})
    heartbeat = {"GroupId": name, "MemberId": "warm", "MemberEpoch": 0, "SubscribedTopicNames": [name]}
    wanted = {"Groups": [{"GroupId": name, "Topics": [{"TopicName": name, "Partitions": [0]}]}]}
    for _ in range(100):
        joined = await admin.ask("ShareGroupHeartbeat", 1, heartbeat)
        await asyncio.sleep(0.3)
        if joined["Assignment"] and joined["Assignment"]["TopicPartitions"]:
            break
    start = {"GroupId": name, "MemberId": "warm", "MemberEpoch": -1}
    await admin.ask("ShareGroupHeartbeat", 1, start)
    topics = [{"TopicName": name, "Partitions": [{"PartitionIndex": 0, "StartOffset": 0}]}]
    await admin.ask("AlterShareGroupOffsets", 0, {"GroupId": name, "Topics": topics})
    await admin.ask("DescribeShareGroupOffsets", 1, wanted)


# ------------------------------------------------------------ suites


async def group_lab(name: str, run: Recorder, admin: Client, kind: type[Lab] = Lab) -> Lab:
    topics = await make_topics(admin, TOPICS)
    lab = kind(name, run.address, run.versions, topics, admin)
    if name != "no-offsets-topic":
        old = (await admin.ask("DeleteGroups", 2, {"GroupsNames": [name]}))["Results"][0]
        assert old["ErrorCode"] in (NONE, GROUP_ID_NOT_FOUND), f"the group of an earlier run is there yet: {old}"
    return lab


def group_head(lab: Lab, given: argparse.Namespace) -> Head:
    topics: Head = {}
    for name, row in lab.known_at_first.items():
        topics |= topic_row(name, row["uuid"], row["partitions"])
    settings = {key: int(value) for key, _, value in (pair.partition("=") for pair in given.set)}
    return {"settings": settings | lab.settings, "topics": topics, "denied": lab.denied}


async def own_topics_lab(name: str, run: Recorder, admin: Client, kind: type[Lab]) -> Lab:
    """A script with topics that nobody else writes to: NAME-t and NAME-u, of two partitions and one."""
    await admin.ask("DeleteGroups", 2, {"GroupsNames": [name]})
    names = {f"{name}-t": 2, f"{name}-u": 1}
    rows = [{"Name": each} for each in (*names, f"{name}-c", f"{name}-r", f"{name}-x")]
    gone = await admin.ask("DeleteTopics", 6, {"Topics": rows, "TimeoutMs": 5000})
    if any(row["ErrorCode"] == NONE for row in gone["Responses"]):
        await asyncio.sleep(1)
    return kind(name, run.address, run.versions, await make_topics(admin, names), admin)


async def share_lab(name: str, run: Recorder, admin: Client) -> Lab:
    return await own_topics_lab(name, run, admin, ShareLab)


async def streams_lab(name: str, run: Recorder, admin: Client) -> Lab:
    return await own_topics_lab(name, run, admin, StreamsLab)


def own_topics_head(lab: Lab, given: argparse.Namespace) -> Head:
    return group_head(lab, given) | {"configs": lab.configs}


async def transaction_lab(name: str, run: Recorder, admin: Client) -> TxnLab:
    lab = TxnLab(name, run.address, run.versions, admin)
    await make_topics(admin, {lab.topic: 3})
    return lab


def transaction_head(lab: TxnLab, given: argparse.Namespace) -> Head:  # noqa: ARG001
    return {"topics": {lab.topic: 3} | ({lab.denied: 3} if lab.denied else {}), "denied": lab.denied}


class Suite(NamedTuple):
    """make: a script's lab; head: what its first line says beside the names; at_once: scripts beside each other."""

    make: Callable[[str, Recorder, Client], Awaitable[Any]]
    head: Callable[[Any, argparse.Namespace], Head]
    ready: Callable[[Client], Awaitable[None]]
    at_once: int


SUITES = {
    "coordinator": Suite(group_lab, group_head, ready, 8),
    "transactions": Suite(transaction_lab, transaction_head, transactions_ready, 4),
    "share": Suite(
        lambda name, run, admin: own_topics_lab(name, run, admin, ShareLab), own_topics_head, share_ready, 3
    ),
    "streams": Suite(lambda name, run, admin: own_topics_lab(name, run, admin, StreamsLab), own_topics_head, ready, 4),
}


def scripts(suite: str) -> dict[str, Any]:
    """Every script by its name, in the order of the files."""
    found: dict[str, Any] = {}
    for path in sorted((HERE / f"{suite.removesuffix('s')}_scripts").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= getattr(module, "SCRIPTS", {})
        for name, value in vars(module).items():
            if inspect.iscoroutinefunction(value) and value.__module__ == path.stem and not name.startswith("_"):
                found[name.replace("_", "-")] = value
    return found


class Recorder:
    """Plays scripts and writes what came of them."""

    def __init__(self, given: argparse.Namespace) -> None:
        host, _, port = given.broker.rpartition(":")
        self.address, self.given, self.suite = (host, int(port)), given, SUITES[given.suite]
        self.failed: list[str] = []
        self.limit = asyncio.Semaphore(self.suite.at_once)

    async def run(self, chosen: dict[str, Any]) -> None:
        admin = await Client.connect("recorder", self.address)
        self.versions = await versions_of(admin)
        first = chosen.pop("no-offsets-topic", None)
        if first is not None and not await offsets_topic(admin):
            await self.play("no-offsets-topic", first)
        await self.suite.ready(admin)
        await asyncio.gather(*(self.play(name, script) for name, script in chosen.items()))

    async def play(self, name: str, script: Any) -> None:
        async with self.limit:
            admin = await Client.connect("recorder", self.address)
            lab = None
            try:
                lab = await self.suite.make(name, self, admin)
                lab.begun = time.monotonic()
                await script(lab)
            except (NotOffered, kwire.EncodeError) as error:
                print(f"{name}: left out: {error}")
                return
            except (AssertionError, KeyError, TimeoutError, OSError) as error:
                self.failed.append(f"{name}: {type(error).__name__}: {error}")
                return
            finally:
                if lab is not None:
                    await lab.close()
                admin.writer.close()
            what = " ".join((script.__doc__ or "").split())
            self.write(name, {"script": name, "what": what, "broker": self.given.version}, lab)

    def write(self, name: str, head: Head, lab: Any) -> None:
        """The header line, then a line a step."""
        rows = [head | self.suite.head(lab, self.given), *lab.steps]
        path = FIXTURES / self.given.suite / f"{name}.{self.given.version}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        print(f"{path.name}: {len(lab.steps)} steps in {lab.now_ms() / 1000:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--broker", metavar="HOST:PORT", required=True)
    parser.add_argument("--version", required=True, help="the broker's release, as 4.3.1")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting for the header")
    parser.add_argument("names", metavar="NAME", nargs="*")
    given = parser.parse_intermixed_args()
    known = scripts(given.suite)
    for name in given.names:
        if name not in known:
            parser.error(f"no script {name}; there are {', '.join(known)}")
    recorder = Recorder(given)
    asyncio.run(recorder.run({name: known[name] for name in given.names or known}))
    for line in recorder.failed:
        print(f"not recorded: {line}", file=sys.stderr)
    sys.exit(1 if recorder.failed else 0)


if __name__ == "__main__":
    main()
