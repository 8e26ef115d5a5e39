"""Configurations that are taken, as a real broker takes them, and change nothing here; each with the reason.

DescribeConfigs tells the reason as the configuration's documentation.
"""

from __future__ import annotations

TIERED = "Changes nothing: there is no remote log storage, as on a broker without remote.log.storage.system.enable."
THREADS = "Changes nothing: one thread serves all connections."
FILES = "Is about the log's files, so it counts with --data only."

IDLE = {
    "local.retention.bytes": TIERED,
    "local.retention.ms": TIERED,
    "num.io.threads": THREADS,
    "num.network.threads": THREADS,
    "remote.log.copy.disable": TIERED,
    "remote.log.delete.on.disable": TIERED,
    "remote.storage.enable": TIERED,
}
OF_FILES = (
    "file.delete.delay.ms", "flush.messages", "flush.ms", "index.interval.bytes", "preallocate", "segment.index.bytes",
)  # fmt: skip
NOTES = IDLE | dict.fromkeys(OF_FILES, FILES)
