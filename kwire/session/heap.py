"""Returns memory that was freed in small pieces to the system (glibc only): larger blocks do not fit into the gaps, so
without this the process would hold both."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Releases the heap's empty pages. It walks over the whole heap, so do not call it for every block."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library
        return
    trim(0)
