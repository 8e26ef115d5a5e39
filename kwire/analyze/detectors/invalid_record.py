"""Records that the broker does not take, with its own words for why.

Sees INVALID_RECORD (87), CORRUPT_MESSAGE (2), INVALID_TIMESTAMP (32) and UNSUPPORTED_FOR_MESSAGE_FORMAT (43) in answers
to Produce; from version 8 on the answer names the records and says why (KIP-467; LogValidator)."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import PRODUCE

ADVICE = {
    codes.INVALID_RECORD: (
        "A compacted topic takes no record without a key; broker interceptors and schema checks refuse with it too."
    ),
    codes.CORRUPT_MESSAGE: (
        "The bytes changed on their way, or the client made a wrong checksum: see capture-quality, then the client."
    ),
    codes.INVALID_TIMESTAMP: (
        "The record's time is too far from the broker's clock: message.timestamp.before.max.ms and .after.max.ms."
    ),
    43: "The topic's format is older than what the records use: headers, transactions and idempotence need magic 2.",
}


class Invalid(Watch):
    def findings(self) -> Iterator[Finding]:
        for trouble in self.case.troubles.of(*ADVICE):
            fact = trouble.fact
            if fact.key != PRODUCE:
                continue
            place = f"{fact.about.get('topic', '?')}-{fact.about.get('partition', '?')}"
            who = fact.client_id or f"a client at {fact.host}"
            what = f"{who} was refused {counted(trouble.count, 'batch', 'batches')} for {place}: {fact.error}"
            yield Finding(
                "error", what, tuple(trouble.samples), ADVICE[fact.code], time=fact.time, last=trouble.last.time,
                about=trouble.about | {"api": fact.api}, count=trouble.count, words=trouble.words,
            )  # fmt: skip


DETECTOR = Detector(
    "records that the broker refuses",
    watch=Invalid,
    fields="Produce: ErrorCode 2, 32, 43, 87 of a partition, RecordErrors and ErrorMessage",
    source="KIP-467; org.apache.kafka.storage.internals.log.LogValidator",
    means="One record is not valid for its topic, and the broker refuses the whole batch for it.",
    proof="The answer's element of the partition; RecordErrors names the record in the batch.",
    advice="What the broker says is the reason: read its words first.",
)
