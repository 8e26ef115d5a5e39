"""Dumps of xxd, hexdump, od, Wireshark and tcpdump, as these tools print the frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.cli.dumps import dump

FRAMES = Path(__file__).parents[2] / "fixtures" / "frames"
FRAME = (FRAMES / "ApiVersionsRequest.v0.bin").read_bytes()
ZEROS = bytes(64) + b"\x01\x02\x03"

XXD = """\
00000000: 0000 001b 0012 0000 0000 0001 0011 6169  ..............ai
00000010: 6f6b 6166 6b61 2d63 6f6e 7375 6d65 72    okafka-consumer
"""
XXD_PAIRS = """\
00000000: 00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69  ..............ai
00000010: 6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72     okafka-consumer
"""
XXD_NARROW = """\
00000000: 0000 001b 0012 0000  ........
00000008: 0000 0001 0011 6169  ......ai
00000010: 6f6b 6166 6b61 2d63  okafka-c
00000018: 6f6e 7375 6d65 72    onsumer
"""
HEXDUMP_C = """\
00000000  00 00 00 1b 00 12 00 00  00 00 00 01 00 11 61 69  |..............ai|
00000010  6f 6b 61 66 6b 61 2d 63  6f 6e 73 75 6d 65 72     |okafka-consumer|
0000001f
"""
HEXDUMP = """\
0000000 0000 1b00 1200 0000 0000 0100 1100 6961
0000010 6b6f 6661 616b 632d 6e6f 7573 656d 0072
000001f
"""
HEXDUMP_MAC = """\
0000000      0000    1b00    1200    0000    0000    0100    1100    6961
0000010      6b6f    6661    616b    632d    6e6f    7573    656d    0072
000001f
"""
OD = """\
0000000 00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69
0000020 6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72
0000037
"""
OD_DECIMAL = """\
0000000 00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69
0000016 6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72
0000031
"""
OD_HEX_TEXT = """\
000000 00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69  >..............ai<
000010 6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72     >okafka-consumer<
00001f
"""
OD_WORDS = """\
0000000 0000 1b00 1200 0000 0000 0100 1100 6961
0000020 6b6f 6661 616b 632d 6e6f 7573 656d 0072
0000037
"""
WIRESHARK = """\
0000   00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69   ..............ai
0010   6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72      okafka-consumer
"""
WIRESHARK_BARE = """\
0000   00 00 00 1b 00 12 00 00 00 00 00 01 00 11 61 69
0010   6f 6b 61 66 6b 61 2d 63 6f 6e 73 75 6d 65 72
"""
TSHARK = """\
0000  20 52 45 43 56 00 20 53 45 4e 44 00 08 00 45 00    RECV. SEND...E.
0010  00 47 12 34 00 00 ff 06 95 7a 0a 00 00 01 0a 00   .G.4.....z......
0020  00 02 9c 40 23 84 00 00 00 00 00 00 00 00 50 00   ...@#.........P.
0030  20 00 2e 76 00 00 00 00 00 1b 00 12 00 00 00 00    ..v............
0040  00 01 00 11 61 69 6f 6b 61 66 6b 61 2d 63 6f 6e   ....aiokafka-con
0050  73 75 6d 65 72                                    sumer
"""
TCPDUMP_X = """\
02:43:48.000001 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [none], seq 0:31, win 8192, length 31
\t0x0000:  4500 0047 1234 0000 ff06 957a 0a00 0001
\t0x0010:  0a00 0002 9c40 2384 0000 0000 0000 0000
\t0x0020:  5000 2000 2e76 0000 0000 001b 0012 0000
\t0x0030:  0000 0001 0011 6169 6f6b 6166 6b61 2d63
\t0x0040:  6f6e 7375 6d65 72
"""
TCPDUMP_TEXT = """\
02:43:48.000001 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [none], seq 0:31, win 8192, length 31
\t0x0000:  4500 0047 1234 0000 ff06 957a 0a00 0001  E..G.4.....z....
\t0x0010:  0a00 0002 9c40 2384 0000 0000 0000 0000  .....@#.........
\t0x0020:  5000 2000 2e76 0000 0000 001b 0012 0000  P....v..........
\t0x0030:  0000 0001 0011 6169 6f6b 6166 6b61 2d63  ......aiokafka-c
\t0x0040:  6f6e 7375 6d65 72                        onsumer
"""
TCPDUMP_LINK = """\
02:43:48.000001 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [none], seq 0:31, win 8192, length 31
\t0x0000:  2052 4543 5600 2053 454e 4400 0800 4500  .RECV..SEND...E.
\t0x0010:  0047 1234 0000 ff06 957a 0a00 0001 0a00  .G.4.....z......
\t0x0020:  0002 9c40 2384 0000 0000 0000 0000 5000  ...@#.........P.
\t0x0030:  2000 2e76 0000 0000 001b 0012 0000 0000  ...v............
\t0x0040:  0001 0011 6169 6f6b 6166 6b61 2d63 6f6e  ....aiokafka-con
\t0x0050:  7375 6d65 72                             sumer
"""
TCPDUMP_6 = """\
02:43:48.000001 IP6 ::1.40000 > ::2.9092: Flags [none], seq 0:31, win 8192, length 31
\t0x0000:  6000 0000 0033 06ff 0000 0000 0000 0000
\t0x0010:  0000 0000 0000 0001 0000 0000 0000 0000
\t0x0020:  0000 0000 0000 0002 9c40 2384 0000 0000
\t0x0030:  0000 0000 5000 2000 4289 0000 0000 001b
\t0x0040:  0012 0000 0000 0001 0011 6169 6f6b 6166
\t0x0050:  6b61 2d63 6f6e 7375 6d65 72
"""
PYTHON_HEXDUMP = """\
00000000: 00 00 00 1B 00 12 00 00  00 00 00 01 00 11 61 69  ..............ai
00000010: 6F 6B 61 66 6B 61 2D 63  6F 6E 73 75 6D 65 72     okafka-consumer
"""
DUMPS = {name: text for name, text in vars().items() if name.isupper() and isinstance(text, str)}


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_gives_the_frame(name: str) -> None:
    assert dump(DUMPS[name]) == FRAME


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("00000000: 6162 6364 6566 6162  abcdefab\n", b"abcdefab"),
        ("0000   61 62 63 64 65 66 20 61                           abcdef a\n", b"abcdef a"),
        ("00000000: 6120 6220 6364 2065  a b cd e\n00000008: 6600                     f.\n", b"a b cd ef\x00"),
        ("0000 61 62 20 63 64 20 65 66\n0008 61\n", b"ab cd efa"),
    ],
)
def test_text_that_looks_like_digits_is_no_data(text: str, data: bytes) -> None:
    assert dump(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n*\n"
        "00000040  01 02 03                                          |...|\n00000043\n",
        "0000000 0000 0000 0000 0000 0000 0000 0000 0000\n*\n0000040 0201 0003\n0000043\n",
        "0000000 00 00 00 00 00 00 00 00\n*\n0000060 00 00 00 00 00 00 00 00\n0000070 00 00 00 00 00 00 00 00\n"
        "0000100 01 02 03\n0000103\n",
    ],
    ids=["hexdump -C", "hexdump", "od"],
)
def test_a_star_stands_for_rows_like_the_one_before(text: str) -> None:
    assert dump(text) == ZEROS


def test_packets_of_one_dump_are_joined_and_empty_ones_add_nothing() -> None:
    ack = "\t0x0000:  4500 0028 1234 0000 ff06 957a 0a00 0001\n\t0x0010:  0a00 0002 9c40 2384 0000 0000 0000 0000\n"
    ack = f"12:00:00.0 IP 10.0.0.1.40000 > 10.0.0.2.9092: Flags [.], length 0\n{ack}\t0x0020:  5010 2000 2e76 0000\n"
    assert dump(TCPDUMP_X + ack + TCPDUMP_TEXT) == FRAME + FRAME


def test_a_packet_that_was_cut_stays_as_it_is() -> None:
    cut = "".join(TCPDUMP_X.splitlines(keepends=True)[:-1])
    assert dump(cut) == bytes.fromhex("".join(line.split(":  ")[1] for line in cut.splitlines()[1:]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "0000001b 0012 0000",
        "0000001b 00 12 00 00",
        "00 00 00 1b",
        "00000000: zz",
        "0x0000:\n",
        "0000   00 01\n0010   02 03\n",
        "0010   00 01\n0008   02 03\n",
        "one line\nand another\nand a third\n0000   00 01\n",
        "00 01 02 03\n04 05 06 07\n",
    ],
)
def test_what_is_no_dump(text: str) -> None:
    assert dump(text) is None
