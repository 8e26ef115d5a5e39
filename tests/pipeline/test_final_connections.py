"""Connections that open and end within a split are final there; where their endpoints meet again, the rows are still
those of somebody who reads all."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from struct import pack_into, unpack_from

import pytest
from calls import Call

from kwire.pipeline import plan as planning
from kwire.pipeline.final_connections import parts_between
from kwire.pipeline.leftover_segments import pair
from kwire.pipeline.splits import plan
from kwire.pipeline.survey import Survey
from kwire.session.reader import Settings
from kwire.tables.columns import DEFAULT

SECOND = 1_000_000_000
TCP = 14 + 20  # where its header begins behind Ethernet and IPv4
Packet = tuple[int, bytes, int, int]  # time, bytes, length on the wire, link


def later(packets: Sequence[Packet], seconds: int, sequence: int) -> list[Packet]:
    """The same packets after so many seconds, their sequence numbers higher by so much."""
    out = []
    for time, data, length, link in packets:
        changed = bytearray(data)
        if data[12:14] == b"\x08\x00" and data[23] == 6:
            for at in (TCP + 4, TCP + 8):
                pack_into(">I", changed, at, (unpack_from(">I", data, at)[0] + sequence) % (1 << 32))
        out.append((time + seconds * SECOND, bytes(changed), length, link))
    return out


def surveys(path: Path, size: int, names: Sequence[str] = DEFAULT) -> list[Survey]:
    want = planning.wanted(names)
    return [
        planning.survey_with_rows(split, names, lambda *_: None, Settings(), want, window=size, finals=True)
        for split in plan([path], size, size)
    ]


@pytest.mark.parametrize("name", ["old39.pcap.gz", "pyclients.pcap"])
@pytest.mark.parametrize(("seconds", "sequence"), [(60, 123_456_789), (60, 0), (0, 77_777_777)])
@pytest.mark.parametrize("size", [12_000, 50_000])
def test_endpoints_that_meet_again_in_other_splits(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, cut: Call, name: str,
    seconds: int, sequence: int, size: int,
) -> None:  # fmt: skip
    once = packets_of(unpacked(name))
    path = save(tmp_path / "a.pcap", [*once, *later(once, seconds, sequence), *later(once, 2 * seconds, 2 * sequence)])
    assert cut([path], DEFAULT, size, size)[0] == expected([path], DEFAULT, size)


@pytest.mark.parametrize("seconds", [3, 10])
@pytest.mark.parametrize("size", [12_000, 30_000])
def test_bytes_that_come_again_after_the_end(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, cut: Call, size: int,
    seconds: int,
) -> None:  # fmt: skip
    once = packets_of(unpacked("old39.pcap.gz"))
    path = save(tmp_path / "a.pcap", [*once, *later(once[::7], seconds, 0)])
    assert cut([path], DEFAULT, size, size)[0] == expected([path], DEFAULT, size)


@pytest.mark.parametrize("size", [37_001, 42_001, 64_501])
def test_the_last_words_of_one_right_before_the_next_of_its_endpoints(
    tmp_path: Path, unpacked: Callable[[str], Path], packets_of: Call, save: Call, expected: Call, cut: Call, size: int
) -> None:
    once = packets_of(unpacked("admin.pcap.gz"))
    path = save(tmp_path / "a.pcap", [*once, *later(once, 0, 77_777_777), *later(once, 0, 155_555_554)])
    assert cut([path], DEFAULT, size, size)[0] == expected([path], DEFAULT, size)


def test_next_to_nothing_travels_of_them(unpacked: Callable[[str], Path]) -> None:
    [made] = surveys(unpacked("old39.pcap.gz"), 1 << 20)
    assert len(made.final) > 30
    assert len(made.parts) < 3
    most, parts = len(pickle.dumps(made)), made.final.take_parts()
    sent = pickle.dumps(made.final)
    assert len(sent) < len(made.final) * 12 + 500 < most
    known = pickle.loads(sent)
    assert (known.keys, known.ordinals, known.firsts) == (made.final.keys, made.final.ordinals, made.final.firsts)
    assert [part.key for part in parts_between(parts, set(map(pair, known.keys)))] == known.keys


@pytest.mark.parametrize("name", ["old39.pcap.gz", "pyclients.pcap", "admin.pcap.gz"])
def test_what_is_kept_of_them_makes_the_parts_that_a_survey_without_them_has(
    unpacked: Callable[[str], Path], name: str
) -> None:
    [made] = surveys(unpacked(name), 1 << 20)
    [split] = plan([unpacked(name)], 1 << 20, 1 << 20)
    plain = planning.survey_with_rows(
        split, DEFAULT, lambda *_: None, Settings(), planning.wanted(DEFAULT), window=1 << 20
    )
    asked = {pair(key) for key in made.final.keys[::2]}
    kept = pickle.loads(pickle.dumps(made.final.take_parts()))
    assert any(isinstance(part, tuple) for part in kept)
    wanted = [
        replace(part, final=True, kinds={}, clients=[], names={}) for part in plain.parts if pair(part.key) in asked
    ]
    assert sorted(parts_between(kept, asked), key=lambda part: part.number) == wanted != []
