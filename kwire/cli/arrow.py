"""Arrow for the commands that need it."""

from __future__ import annotations

import importlib.util

from kwire.errors import MissingPackage


def need(*packages: str, command: str, extra: str = "table") -> None:
    """Loads Arrow when these packages are there. Raises MissingPackage."""
    if not all(map(importlib.util.find_spec, packages)):
        raise MissingPackage(f"{command} needs {' and '.join(packages)}: pip install 'kwire[{extra}]'")
    from kwire.tables.without_pandas import load

    load()
