"""Memory that was freed in small pieces goes back to the system, where the C library can do that (glibc): larger ones
do not fit between those that stay, so that a process would take both."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Releases the pages of the heap that hold nothing. It goes over the heap: not for every block."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library
        return
    trim(0)
