"""Clients as blocks of a few lines each, the same for every width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from kwire.analyze.client import Client
from kwire.analyze.clients import Clients, Secured
from kwire.counted import counted
from kwire.render.exchanges import clock
from kwire.render.lines import Line, clean, flowing, joined, paragraph

SHOWN = 4  # addresses in a line, at most
GLUE = "\N{NO-BREAK SPACE}"  # keeps an API and its versions in one line


def clients_lines(clients: Clients, width: int) -> list[Line]:
    """A block for each client, then what speaks TLS."""
    lines: list[Line] = []
    for client in clients.found:
        lines += _client(client, width)
        lines.append([])
    for secured in clients.secured:
        lines += _secured(secured, width)
    return lines[:-1] if lines and not lines[-1] else lines


def _client(client: Client, width: int) -> list[Line]:
    name = clean(client.client_id) if client.client_id else "(no client id)"
    software = " ".join(filter(None, (client.software, client.software_version)))
    title: Line = [(name, "title"), (clean(software) if software else "software not said", "value")]
    if client.is_broker:
        title.append(("a broker itself", "note"))
    counts: Line = [
        (f"{counted(client.exchanges, 'exchange')} on {counted(len(client.connections), 'connection')}", "dim"),
        (f"{clock(client.first_time)} to {clock(client.last_time)}", "dim"),
    ]
    if client.errors:
        counts.append((f"{client.errors:,} with errors", "error"))
    rows: list[tuple[str, str]] = [("from", _listed(client.addresses)), ("to", _listed(client.brokers))]
    if client.tls:
        rows.append(("secured", ", ".join(sorted(client.tls))))
    if client.mechanisms or client.principals:
        said = sorted(client.mechanisms | client.principals, key=_mechanisms_first)
        rows.append(("login", ", ".join(map(clean, said))))
    if client.compressions:
        rows.append(("produces", ", ".join(client.compressions)))
    versions = [
        f"{api}{GLUE}v{_ranges(found)}"
        for api, found in sorted(client.versions.items(), key=lambda item: client.keys[item[0]])
    ]
    rows.append(("speaks", ", ".join(versions)))
    lines = flowing(title, width, "  ") + [[("  ", ""), *line] for line in joined(counts, width - 2)]
    for label, text in rows:
        wrapped = textwrap.wrap(text, max(width - 12, 30), break_on_hyphens=False) or [""]
        for number, part in enumerate(wrapped):
            lines.append([(f"  {label if not number else '':<9} ", "head"), (part.replace(GLUE, " "), "")])
    return lines


def _mechanisms_first(text: str) -> tuple[bool, str]:
    return not text.isupper(), text


def _secured(found: Secured, width: int) -> list[Line]:
    name = f" as {clean(found.server_name)}" if found.server_name else ""
    title = (f"TLS  {found.address} → {found.broker}{name}", "title")
    encrypted = found.connections - found.refused
    said = f"{encrypted:,} of {found.connections:,} connections" if found.refused and encrypted else ""
    said = said or counted(found.connections, "connection")
    parts = [title, (f"{said}, encrypted", "dim")] if encrypted else [title, (said, "dim")]
    if found.refused:
        which = f"{found.refused:,}" if encrypted else "each"
        parts.append((f"{which} a ClientHello that got no ServerHello: not encrypted", "error"))
    lines = flowing(parts, width, "  ")
    for text, count in found.facts.items():
        times = f" ({counted(count, 'time')})" if count < found.connections else ""
        lines += paragraph(f"{clean(text)}{times}", width, "  ", "dim", "    ", breaks=True)
    for text, count in found.findings.items():
        lines += paragraph(f"{clean(text)} ({counted(count, 'time')})", width, "  ", "error", "    ", breaks=True)
    for text, count in found.alerts.items():
        lines += paragraph(f"{clean(text)} ({counted(count, 'time')})", width, "  ", "error", "    ", breaks=True)
    return lines


def _listed(names: Iterable[str]) -> str:
    known = sorted(names)
    more = f" and {len(known) - SHOWN:,} more" if len(known) > SHOWN else ""
    return ", ".join(known[:SHOWN]) + more


def _ranges(versions: set[int]) -> str:
    """As 3, or 3,5-7."""
    parts: list[list[int]] = []
    for version in sorted(versions):
        if parts and version == parts[-1][-1] + 1:
            parts[-1].append(version)
        else:
            parts.append([version])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
