"""A broker for programs without a loop of their own: it runs in a thread, and every call here is a plain one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from kwire.broker.context import Happening, Seen, Settings
from kwire.broker.faults import Control, Faults, Hook
from kwire.broker.producers import Aborted
from kwire.broker.recorder import Recorder
from kwire.broker.server import Server
from kwire.broker.thread import LoopThread
from kwire.errors import KwireError
from kwire.outputs import Output
from kwire.records import Record, read_records


class Broker:
    """A broker on loopback, in memory, for a with block: Kafka enough for real clients, failing where it is told to.

    topics: name to number of partitions; others are created when they are first named. faults: rules as kwire broker
    --fault takes them. users: name to password, with SASL PLAIN and SCRAM. super_users: an authorizer, for whom
    all others need ACLs. tls: with a certificate of its own, see
    certificate. capture: a file, pcapng; one that exists is overwritten. settings: what else there is, see
    kwire.broker.context.Settings. Raises KwireError for a rule that does not parse, OSError for a port that is taken.
    """

    def __init__(
        self,
        *,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        faults: Iterable[str] = (),
        users: Mapping[str, str] | None = None,
        super_users: Iterable[str] | None = None,
        tls: bool = False,
        capture: str | Path | Output | None = None,
        era: tuple[int, int] | None = None,
        port: int = 0,
        settings: Settings | None = None,
    ) -> None:
        self.settings = replace(
            settings or Settings(),
            nodes=nodes,
            port=port,
            topics=tuple((topics or {}).items()),
            users=tuple((users or {}).items()),
            super_users=None if super_users is None else tuple(super_users),
            tls=tls,
            era=era,
        )
        self.faults = Faults()
        for rule in faults:
            self.faults.add(rule)
        self.certificate: str | None = None
        self._output = Output(capture, private=True) if isinstance(capture, str | Path) else capture
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.thread = LoopThread("kwire broker")
        self._server: Server | None = None

    # ------------------------------------------------------------ life

    def start(self) -> Broker:
        """Listens; returns when clients can connect."""
        context = None
        if self.settings.tls and not self.thread.running:
            from kwire.broker.tls import context as make

            context, self.certificate = make(self.settings.host)

        async def begin() -> Server:
            recorder = Recorder(self._output, limit=self.settings.limits.capture) if self._output else None
            self._server = Server(self.settings, self.faults, recorder, context)
            await self._server.start()
            return self._server

        self.thread.start(begin)
        return self

    def stop(self) -> None:
        """Closes every connection and the ports; what was logged and what happened stays to be looked at."""
        self.thread.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Broker:
        return self if self.thread.running else self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ------------------------------------------------------------ where

    @property
    def address(self) -> str:
        """host:port of the first node, for bootstrap.servers."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """host:port of every node."""
        return [str(node) for node in self.server.state.cluster.nodes.values()]

    @property
    def certificate_file(self) -> str:
        """The certificate as a file, for ssl.ca.location and the like; it is gone after stop()."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
            Path(self._folder.name, "kwire.pem").write_text(self.certificate or "")
        return str(Path(self._folder.name, "kwire.pem"))

    # ------------------------------------------------------------ what

    def fault(self, rule: str) -> None:
        """Adds a rule. Raises KwireError."""
        self.faults.add(rule)

    def control(self, api: str, hook: Hook) -> Control:
        """hook sees each request of an API ("any": of all) in the broker's thread; its request has api, version,
        client_id and body. It gives None to go on, a body as the answer, or a rule's actions as text: "error=NAME",
        "delay=1s", "cut". remove() of what comes back takes it away. Raises UnknownName."""
        return self.faults.control(api, hook)

    def events(self, kind: str | None = None) -> list[Happening]:
        """What has happened: connections, logins, topics, faults, and everything with groups."""
        found = self.thread.call(lambda: list(self.server.state.happenings))
        return [event for event in found if kind is None or event.kind == kind]

    def requests(self, api: str | None = None) -> list[Seen]:
        """The requests that came, the newest 5,000."""
        found = self.thread.call(lambda: list(self.server.state.requests))
        return [seen for seen in found if api is None or seen.api == api]

    def log(self, topic: str, partition: int = 0, *, committed: bool = False) -> list[Record]:
        """What stands in a partition, decoded, without markers; committed: only what read_committed shows. Raises
        KwireError for one that is not there."""

        def read() -> tuple[list[bytes], list[Aborted]]:
            found = self.server.state.cluster.topics.get(topic)
            if found is None or not 0 <= partition < len(found.partitions):
                raise KwireError(f"no partition {topic}-{partition}")
            log = found.partitions[partition].log
            until = log.stable if committed else log.end
            aborted = log.producers.aborted_between(log.start, until) if committed else []
            return log.read(log.start, 1 << 62, whole_first=True, until=until), aborted

        data, aborted = self.thread.call(read)
        return [
            record
            for batch in read_records(b"".join(data))
            if not batch.is_control
            and not any(
                each.producer == batch.producer_id and each.first <= batch.base_offset <= each.last for each in aborted
            )
            for record in batch.records
        ]

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Raises KwireError."""
        from kwire.broker.codes import Refused

        try:
            self.thread.call(lambda: self.server.state.create(name, partitions))
        except Refused as refused:
            raise KwireError(refused.why) from None

    @property
    def server(self) -> Server:
        """Raises KwireError before start()."""
        if self._server is None:
            raise KwireError("this broker has not been started")
        return self._server
