"""A wide-area network in one process: two tun devices, one here and one in a network namespace, between which packets
are carried with a delay, and a NAT gateway that may forget connections: it drops their packets, and says nothing.

    with Wan() as wan:                                # 10.77.0.1 here, 10.77.0.2 in the namespace
        wan.delay = 0.06                              # seconds, each way
        subprocess.run([*wan.inside, "command", …])   # on the other side
        wan.forget()                                  # the connections seen so far are cut
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time

HERE, THERE = "10.77.0.1", "10.77.0.2"
NAMESPACE, DEVICE = "kwire-wan", "kwan0"
TUNSETIFF, TUN, NO_INFO = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000


def tun(name: str) -> int:
    """A tun device's descriptor."""
    handle = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(handle, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN | NO_INFO))
    return handle


def enter(path: str) -> None:
    """This thread goes into a network namespace."""
    handle = os.open(path, os.O_RDONLY)
    wrong = ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET)
    os.close(handle)
    assert wrong == 0, os.strerror(ctypes.get_errno())


def flow(packet: bytes) -> tuple[bytes, ...]:
    """The two ends of a TCP packet, in one order for both directions."""
    at = (packet[0] & 15) * 4
    ends = packet[12:16] + packet[at : at + 2], packet[16:20] + packet[at + 2 : at + 4]
    return tuple(sorted(ends))


class Wan:
    """inside: the command that runs another one at the far end."""

    inside = ("ip", "netns", "exec", NAMESPACE)

    def __init__(self) -> None:
        self.delay = 0.0
        self._seen: set[tuple[bytes, ...]] = set()
        self._cut: set[tuple[bytes, ...]] = set()
        self._halt = False

    def __enter__(self) -> Wan:
        self._run("ip", "netns", "del", NAMESPACE, must=False)
        self._run("ip", "netns", "add", NAMESPACE)
        self._near = tun(DEVICE)
        home = "/proc/self/ns/net"
        before = os.open(home, os.O_RDONLY)
        enter(f"/var/run/netns/{NAMESPACE}")
        self._far = tun(DEVICE)
        enter(f"/proc/self/fd/{before}")
        os.close(before)
        for prefix, own, peer in (((), HERE, THERE), (self.inside, THERE, HERE)):
            self._run(*prefix, "ip", "addr", "add", own, "peer", peer, "dev", DEVICE)
            self._run(*prefix, "ip", "link", "set", DEVICE, "up")
        self._thread = threading.Thread(target=self._carry)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._halt = True
        self._thread.join()
        os.close(self._near)
        os.close(self._far)
        self._run("ip", "netns", "del", NAMESPACE)

    def forget(self) -> None:
        """Connections seen so far are no longer carried."""
        self._cut |= self._seen

    def _carry(self) -> None:
        waiting: list[tuple[float, int, int, bytes]] = []
        count = 0
        other = {self._near: self._far, self._far: self._near}
        while not self._halt:
            pause = min(0.1, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.1
            for handle in select.select([self._near, self._far], [], [], pause)[0]:
                packet = os.read(handle, 65536)
                if packet[0] >> 4 != 4:
                    continue
                ends = flow(packet)
                self._seen.add(ends)
                if ends not in self._cut:
                    count += 1
                    heapq.heappush(waiting, (time.monotonic() + self.delay, count, other[handle], packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(waiting)
                os.write(to, packet)

    @staticmethod
    def _run(*command: str, must: bool = True) -> None:
        subprocess.run(command, check=must, capture_output=True)
