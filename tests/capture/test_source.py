"""Windows over files, gzip and zstd of them, stdin, and files that grow."""

from __future__ import annotations

import gzip
import io
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

from kwire.capture.source import POLL, Source
from kwire.errors import CaptureError

DATA = random.Random(1).randbytes(5000)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "two gzip members": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
    "padded gzip": lambda data: gzip.compress(data) + bytes(64),
    "zstd": zstd.compress,
    "two zstd frames": lambda data: zstd.compress(data[:700]) + zstd.compress(data[700:]),
}


class Trickle(io.RawIOBase):
    """Gives step bytes with each read, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        self.data, self.step = data, step

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        piece, self.data = self.data[: self.step], self.data[self.step :]
        into[: len(piece)] = piece
        return len(piece)


def pipe(monkeypatch: pytest.MonkeyPatch, data: bytes, step: int = 1 << 16) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Trickle(data, step))))


def read(found: Source, take: int = 1 << 30) -> bytes:
    """All of it, using up at most take bytes of a window."""
    out, used = b"", 0
    while True:
        view = found.window(used)
        used = min(len(view), take)
        out += view[:used]
        if found.ended and used == len(view):
            return out


def saved(folder: Path, data: bytes) -> Path:
    path = folder / "some.pcap"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize(("window", "take"), [(1 << 20, 1 << 30), (64, 1 << 30), (64, 50), (333, 100), (4, 1)])
def test_windows_give_every_byte_once(tmp_path: Path, packer: str, window: int, take: int) -> None:
    found = Source(saved(tmp_path, PACKERS[packer](DATA)), window=window)
    assert read(found, take) == DATA
    assert (found.name, found.problem) == ("some.pcap", None)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_window_of_which_nothing_is_used_grows(tmp_path: Path, packer: str) -> None:
    found = Source(saved(tmp_path, PACKERS[packer](DATA)), window=100)
    sizes = [len(found.window(0))]
    while not found.ended:
        view = found.window(0)
        assert bytes(view) == DATA[: len(view)]
        sizes.append(len(view))
    assert sizes == sorted(sizes)
    assert sizes[-1] == len(DATA)
    assert DATA[4000:].startswith(bytes(found.window(4000)))


def test_progress_counts_bytes_of_the_file(tmp_path: Path) -> None:
    plain = Source(saved(tmp_path, DATA), window=1000)
    plain.window(0)
    plain.window(300)
    assert (plain.done, plain.size) == (300, 5000)
    packed = gzip.compress(bytes(100_000))
    zipped = Source(saved(tmp_path, packed))
    read(zipped)
    assert (zipped.done, zipped.size) == (len(packed), len(packed))


@pytest.mark.parametrize("packer", ["gzip", "zstd"])
@pytest.mark.parametrize("kept", [5, 20, 2000])
def test_a_compressed_file_that_is_cut_gives_what_it_has(tmp_path: Path, packer: str, kept: int) -> None:
    found = Source(saved(tmp_path, PACKERS[packer](DATA)[:kept]))
    out = read(found)
    assert DATA.startswith(out)
    assert found.problem is not None
    assert found.problem.startswith("the compressed file is damaged or cut: Compressed file ended before the end")


@pytest.mark.parametrize(
    ("packer", "place", "value", "reason"),
    [
        ("gzip", 2, 0x55, "Unknown compression method"),
        ("gzip", -6, None, "CRC check failed"),
        ("gzip", -2, None, "Incorrect length of data produced"),
        ("gzip", 12, None, "Error -3 while decompressing data"),
        ("zstd", 4, None, "Unable to decompress Zstandard data"),
        ("zstd", -3, None, "Unable to decompress Zstandard data"),
    ],
)
def test_a_damaged_compressed_file_says_so(
    tmp_path: Path, packer: str, place: int, value: int | None, reason: str
) -> None:
    content = bytes(range(256)) * 500
    raw = bytearray(zstd.compress(content, options={zstd.CompressionParameter.checksum_flag: 1}))
    if packer == "gzip":
        raw = bytearray(gzip.compress(content))
    raw[place] = raw[place] ^ 0xFF if value is None else value
    found = Source(saved(tmp_path, bytes(raw)))
    assert content.startswith(read(found))
    assert found.problem is not None
    assert found.problem.startswith("the compressed file is damaged or cut: ")
    assert reason in found.problem


def test_bytes_behind_a_gzip_member_are_said_to_be_damage(tmp_path: Path) -> None:
    found = Source(saved(tmp_path, gzip.compress(DATA) + b"rubbish"))
    assert read(found) == DATA
    assert found.problem == "the compressed file is damaged or cut: Not a gzipped file (b'ru')"


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("step", [1, 3, 1 << 16])
def test_stdin_is_read_as_a_file_is(monkeypatch: pytest.MonkeyPatch, packer: str, step: int) -> None:
    pipe(monkeypatch, PACKERS[packer](DATA), step)
    found = Source("-")
    assert read(found) == DATA
    assert (found.name, found.size, found.problem) == ("stdin", None, None)


def test_stdin_hands_out_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, DATA, 100)
    found = Source("-")
    assert bytes(found.window(0)) == DATA[:100]
    assert bytes(found.window(40)) == DATA[40:200]
    assert not found.ended


def test_an_empty_file_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, b"")
    for found in (Source(saved(tmp_path, b"")), Source("-")):
        assert (len(found.window(0)), found.ended, found.problem) == (0, True, None)


def test_a_file_that_grows_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, waits = saved(tmp_path, b""), []

    def grow(seconds: float) -> None:
        waits.append(seconds)
        with path.open("ab") as file:
            file.write(DATA[100 * len(waits) - 100 : 100 * len(waits)])

    monkeypatch.setattr("kwire.capture.source.time.sleep", grow)
    found, out, used = Source(path, follow=True), b"", 0
    while len(out) < 1000:
        view = found.window(used)
        out, used = out + bytes(view), len(view)
        assert not found.ended
    assert out == DATA[:1000]
    assert set(waits) == {POLL}
    assert found.done == 1000


@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_a_compressed_file_cannot_be_followed(tmp_path: Path, packer: str) -> None:
    path = saved(tmp_path, PACKERS[packer](DATA))
    with pytest.raises(CaptureError, match=r"^some\.pcap: a compressed file cannot be followed$"):
        Source(path, follow=True)


def test_a_folder_and_a_missing_file_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        Source(tmp_path)
    with pytest.raises(FileNotFoundError):
        Source(tmp_path / "none")
