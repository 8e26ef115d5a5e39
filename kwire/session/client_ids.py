"""The client ids of many exchanges, read from a buffer; each distinct id is decoded once."""

from __future__ import annotations

import numpy as np

from kwire.wire.columns import Ints


def client_ids_at(buffer: bytes, starts: Ints, lengths: Ints) -> tuple[list[str | None], Ints]:
    """The distinct client ids, and for each row its index among them; length -1 is None."""
    known: dict[bytes | None, int] = {}
    spans = zip(starts.tolist(), lengths.tolist(), strict=True)
    names = [None if size < 0 else buffer[start : start + size] for start, size in spans]
    which = [known.setdefault(name, len(known)) for name in names]
    texts = [None if name is None else name.decode("utf-8", "surrogateescape") for name in known]
    return texts, np.array(which, np.int64)
