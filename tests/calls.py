"""The type of fixtures that are functions: makers of files, readers, comparisons."""

from collections.abc import Callable
from typing import Any

Call = Callable[..., Any]
