"""What stands for what: the same in, the same out, of the same length; a salt decides, so that nobody can look back.

Texts become letters by a keyed hash (HMAC-SHA-256). Two texts of one length never become the same as long as there are
letters enough. Addresses stay addresses: each number of an IPv4 address becomes another one of as many digits, equal
beginnings stay equal, and a host that is written out as an address is replaced as the packets' address is.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from ipaddress import IPv6Address, ip_address

LETTERS = b"abcdefghijklmnopqrstuvwxyz234567"
TRIES = 200  # other letters are tried so often when a text's are taken
IPV4 = re.compile(rb"(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.])")
LOOPBACK, ANY = 127, 0  # first numbers of addresses that tell nothing
MAPPED = 0xFFFF << 32


class Pseudonyms:
    """text() and address() say what stands for one. salt: who knows it can find out by trying."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._made: dict[bytes, bytes] = {}
        self._taken: set[bytes] = set()
        self._numbers: dict[bytes, int] = {}
        self.count = 0  # texts that were replaced, each once

    def text(self, text: bytes) -> bytes:
        """Bytes of the same length; those of an address when the text is one."""
        known = self._made.get(text)
        if known is None:
            known = self._host(text) or self._letters(text)
            self._made[text] = known
            self._taken.add(known)
            self.count += 1
        return known

    def blob(self, data: bytes) -> bytes:
        """The same for keys and values, which are not remembered: there are too many."""
        return self._spread(b"blob" + data, len(data))

    def uuid(self, data: bytes) -> bytes:
        """16 bytes for an id; the ids that Kafka has reserved stay (Uuid.RESERVED)."""
        if int.from_bytes(data) <= 1:
            return data
        return self._digest(b"uuid" + data)[:16]

    def address(self, high: int, low: int) -> tuple[int, int]:
        """Both halves of an IPv6 address; IPv4 is mapped into it (RFC 4291, 2.5.5.2)."""
        if high == 0 and low >> 32 == 0xFFFF:
            return 0, MAPPED | int.from_bytes(self._ipv4((low & 0xFFFFFFFF).to_bytes(4)))
        number = high << 64 | low
        if number <= 1:
            return high, low
        made: bytes = b"".join(self._group(at, number.to_bytes(16)) for at in range(0, 16, 2))
        return int.from_bytes(made[:8]), int.from_bytes(made[8:])

    def _host(self, text: bytes) -> bytes | None:
        """A text that is an address, maybe behind a slash as Java writes it."""
        slash, bare = text[: text.startswith(b"/")], text.removeprefix(b"/")
        try:
            found = ip_address(bare.decode("ascii"))
        except ValueError:
            return None
        if not isinstance(found, IPv6Address):
            return slash + b".".join(b"%d" % each for each in self._ipv4(found.packed))
        high, low = self.address(*divmod(int(found), 1 << 64))
        made = slash + str(IPv6Address(high << 64 | low)).encode()
        return made if len(made) == len(text) else None

    def _ipv4(self, packed: bytes) -> bytes:
        if packed[0] in (LOOPBACK, ANY):
            return packed
        return bytes(self._number(packed[:at], packed[at]) for at in range(4))

    def _number(self, before: bytes, value: int) -> int:
        """Another number of as many digits: a permutation that hangs on the numbers before."""
        known = self._numbers.get(before + bytes([value]))
        if known is not None:
            return known
        low, high = (0, 10) if value < 10 else (10, 100) if value < 100 else (100, 256)
        order = sorted(range(low, high), key=lambda each: self._digest(b"ip" + before + bytes([each])))
        made = order[value - low]
        made = value if not before and made in (LOOPBACK, ANY) else made
        self._numbers[before + bytes([value])] = made
        return made

    def _group(self, at: int, packed: bytes) -> bytes:
        """Four hex digits of an IPv6 address: zeros stay, so that it is written as briefly as before."""
        group = int.from_bytes(packed[at : at + 2])
        digits = len(f"{group:x}")
        if group == 0:
            return bytes(2)
        low = 16 ** (digits - 1)
        seed = int.from_bytes(self._digest(b"ip6" + packed[: at + 2])[:4])
        return int(low + seed % (16**digits - low)).to_bytes(2)

    def _letters(self, text: bytes) -> bytes:
        made = self._spread(text, len(text))
        for again in range(TRIES):
            if made not in self._taken and made != text:
                break
            made = self._spread(b"%d:" % again + text, len(text))
        return made

    def _spread(self, seed: bytes, length: int) -> bytes:
        out = bytearray()
        counter = 0
        while len(out) < length:
            digest = self._digest(seed + b"#%d" % counter if counter else seed)
            out += bytes(LETTERS[each & 31] for each in digest)
            counter += 1
        if out and out[:1] in b"234567":
            out[0] -= 50 - 97  # a name begins with a letter
        return bytes(out[:length])

    def _digest(self, data: bytes) -> bytes:
        return hmac.digest(self._salt, data, sha256)
