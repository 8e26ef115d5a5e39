"""What others put where kwire writes, and texts that whoever reads its output might obey.

ATTACKS: name → maker(folder, scale).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from packetsmade import asked, pcap, request, talk, times

HARM = (b"=HYPERLINK(1)", b"\t@SUM(1)", b"\r-1", b"<b>[x](http://e.example)", b"\x1b]52;c;AAAA\x07", b"`" * 200)


def parts_in_the_folder(folder: Path, scale: float) -> list[str]:
    """Files that look like what a killed run left, all of which the next one looks at."""
    capture = pcap(folder / "x.pcap", talk())
    for number in range(times(50_000, scale)):
        (folder / f".kwire-{number:016x}.part").touch()
    return ["read", str(capture), "-w", str(folder / "out.pcapng")]


def harm(folder: Path, scale: float) -> Path:
    """Requests whose client ids are formulas, controls, links and marks."""
    asks = [request(18, 0, ident, b"", HARM[ident % len(HARM)] * 10) for ident in range(times(30_000, scale))]
    return pcap(folder / "x.pcap", [*talk(), *asked(asks)])


def formulas_as_csv(folder: Path, scale: float) -> list[str]:
    query = "select client_id, error from exchanges"
    return ["sql", str(harm(folder, scale)), query, "-o", str(folder / "out.csv")]


def formulas_as_tables(folder: Path, scale: float) -> list[str]:
    return ["table", str(harm(folder, scale)), "--format", "csv", "-o", str(folder / "out")]


def links_as_markdown(folder: Path, scale: float) -> list[str]:
    query = "select client_id, error from exchanges"
    return ["sql", str(harm(folder, scale)), query, "-o", str(folder / "out.md")]


def names_that_differ(folder: Path, scale: float) -> list[str]:
    """Two captures, every request of each by a client of its own, to be compared."""
    sides = []
    for side in (b"a", b"b"):
        asks = [request(18, 0, ident, b"", b"%s-%d" % (side, ident)) for ident in range(times(20_000, scale))]
        sides.append(str(pcap(folder / f"{side.decode()}.pcap", [*talk(), *asked(asks)])))
    return ["diff", *sides]


ATTACKS: dict[str, Callable[[Path, float], list[str]]] = {
    maker.__name__.replace("_", " "): maker
    for maker in (parts_in_the_folder, formulas_as_csv, formulas_as_tables, links_as_markdown, names_that_differ)
}
