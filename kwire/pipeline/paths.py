"""Paths as Spark writes them: of this machine, or of a file system that only Spark reads."""

from __future__ import annotations

import re

SCHEME = re.compile(r"(?!file:)[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
FILE = re.compile(r"^file:/+", re.IGNORECASE)


def is_elsewhere(path: str) -> bool:
    """Whether a path names another file system: hdfs:, s3a:, gs: and so on."""
    return SCHEME.match(path) is not None


def local(path: str) -> str:
    """A path as this machine writes it. Spark takes, and gives, what follows file: as it is, without %-escapes."""
    return FILE.sub("/", path)
