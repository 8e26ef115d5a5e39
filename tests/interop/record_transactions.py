"""Plays scripts of transactional requests to a real broker and keeps its answers: fixtures/transactions/NAME.VERSION.

    python tests/interop/record_transactions.py --broker 127.0.0.1:9092 --version 4.3.1 [NAME]...

A script is an async function of a module in transaction_scripts/; its docstring says what it shows. Scripts that the
broker cannot play (an API or a version that it lacks) are named. A broker just started is expected, with
transaction.abort.timed.out.transaction.cleanup.interval.ms=200 and, for `denied`, super.users=User:admin. About two
minutes, most of it for epochs that run out.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from coordinator_lab import Client, NotOffered  # noqa: E402
from record_coordinator import make_offsets_topic, versions_of  # noqa: E402
from transaction_lab import RETRIED, TxnLab  # noqa: E402

import kwire  # noqa: E402

OUT = HERE.parents[1] / "fixtures" / "transactions"
AT_ONCE = 4


def scripts() -> dict[str, Any]:
    """Every script by its name, in the order of the files."""
    found: dict[str, Any] = {}
    for path in sorted((HERE / "transaction_scripts").glob("*.py")):
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


async def ready(admin: Client) -> None:
    """Waits until both coordinators answer."""
    await make_offsets_topic(admin)
    asked = {"TransactionalId": "warm-up", "TransactionTimeoutMs": 1000}
    for _ in range(100):
        await admin.ask("FindCoordinator", 4, {"KeyType": 1, "CoordinatorKeys": ["warm-up"]})
        if (await admin.ask("InitProducerId", 4, asked))["ErrorCode"] not in RETRIED:
            await asyncio.sleep(1)
            return
        await asyncio.sleep(0.2)
    raise SystemExit("no transaction coordinator")


async def play(name: str, script: Any, given: argparse.Namespace, address: tuple[str, int]) -> str:
    """Why it was not recorded, "" if it was."""
    admin = await Client.connect("recorder", address)
    lab = TxnLab(name, address, await versions_of(admin), admin)
    topic = {"Name": lab.topic, "NumPartitions": 3, "ReplicationFactor": 1}
    await admin.ask("CreateTopics", 7, {"Topics": [topic], "TimeoutMs": 5000})
    await asyncio.sleep(0.5)
    lab.begun = time.monotonic()
    try:
        await script(lab)
    except (NotOffered, kwire.EncodeError) as error:
        print(f"{name}: left out: {error}")
        return ""
    except (AssertionError, KeyError, TimeoutError, OSError) as error:
        return f"{name}: {type(error).__name__}: {error}"
    finally:
        await lab.close()
        admin.writer.close()
    head = {"script": name, "what": " ".join((script.__doc__ or "").split()), "broker": given.version}
    path = OUT / f"{name}.{given.version}.jsonl.gz"
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        topics = {lab.topic: 3} | ({lab.denied: 3} if lab.denied else {})
        for row in [head | {"topics": topics, "denied": lab.denied}, *lab.steps]:
            out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    print(f"{path.name}: {len(lab.steps)} steps in {lab.now_ms() / 1000:.1f} s", flush=True)
    return ""


async def record(given: argparse.Namespace, chosen: dict[str, Any]) -> list[str]:
    host, _, port = given.broker.rpartition(":")
    address = (host, int(port))
    await ready(await Client.connect("recorder", address))
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, script: Any) -> str:
        async with limit:
            return await play(name, script, given, address)

    return [line for line in await asyncio.gather(*(one(*each) for each in chosen.items())) if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", metavar="HOST:PORT", required=True)
    parser.add_argument("--version", required=True, help="the broker's release, as 4.3.1")
    parser.add_argument("names", metavar="NAME", nargs="*")
    given = parser.parse_args()
    known = scripts()
    for name in given.names:
        if name not in known:
            parser.error(f"no script {name}; there are {', '.join(known)}")
    OUT.mkdir(exist_ok=True)
    failed = asyncio.run(record(given, {name: known[name] for name in given.names or known}))
    for line in failed:
        print(f"not recorded: {line}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
