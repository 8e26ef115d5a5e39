"""Slices of captures: what is kept reads as in the whole, with the same names, numbers and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.capture.files import open_capture
from kwire.session.reading import Reading

FOLDER = Path(__file__).parents[2] / "fixtures" / "captures"
FILES = sorted(path for path in FOLDER.glob("*.pcap*") if path.name not in ("notkafka.pcap", "tls.pcap"))
every = pytest.mark.parametrize("path", FILES, ids=[path.name.split(".")[0] for path in FILES])
FILTERS = [
    ("--errors",), ("--api", "Fetch"), ("--api", "Heartbeat", "--api", "OffsetCommit"), ("--slower", "50ms"),
    ("--from", "3", "--to", "6"), ("--api", "Metadata"), ("--id", "5"), ("--topic", "*"),
]  # fmt: skip


def rows(text: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    other = {"capture": "", "packet": 0, "last_packet": 0}  # a slice has numbers of its own
    return {(row["connection"], row["kind"], row["index"]): row | other for row in found}


def told(path: Path | str, wanted: set[tuple[str, str, int]]) -> list[tuple[Any, ...]]:
    """Of exchanges what their lines say: topics, software, principal."""
    out = []
    for exchange in Reading([path], tracking=True).exchanges():
        first, identity, about = exchange.first, exchange.connection.identity, exchange.about
        if (exchange.connection.name, first.kind, first.index) in wanted:
            said = identity.software, identity.software_version, identity.mechanism, identity.principal
            out.append((exchange.connection.name, first.index, about.topics, about.groups, about.words, said))
    return sorted(out, key=lambda row: row[:2])


@every
@pytest.mark.parametrize("options", FILTERS, ids=" ".join)
def test_what_is_kept_reads_as_in_the_whole(path: Path, options: tuple[str, ...], kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "slice.pcapng"
    wanted = rows(kwire("read", str(path), *options, "--format", "json").text)
    kwire("read", str(path), *options, "-w", str(target))
    if not wanted:
        pytest.skip("nothing is wanted of this one")
    ran = kwire("read", str(target), "--format", "json")
    found = rows(ran.text)
    for row in wanted.values():
        if (row["note"] or "").startswith("no answer: "):  # it may be that what came later is left out
            row["note"] = found[row["connection"], row["kind"], row["index"]]["note"]
    assert {key: found.get(key) for key in wanted} == wanted
    assert told(target, set(wanted)) == told(path, set(wanted))
    text = kwire("read", str(target)).text
    whole = kwire("read", str(path)).text
    assert text.count(" skipped at position ") <= whole.count(" skipped at position ")


@pytest.mark.parametrize(
    ("name", "api"), [("consumer848.pcap", "Fetch"), ("share.pcap", "ShareFetch"), ("txn.pcap.gz", "Produce")]
)
def test_without_context_ids_have_no_names(name: str, api: str, kwire: Any, tmp_path: Path) -> None:
    with_it, bare = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    ran = kwire("read", str(FOLDER / name), "--api", api, "-w", str(with_it))
    assert "for context (--bare leaves them out)" in ran.err
    ran = kwire("read", str(FOLDER / name), "--api", api, "--bare", "-w", str(bare))
    assert "--bare" not in ran.err
    assert {each.api for each in Reading([bare]).exchanges()} == {api}
    assert {"ApiVersions", api} < {each.api for each in Reading([with_it]).exchanges()}
    sizes = [sum(map(len, open_capture(path).blocks())) for path in (bare, with_it)]
    assert sizes[0] < sizes[1]


def test_a_slice_says_that_it_is_one(kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "slice.pcapng"
    kwire("read", str(FOLDER / "classic.pcap.gz"), "--api", "Heartbeat", "-w", str(target))
    ran = kwire("read", str(target))
    assert " bytes left out of this slice\n" in ran.err
    assert "missing" not in ran.err
    assert "bytes missing" not in kwire("stats", str(target)).text
    comments = [cut for block in open_capture(target).blocks() for cut in block.cuts.values()]
    assert len(comments) > 10


def test_a_slice_of_a_slice_is_one_of_the_whole(kwire: Any, tmp_path: Path) -> None:
    whole, first, second, direct = (str(FOLDER / "classic.pcap.gz"), *(str(tmp_path / f"{n}.pcapng") for n in "abc"))
    kwire("read", whole, "--client-id", "classic-c1", "-w", first)
    kwire("read", first, "--api", "Heartbeat", "-w", second)
    kwire("read", whole, "--client-id", "classic-c1", "--api", "Heartbeat", "-w", direct)
    assert rows(kwire("read", second, "--format", "json").text) == rows(kwire("read", direct, "--format", "json").text)


def test_pcap_has_no_room_for_it_and_says_so(kwire: Any, tmp_path: Path) -> None:
    ran = kwire("read", str(FOLDER / "classic.pcap.gz"), "--api", "Heartbeat", "-w", str(tmp_path / "slice.pcap"))
    assert "pcap cannot say what was left out, which reads as lost; pcapng can\n" in ran.err


def test_a_ring_is_sliced(kwire: Any, tmp_path: Path) -> None:
    paths = []
    for folder in "ab":
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "same.pcap.gz")
        paths[-1].write_bytes((FOLDER / "classic.pcap.gz").read_bytes())
    target = tmp_path / "slice.pcapng"
    assert kwire("read", *map(str, paths), "--api", "Heartbeat", "-w", str(target)).status == 0


@every
@pytest.mark.parametrize("feed", ["whole", "midstream"])
def test_a_slice_from_midstream(path: Path, feed: str, kwire: Any, tmp_path: Path) -> None:
    """Captures that begin in the midst of connections: numbers and places are those of what was captured."""
    from kwire.capture.save import PcapWriter

    packets = [
        (int(block.time[at]), bytes(block.buffer[(low := int(block.start[at])) : low + int(block.captured[at])]),
         int(block.length[at]), int(block.link[at]))
        for block in open_capture(path).blocks() for at in range(len(block))
    ]  # fmt: skip
    source = tmp_path / "source.pcap"
    with source.open("wb") as file:
        writer = PcapWriter(file)
        for packet in packets[len(packets) // 3 if feed == "midstream" else 0 :]:
            writer.write(*packet)
        writer.close()
    target = tmp_path / "slice.pcapng"
    wanted = rows(kwire("read", str(source), "--slower", "2ms", "--format", "json").text)
    kwire("read", str(source), "--slower", "2ms", "-w", str(target))
    found = rows(kwire("read", str(target), "--format", "json").text)
    assert {key: found.get(key) for key in wanted} == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--api", "Metadata"], "logins are in it (30 exchanges), with passwords or what proves them: --bare leaves"),
        (["--api", "Metadata", "--bare"], None),
        (["--api", "SaslAuthenticate"], "logins are in it (39 exchanges), with passwords or what proves them\n"),
        ([], "logins are in it (39 exchanges), with passwords or what proves them\n"),
    ],
)
def test_logins_in_a_slice_are_said(options: list[str], said: str | None, kwire: Any, tmp_path: Path) -> None:
    target = tmp_path / "slice.pcapng"
    ran = kwire("read", str(FOLDER / "sasl.pcap.gz"), *options, "-w", str(target))
    assert said in ran.err if said else "logins are in it" not in ran.err
    assert target.stat().st_mode & 0o777 == 0o600
