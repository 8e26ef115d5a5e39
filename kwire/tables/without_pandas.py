"""Arrow without pandas.

pyarrow imports pandas, if installed, with its first array: a quarter of a second that no command needs. to_pandas()
still imports it when called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pyarrow as pa


def load() -> None:
    """Makes pyarrow's first array while pandas cannot be imported."""
    sys.meta_path.insert(0, _Without)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(_Without)


class _Without:
    """An importer that fails for pandas and leaves other names to the next one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004
        """Called by importlib."""
        if name == "pandas":
            raise ModuleNotFoundError(name)
