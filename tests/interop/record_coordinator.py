"""Plays scripts of group requests to a real broker and keeps its answers: fixtures/coordinator/NAME.VERSION.jsonl.gz.

    python tests/interop/record_coordinator.py --broker 127.0.0.1:9092 --version 4.3.1 [--set KEY=VALUE]... [NAME]...

A script is an async function of a module in coordinator_scripts/; its name is the group's, its docstring says what it
shows. Scripts run beside each other; those that the broker cannot play (an API or a version that it lacks) are named.
A broker just started with the properties of fixtures/README.md is expected. Needs no Java itself; about a minute.
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
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from coordinator_lab import Client, Lab, NotOffered, topic_row  # noqa: E402

import kwire  # noqa: E402

OUT = HERE.parents[1] / "fixtures" / "coordinator"
TOPICS = {"orders": 4, "payments": 3}
AT_ONCE = 8
NONE, GROUP_ID_NOT_FOUND = 0, 69
Script = Callable[[Lab], Awaitable[None]]


def scripts() -> dict[str, Script]:
    """Every script by its name, in the order of the files."""
    found: dict[str, Script] = {}
    for path in sorted((HERE / "coordinator_scripts").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, value in vars(module).items():
            if inspect.iscoroutinefunction(value) and value.__module__ == path.stem and not name.startswith("_"):
                found[name.replace("_", "-")] = value
    return found


async def versions_of(admin: Client) -> dict[str, tuple[int, int]]:
    from kwire.schema.registry import builtin

    known = set(builtin().keys())
    rows = (await admin.ask("ApiVersions", 0, {}))["ApiKeys"]
    return {
        builtin().api(row["ApiKey"]).name: (row["MinVersion"], row["MaxVersion"])
        for row in rows
        if row["ApiKey"] in known
    }


async def topics_of(admin: Client) -> dict[str, dict[str, Any]]:
    """The topics that scripts use, made when they are not there."""
    wanted = [{"Name": name, "NumPartitions": count, "ReplicationFactor": 1} for name, count in TOPICS.items()]
    await admin.ask("CreateTopics", 7, {"Topics": wanted, "TimeoutMs": 5000})
    await asyncio.sleep(1)
    asked = {"Topics": [{"Name": name} for name in TOPICS], "AllowAutoTopicCreation": False}
    rows = (await admin.ask("Metadata", 12, asked))["Topics"]
    return {row["Name"]: {"uuid": row["TopicId"], "partitions": len(row["Partitions"])} for row in rows}


async def offsets_topic(admin: Client) -> bool:
    """Whether the broker has its __consumer_offsets."""
    asked = {"Topics": [{"Name": "__consumer_offsets"}], "AllowAutoTopicCreation": False}
    return bool((await admin.ask("Metadata", 12, asked))["Topics"][0]["ErrorCode"] == NONE)


async def make_offsets_topic(admin: Client) -> None:
    for _ in range(40):
        asked = {"KeyType": 0, "CoordinatorKeys": ["any"]}
        found = (await admin.ask("FindCoordinator", 4, asked))["Coordinators"][0]
        if found["ErrorCode"] == 0:
            await asyncio.sleep(1)  # until every partition is loaded
            return
        await asyncio.sleep(0.25)
    raise SystemExit("no coordinator")


class Recorder:
    """Plays scripts and writes what came of them."""

    def __init__(self, given: argparse.Namespace) -> None:
        host, _, port = given.broker.rpartition(":")
        self.address = (host, int(port))
        self.given = given
        self.failed: list[str] = []
        self.limit = asyncio.Semaphore(AT_ONCE)

    async def run(self, chosen: dict[str, Script]) -> None:
        self.admin = await Client.connect("recorder", self.address)
        self.lock = asyncio.Lock()
        self.versions, self.topics = await versions_of(self.admin), await topics_of(self.admin)
        first = chosen.pop("no-offsets-topic", None)
        if first is not None and not await offsets_topic(self.admin):
            await self.play("no-offsets-topic", first)
        await make_offsets_topic(self.admin)
        await asyncio.gather(*(self.play(name, script) for name, script in chosen.items()))

    async def play(self, name: str, script: Script) -> None:
        async with self.limit:
            admin = await Client.connect("recorder", self.address)
            lab = Lab(name, self.address, self.versions, self.topics, admin)
            if name != "no-offsets-topic":
                old = (await admin.ask("DeleteGroups", 2, {"GroupsNames": [name]}))["Results"][0]
                if old["ErrorCode"] not in (NONE, GROUP_ID_NOT_FOUND):
                    self.failed.append(f"{name}: the group of an earlier run is there yet: error {old['ErrorCode']}")
                    return
            lab.begun = time.monotonic()
            try:
                await script(lab)
            except (NotOffered, kwire.EncodeError) as error:
                print(f"{name}: left out: {error}")
                return
            except (AssertionError, KeyError, TimeoutError, OSError) as error:
                self.failed.append(f"{name}: {type(error).__name__}: {error}")
                return
            finally:
                await lab.close()
                admin.writer.close()
            self.write(name, script, lab)

    def write(self, name: str, script: Script, lab: Lab) -> None:
        """The header line, then a line a step."""
        topics: dict[str, Any] = {}
        for topic, row in self.topics.items():
            topics |= topic_row(topic, row["uuid"], row["partitions"])
        settings = {key: int(value) for key, _, value in (pair.partition("=") for pair in self.given.set)}
        what = " ".join((script.__doc__ or "").split())
        head = {"script": name, "what": what, "broker": self.given.version, "settings": settings | lab.settings}
        rows = [head | {"topics": topics, "denied": lab.denied}, *lab.steps]
        path = OUT / f"{name}.{self.given.version}.jsonl.gz"
        with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        print(f"{path.name}: {len(lab.steps)} steps in {lab.now_ms() / 1000:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", metavar="HOST:PORT", required=True)
    parser.add_argument("--version", required=True, help="the broker's release, as 4.3.1")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting for the header")
    parser.add_argument("names", metavar="NAME", nargs="*")
    given = parser.parse_args()
    known = scripts()
    for name in given.names:
        if name not in known:
            parser.error(f"no script {name}; there are {', '.join(known)}")
    OUT.mkdir(exist_ok=True)
    recorder = Recorder(given)
    asyncio.run(recorder.run({name: known[name] for name in given.names or known}))
    for line in recorder.failed:
        print(f"not recorded: {line}", file=sys.stderr)
    sys.exit(1 if recorder.failed else 0)


if __name__ == "__main__":
    main()
