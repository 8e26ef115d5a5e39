"""Packets from interfaces as they pass: scapy's sockets, with a filter in the kernel.

Packets are taken from the sockets in blocks, like those of a file. Once the sockets are open, the rights that opening
them needed are dropped.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import select
import socket as socket_module
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kwire.capture.packets import Packets, packets_of
from kwire.errors import CaptureError

LINKS = {"Ether": 1, "CookedLinux": 113, "CookedLinuxV2": 276, "Loopback": 0, "IP": 101, "IPv6": 101, "Raw": 101}
SNAPLEN = 262144
RECEIVE = 64 << 20  # bytes of the socket's buffer, if the kernel allows so many
SO_RCVBUFFORCE = 33  # asm-generic/socket.h: beyond net.core.rmem_max, with the right to
BLOCK = 4096  # packets taken from a socket at a time
TICK = 0.1  # seconds that packets may wait for others
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23  # linux/if_packet.h
CAPABILITIES_V3 = 0x20080522  # linux/capability.h
PR_SET_NO_NEW_PRIVS = 38
NOBODY = 65534, 65534  # user and group of nobody, where the system has no such name


class LiveInterface(NamedTuple):
    """What --list shows of an interface."""

    name: str
    addresses: tuple[str, ...]
    up: bool


def interfaces() -> list[LiveInterface]:
    """The machine's interfaces."""
    conf = _scapy()
    found = []
    for known in conf.ifaces.values():
        addresses = [text for texts in known.ips.values() for text in texts if text]
        found.append(LiveInterface(known.name, tuple(dict.fromkeys(addresses)), "UP" in str(known.flags)))
    return sorted(found, key=lambda interface: interface.name)


def _scapy() -> Any:
    """scapy's configuration, with the platform's sockets and the link types behind it."""
    import logging

    logging.getLogger("scapy").setLevel(logging.CRITICAL)
    for module in ("scapy.arch", "scapy.layers.l2", "scapy.layers.inet"):
        importlib.import_module(module)
    from scapy.config import conf

    conf.ifaces.reload()
    return conf


class Live:
    """Sockets on the named interfaces ("any": all that are up). Raises CaptureError when they cannot be opened.

    filter is a pcap filter expression. unfiltered: whether all packets come, since the kernel could not take the
    filter. links: each socket's link type; user: who called sudo, as user and group.
    """

    def __init__(self, names: Sequence[str], filter: str) -> None:
        known = {interface.name: interface for interface in interfaces()}
        chosen = list(dict.fromkeys(names))
        if "any" in chosen:
            chosen = [name for name, interface in known.items() if interface.up]
        for name in chosen:
            if name not in known:
                raise CaptureError(name, f"no such interface; there are {', '.join(known)}")
        self.names = chosen
        self.dropped = 0
        self.unfiltered: str | None = None
        self._sockets = [self._open(name, filter) for name in chosen]
        self.links = [LINKS.get(socket.LL.__name__, 1) for socket in self._sockets]
        self.user = _user()
        self._number = 1

    def _open(self, name: str, filter: str) -> Any:
        from scapy.error import Scapy_Exception

        conf = _scapy()

        try:
            try:
                socket = conf.L2listen(iface=name, filter=filter)
            except (Scapy_Exception, OSError) as error:
                if isinstance(error, PermissionError) or "filter" not in str(error).lower():
                    raise
                self.unfiltered = str(error)[:100]  # no libpcap to compile it: other packets are left out later
                socket = conf.L2listen(iface=name)
        except PermissionError:
            raise CaptureError(name, _grant(name)) from None
        except (Scapy_Exception, OSError) as error:
            raise CaptureError(name, str(error)) from error
        if name == "lo" and sys.platform == "linux":  # each packet would come twice: going out and coming in
            with contextlib.suppress(OSError):
                socket.ins.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        for option in (SO_RCVBUFFORCE, socket_module.SO_RCVBUF):  # scapy's own 64 KiB hold a burst of milliseconds
            with contextlib.suppress(OSError):
                socket.ins.setsockopt(socket_module.SOL_SOCKET, option, RECEIVE)
                break
        socket.ins.setblocking(False)
        return socket

    @property
    def becomes(self) -> tuple[int, int]:
        """The user and group that a root process has after drop_privileges."""
        return self.user or _nobody()

    def drop_privileges(self) -> None:
        """Gives up root's rights: from here on only the open sockets are needed. The process runs as the user who
        called sudo, or as nobody."""
        if os.geteuid() == 0:
            user, group = self.becomes
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
        if sys.platform == "linux":
            libc = ctypes.CDLL(None)
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            libc.capset(struct.pack("Ii", CAPABILITIES_V3, 0), struct.pack("6I", *[0] * 6))

    def blocks(self, until: float | None = None) -> Iterator[Packets]:
        """Packets as they come; an empty block when none came for a while, so that timeouts are noticed. until: by
        time.monotonic()."""
        by_file = {socket.ins.fileno(): at for at, socket in enumerate(self._sockets)}
        while until is None or time.monotonic() < until:
            ready, _, _ = select.select(list(by_file), [], [], TICK)
            rows: list[tuple[bytes, int, int]] = []
            for file in ready:
                at = by_file[file]
                rows += self._take(self._sockets[at], self.links[at])
            yield self._packets(rows)

    def _take(self, socket: Any, link: int) -> list[tuple[bytes, int, int]]:
        rows = []
        for _ in range(BLOCK):
            try:
                _, data, moment = socket.recv_raw(SNAPLEN)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise CaptureError(str(socket.iface), f"the interface went away: {error}") from error
            if data:
                rows.append((data, round((moment or time.time()) * 1e6) * 1000, link))
        return rows

    def _packets(self, rows: list[tuple[bytes, int, int]]) -> Packets:
        self._number += len(rows)
        return packets_of(rows, self._number - len(rows))

    def count_drops(self) -> int:
        """The number of packets that the kernel dropped so far."""
        if sys.platform == "linux":
            for socket in self._sockets:
                with contextlib.suppress(OSError):
                    counts = socket.ins.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
                    self.dropped += struct.unpack("II", counts)[1]
        return self.dropped

    def close(self) -> None:
        for socket in self._sockets:
            socket.close()


def _user() -> tuple[int, int] | None:
    """Who called sudo, and their group; None without sudo, and when root did."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    return (int(user), int(group)) if user.isdecimal() and group.isdecimal() and int(user) else None


def _nobody() -> tuple[int, int]:
    import pwd

    try:
        found = pwd.getpwnam("nobody")
    except KeyError:
        return NOBODY
    return found.pw_uid, found.pw_gid


def expression(ports: Sequence[int], hosts: Sequence[str]) -> str:
    """The filter for TCP of these ports and hosts."""
    parts = ["tcp"]
    if ports:
        parts.append("(" + " or ".join(f"port {port}" for port in ports) + ")")
    if hosts:
        parts.append("(" + " or ".join(f"host {host}" for host in hosts) + ")")
    return " and ".join(parts)


def _grant(name: str) -> str:
    python = os.path.realpath(sys.executable)
    if sys.platform != "linux":
        return f"capturing needs more rights: sudo kwire sniff -i {name}"
    return (
        f"capturing needs the right CAP_NET_RAW: sudo kwire sniff -i {name}, "
        f"or once for all: sudo setcap cap_net_raw+ep {python}"
    )
