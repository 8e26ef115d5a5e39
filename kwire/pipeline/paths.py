"""Paths in Spark's notation: local, or of another file system."""

from __future__ import annotations

import re

SCHEME = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
FILE = re.compile(r"^file:/+", re.IGNORECASE)


def is_elsewhere(path: str) -> bool:
    """Whether a path is in another file system: hdfs:, s3a:, gs: and so on."""
    return SCHEME.match(path) is not None


def local(path: str) -> str:
    """A path without file:. Spark does not use %-escapes behind file:."""
    return FILE.sub("/", path)
