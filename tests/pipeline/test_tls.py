"""TLS in the pipeline: what splits leave to the stitch is decrypted there, with the keys that the capture carries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire.capture.files import open_capture
from kwire.capture.save import PcapngWriter

FOLDER = Path(__file__).parents[2] / "fixtures/captures/tls-kafka"


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """The capture with its keys inside, as pcapng."""
    path = tmp_path / "sealed.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.secrets((FOLDER / "keys.log").read_text().splitlines())
        for packets in open_capture(FOLDER / "capture.pcap.gz").blocks():
            for at in range(len(packets)):
                start = int(packets.start[at])
                data = bytes(packets.buffer[start : start + int(packets.captured[at])])
                writer.write(int(packets.time[at]), data, int(packets.length[at]), int(packets.link[at]))
    return path


@pytest.mark.parametrize("size", [50_000, 1 << 30])
def test_splits_of_any_size_give_what_is_inside(
    size: int, sealed: Path, expected: Callable[..., Any], cut: Callable[..., Any]
) -> None:
    names = ["messages", "exchanges", "connections"]
    whole = expected([sealed], names)
    assert len(whole["messages"]) == 442
    assert cut([sealed], names, size)[0] == whole
