"""Arrow without pandas.

With its first array Arrow imports pandas where that is installed, a quarter of a second for what no command needs. What
was imported before stays, and to_pandas() imports it when it is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

import pyarrow as pa


def load() -> None:
    """Lets Arrow make its first array while there is no pandas."""
    sys.meta_path.insert(0, _Without)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(_Without)


class _Without:
    """Finds nothing under that name, and leaves all else to others."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:  # noqa: ARG004
        """As importlib asks."""
        if name == "pandas":
            raise ModuleNotFoundError(name)
