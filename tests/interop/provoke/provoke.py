"""Troubles provoked with real brokers and real clients, each recorded with a healthy twin: the same program, the
trouble taken away.

    provoke.py -o fixtures/doctor                    # all of them; as root, for tcpdump
    provoke.py -o fixtures/doctor commit-storm …     # these

Every scenario leaves NAME.pcap and NAME-healthy.pcap (.gz above 60 KB), and a line each in truth.json: what happened,
when, to whom, as the program that provoked it knows it. Brokers are the lab's (see cluster.py); needs
confluent-kafka, kafka-python and aiokafka.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import clusters
import consuming
import groups
import latency
import membership
import producing
import protocols
import refusals
import transactions
from cluster import Cluster, Recorder
from latency import FarCluster
from protocols import TlsCluster
from scenarios import Scenario, Stage
from wan import DEVICE, Wan

SCENARIOS: dict[str, Scenario] = {}
for module in (consuming, producing, transactions, refusals, groups, membership, protocols, latency, clusters):
    SCENARIOS |= module.SCENARIOS
PACKED = 60_000  # bytes from which a capture is gzipped


def record(name: str, scenario: Scenario, sick: bool, cluster: Cluster, out: Path) -> None:
    """One capture of a scenario, and its line of truth."""
    label = name if sick else f"{name}-healthy"
    stage = Stage(label, sick, cluster)
    scenario.prepare(stage)
    plain = out / f"{label}.pcap"
    begun = time.time()
    ports = list(scenario.only or (*cluster.ports, *scenario.ports))
    interface, inside = (DEVICE, Wan.inside) if isinstance(cluster, FarCluster) else ("lo", ())
    snaplen = scenario.snaplen if sick else 0
    with Recorder(plain, ports, interface, inside, snaplen):
        scenario.play(stage)
    vars(stage).pop("admin", None)  # which would go on asking in what is recorded next
    packed = out / f"{label}.pcap.gz"
    packed.unlink(missing_ok=True)
    if plain.stat().st_size > PACKED:
        packed.write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
        plain.unlink()
    size = (packed if packed.exists() else plain).stat().st_size
    print(f"{label}: {time.time() - begun:.0f} s, {size:,} bytes, {len(stage.truth)} facts", flush=True)
    truths = out / "truth.json"
    known: dict[str, Any] = json.loads(truths.read_text()) if truths.exists() else {}
    known[label] = {"what": scenario.what(), "broker": cluster.release, "found": stage.truth}
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(known.items()))
    truths.write_text(f"{{\n{rows}\n}}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", choices=[*SCENARIOS, []])
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder of the captures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    alike: dict[str, list[str]] = defaultdict(list)  # scenarios that one cluster serves
    for name in given.names or SCENARIOS:
        scenario = SCENARIOS[name]
        alike[name if scenario.alone else json.dumps(scenario.cluster, default=str)].append(name)
    failed = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers end too
    with tempfile.TemporaryDirectory(prefix="provoke-") as folder:
        for names in alike.values():
            for sick in (True, False)[SCENARIOS[names[0]].healthy_only :]:
                options = SCENARIOS[names[0]].cluster | ({} if sick else SCENARIOS[names[0]].well)
                made = FarCluster if options.pop("far", False) else TlsCluster if options.pop("tls", False) else Cluster
                cluster = made(Path(folder, "cluster"), **options)
                try:
                    cluster.start()
                    for name in names:
                        try:
                            record(name, SCENARIOS[name], sick, cluster, given.out)
                        except Exception as wrong:  # the others go on
                            failed.append(f"{name}: {type(wrong).__name__} {wrong}")
                            print(failed[-1], flush=True)
                finally:
                    cluster.stop()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
