"""Names of topics in the bytes of files: beside their ids, or cut, or in no file at all."""

from __future__ import annotations

import gzip
import mmap
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kwire.codec.plan import StructPlan
from kwire.session.api_versions import Kinds
from kwire.session.reading import MOST_SOUGHT, Reading
from kwire.session.topic_search import LONGEST, WINDOW, TopicSearch, Unclear
from kwire.session.topics import Topics

ID = UUID("6f1c2a3b-4d5e-4f60-8172-8394a5b6c7d8")


def compact(text: bytes) -> bytes:
    size = len(text) + 1
    return (bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])) + text


def search(tmp_path: Path, *contents: bytes, window: int = WINDOW) -> TopicSearch:
    paths = [tmp_path / f"{number}.pcap" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return TopicSearch(paths, window)


@pytest.mark.parametrize(
    "name", [b"a", b"orders", b"a" * 63, b"e" * 100, b"x" * 126, b"x" * 127, b"y-_." * 50, b"z" * LONGEST]
)
@pytest.mark.parametrize("behind", [False, True])
def test_the_text_beside_an_id_is_its_name(tmp_path: Path, name: bytes, behind: bool) -> None:
    text = compact(name)
    data = b"\0\0" + (ID.bytes + text if behind else text + ID.bytes) + b"\0\2"
    assert search(tmp_path, b"nothing here", data).name(ID) == name.decode()


def test_what_only_uses_an_id_tells_nothing(tmp_path: Path) -> None:
    fetch = b"\x02" + ID.bytes + b"\x02\0\0\0\1" + b"\xff" * 8
    assert search(tmp_path, fetch * 1000, b"", ID.bytes).name(ID) is None


@pytest.mark.parametrize("shift", [-40, -16, -15, -8, -1, 0, 1])
def test_it_is_found_wherever_windows_end(tmp_path: Path, shift: int) -> None:
    page = mmap.PAGESIZE
    data = compact(b"orders") + ID.bytes
    begin = page + shift
    assert search(tmp_path, bytes(begin) + data + bytes(page), window=page).name(ID) == "orders"
    assert search(tmp_path, bytes(begin) + ID.bytes + bytes(page), window=page).name(ID) is None


@pytest.mark.parametrize("at", range(1, 16))
def test_an_id_in_two_packets_is_unclear(tmp_path: Path, at: int) -> None:
    data = compact(b"orders") + ID.bytes[:at] + b"\0header\0" + ID.bytes[at:] + b"\0"
    with pytest.raises(Unclear):
        search(tmp_path, data).name(ID)


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("behind", [False, True])
def test_a_name_in_two_packets_is_unclear(tmp_path: Path, at: int, behind: bool) -> None:
    text = compact(b"orders")
    header = b"\0header\0"
    data = ID.bytes + text[: at + 1] + header + text[at + 1 :] if behind else text[:at] + header + text[at:] + ID.bytes
    if behind and at == 6:
        return  # nothing is cut
    with pytest.raises(Unclear):
        search(tmp_path, b"\0" + data + b"\0" * 9).name(ID)


def test_so_is_one_in_a_compressed_file(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        search(tmp_path, gzip.compress(b"x")).name(ID)


def test_ids_and_names_are_neighbours_in_all_responses_that_tell_names() -> None:
    def told(struct: StructPlan) -> list[bool]:
        entities = [slot.field.entity for slot in struct.slots]
        out = [one for slot in struct.slots if slot.struct is not None for one in told(slot.struct)]
        if {"topicName", "topicId"} <= set(entities):
            name, ident = entities.index("topicName"), entities.index("topicId")
            out.append(abs(name - ident) == 1 and struct.slots[name].compact)
        return out

    kinds, found = Kinds(), []
    for key in range(200):
        for version in range(40):
            kind = kinds.of(key, version)
            if kind.tells_names:
                found += told(kind.plan("response").root)
    assert len(found) > 10
    assert all(found)


@pytest.mark.parametrize(("count", "passes"), [(MOST_SOUGHT, 0), (MOST_SOUGHT + 1, 1)])
def test_a_capture_is_read_once_when_its_bytes_tell(
    traffic: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, passes: int
) -> None:
    tcp = traffic.connection()
    idents = [UUID(int=(1 << 100) + number * (1 << 64 | 77)) for number in range(1, count + 1)]
    for turn, ident in enumerate(idents):
        body = {"SessionId": 0, "SessionEpoch": -1, "Topics": [{"TopicId": ident, "Partitions": [{"Partition": 0}]}]}
        tcp.send(traffic.request("Fetch", 13, body, turn)).answer(traffic.response("Fetch", 13, {}, turn))
    topics = [{"Name": f"topic-{number}", "TopicId": ident} for number, ident in enumerate(idents)]
    tcp.send(traffic.request("Metadata", 12, ident=999))
    tcp.answer(traffic.response("Metadata", 12, {"Topics": topics}, 999))
    read_again: list[int] = []
    read_ahead = Reading._read_ahead

    def counting(reading: Reading, known: Topics) -> None:
        read_again.append(1)
        read_ahead(reading, known)

    monkeypatch.setattr(Reading, "_read_ahead", counting)
    reading = Reading([traffic.save(tmp_path / "c.pcap")], tracking=True)
    exchanges = list(reading.exchanges())  # what they are about is asked behind all
    reading.readers[0].topics.names.clear()
    names = [name for each in exchanges if each.api == "Fetch" for name in each.about.topics]
    assert names == [f"topic-{number}" for number in range(count)]
    assert len(read_again) == passes
