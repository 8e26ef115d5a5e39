"""The tables of a report that count: APIs, clients and what they speak, brokers, topics, errors. The busiest rows are
in the page, and how many there would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.analyze.measures import Measure
from kwire.analyze.stats import NO_CLIENT, OTHERS
from kwire.analyze.work import HELD_APIS
from kwire.render.exchanges import took
from kwire.render.report.commands import Option
from kwire.render.report.material import Material
from kwire.render.report.plots import spark
from kwire.render.report.sheets import Cell, Column, Sheet, SheetRow
from kwire.render.stats import bytes_text
from kwire.session.record import START_UP, error_name

ROWS, PAIRS = 300, 1000  # of a table, and of clients × APIs × versions
SPARKS, PARTS = 60, 60  # rows with a small picture, and its slots
MEASURED = [
    Column("exchanges", True), Column("bytes", True), Column("errors", True), Column("no answer", True),
    Column("p50", True), Column("p99", True), Column("max", True),
]  # fmt: skip
HELD, SPARK = Column("held", True), Column("over time")
MS = 1_000_000  # ns


def apis_sheet(material: Material) -> Sheet:
    """APIs by version."""

    def options(name: str) -> list[Option]:
        api = name.split(" ")[0]
        return [("--api", api)] if api not in ("unknown", "SASL") else []

    return _measured(material, "apis", "APIs by version", "API", material.stats.apis, options)


def brokers_sheet(material: Material) -> Sheet:
    """Brokers by address."""
    return _measured(
        material, "brokers", "Brokers", "broker", material.stats.brokers, lambda name: [("--broker", name)]
    )


def topics_sheet(material: Material) -> Sheet:
    """Topics; an exchange about several counts for each."""
    title = "Topics (an exchange about several counts for each)"
    return _measured(material, "topics", title, "topic", material.stats.topics, lambda name: [("--topic", name)])


def _measured(
    material: Material, name: str, title: str, head: str, group: dict[str, Measure],
    options: Callable[[str], Sequence[Option]],
) -> Sheet:  # fmt: skip
    ordered = sorted(group.items(), key=lambda item: (-item[1].count, item[0]))
    apis, rows = head == "API", []
    columns = [Column(head), *MEASURED, *([] if apis else [HELD]), SPARK]
    for at, (text, measure) in enumerate(ordered[: material.most(ROWS)]):
        given = list(options(text)) if text != OTHERS else []
        command = material.commands("read", *given) if given else material.commands("stats", ("--all", ""))
        kept = apis and text.split(" ")[0] in HELD_APIS
        cells = _cells(material, measure, bool(given), at, apis)
        rows.append(SheetRow([Cell(text + (" *" if kept else "")), *cells], command))
    return Sheet(name, title, columns, rows, len(ordered), material.commands("stats", ("--all", "")))


def _cells(material: Material, measure: Measure, leads: bool, at: int, apis: bool) -> list[Cell]:
    """What is measured, in the order of the columns. leads: whether the row's command can be narrowed; apis: times are
    those of all exchanges, which are of one API, else of those that are not held."""
    errors, size = sum(measure.errors.values()), measure.sent + measure.got
    latencies = measure.latencies if apis else measure.work
    times = [latencies.percentile(0.5), latencies.percentile(0.99), latencies.highest if latencies.count else None]
    slower = [f"--slower {max(time - 1, 0) // 1000}us" if leads and time else "" for time in times]
    first, last = material.stats.first_time or 0, material.stats.last_time
    picture = spark(measure.timeline.over(first, last, PARTS), "exchanges over time") if at < SPARKS else ""
    return [
        Cell(f"{measure.count:,}", measure.count), Cell(bytes_text(size), size),
        Cell(f"{errors:,}" if errors else "", errors, "--errors" if leads else "", "error" if errors else None),
        Cell(f"{measure.unanswered:,}" if measure.unanswered else "", measure.unanswered, "--errors" if leads else ""),
        *(Cell(took(time), time or 0, more) for time, more in zip(times, slower, strict=True)),
        *([] if apis else [Cell(took(measure.held or None), measure.held)]), Cell(picture, measure.count),
    ]  # fmt: skip


def clients_sheet(material: Material) -> Sheet:
    """Clients: who they are, from where, with which login."""
    columns = [
        Column("client id"), Column("software"), Column("from"), Column("connections", True), Column("exchanges", True),
        Column("errors", True), Column("login"), Column("produces"),
    ]  # fmt: skip
    found = sorted(material.clients.all, key=lambda client: (-client.exchanges, *client.names))
    rows = []
    for client in found[: material.most(ROWS)]:
        software = " ".join(filter(None, (client.software, client.software_version)))
        login = ", ".join(sorted(client.mechanisms | client.principals | client.tls))
        addresses = sorted(client.addresses)
        more = f" and {len(addresses) - 3:,} more" if len(addresses) > 3 else ""
        rows.append(SheetRow([
            Cell(NO_CLIENT if client.client_id is None else client.client_id or "(empty)"),
            Cell(software or "not said", style=None if software else "dim"), Cell(", ".join(addresses[:3]) + more),
            Cell(f"{len(client.connections):,}", len(client.connections)),
            Cell(f"{client.exchanges:,}", client.exchanges),
            Cell(f"{client.errors:,}" if client.errors else "", client.errors, "--errors" if client.client_id else "",
                 "error" if client.errors else None),
            Cell(login), Cell(", ".join(client.compressions)),
        ], _of_client(material, client.client_id)))  # fmt: skip
    return Sheet("clients", "Clients", columns, rows, len(found), material.commands("clients"))


def spoken_sheet(material: Material) -> Sheet:
    """Which client speaks which version of which API, and how often."""
    columns = [
        Column("client id"),
        Column("software"),
        Column("API"),
        Column("version", True),
        Column("exchanges", True),
    ]
    found = [
        (count, client, api, version)
        for client in material.clients.all for (api, version), count in client.calls.items()
    ]  # fmt: skip
    found.sort(key=lambda item: (*item[1].names, item[1].keys[item[2]], item[3]))
    rows = [
        SheetRow([
            Cell(NO_CLIENT if client.client_id is None else client.client_id or "(empty)"),
            Cell(" ".join(filter(None, (client.software, client.software_version)))), Cell(api),
            Cell(f"v{version}", version), Cell(f"{count:,}", count),
        ], _of_client(material, client.client_id, ("--api", api)))
        for count, client, api, version in found[: material.most(PAIRS)]
    ]  # fmt: skip
    return Sheet("spoken", "Clients × APIs × versions", columns, rows, len(found), material.commands("clients"))


def _of_client(material: Material, client_id: str | None, *options: Option) -> str:
    given: list[Option] = [("--client-id", client_id)] if client_id else []
    return material.commands("read" if given or options else "clients", *given, *options)


def errors_sheet(material: Material) -> Sheet:
    """Errors over time: each kind with when it came."""
    over = material.over.grouped(PARTS)
    columns = [Column("error"), Column("answers", True), Column("over time"), Column("first", True), Column("usual")]
    usual = {error_name(code) for code in START_UP}
    rows = []
    for name, counts in sorted(over.errors.items(), key=lambda item: (-sum(item[1]), item[0])):
        first = over.start + next((at for at, count in enumerate(counts) if count), 0) * over.length
        given: Option = ("--errors", "") if name.startswith(("no answer", "(")) else ("--error", name)
        rows.append(SheetRow([
            Cell(name), Cell(f"{sum(counts):,}", sum(counts)),
            Cell(spark(counts, f"{name} over time", "error"), sum(counts)),
            Cell(f"{material.diagnosis.clock(first)} s", first), Cell("at start-up" if name in usual else ""),
        ], material.commands("read", given)))  # fmt: skip
    return Sheet("errors", "Errors by kind", columns, rows)


def failures_sheet(material: Material) -> Sheet:
    """Which error met whom on what."""
    columns = [
        Column("error"), Column("API"), Column("client id"), Column("on"), Column("times", True), Column("first", True),
        Column("the broker says"),
    ]  # fmt: skip
    clock = material.diagnosis.clock
    failures = material.stats.failures
    found = failures.most_by_topic()
    rows = [
        SheetRow([
            Cell(error), Cell(api), Cell(client or NO_CLIENT), Cell(subject), Cell(f"{kind.count:,}", kind.count),
            Cell(f"{clock(kind.first.time)} s", kind.first.time), Cell(kind.words),
        ], material.commands("decode", ("--frame", str(kind.first))))
        for (error, api, client, subject), kind in found[: material.most(ROWS)]
    ]  # fmt: skip
    return Sheet("failures", "Which error, for whom, on what", columns, rows, len(found) + failures.unkept,
                 material.commands("stats", ("--errors", "")))  # fmt: skip


def throttled_sheet(material: Material) -> Sheet:
    """Who was told to wait by a quota."""
    columns = [
        Column("client id"), Column("API"), Column("answers", True), Column("longest", True), Column("in all", True)
    ]  # fmt: skip
    found = sorted(material.stats.throttled.items(), key=lambda item: (-item[1].total, item[0]))
    rows = [
        SheetRow([
            Cell(client), Cell(api), Cell(f"{one.count:,}", one.count), Cell(took(one.longest * MS), one.longest),
            Cell(took(one.total * MS), one.total),
        ], _of_client(material, client if client != NO_CLIENT else None, ("--api", api)))
        for (client, api), one in found[: material.most(ROWS)]
    ]  # fmt: skip
    return Sheet("throttled", "Throttled: told to wait by a quota", columns, rows, len(found))
