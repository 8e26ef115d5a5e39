"""What single packets are, of captures that others made."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.capture.packet_summary import packet_summary

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("share.pcap", 1, "a SYN from 127.0.0.1:42196 to 127.0.0.1:9092"),
        ("ipv6.pcap", 2, "an answer to a SYN from [::1]:9092 to [::1]:34372"),
        ("share.pcap", 5, "a bare acknowledgement from 127.0.0.1:9092 to 127.0.0.1:42196"),
        ("kafkajs.pcap", 38, "a FIN from 127.0.0.1:41696 to 127.0.0.1:9092"),
        ("notkafka.pcap", 33, "a reset from 127.0.0.1:9092 to 127.0.0.1:46738"),
        ("notkafka.pcap", 4, "86 bytes from 127.0.0.1:46714 to 127.0.0.1:9092"),
        ("share.pcap", 99_999, None),
    ],
)
def test_a_packet_in_words(name: str, number: int, said: str | None) -> None:
    assert packet_summary(CAPTURES / name, number) == said
