"""What ApiVersions tells brokers of this client: its name and version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

NAME = "kwire"
try:
    VERSION = version(NAME)
except PackageNotFoundError:  # run from a folder
    VERSION = "0"
SAID = {"ClientSoftwareName": NAME, "ClientSoftwareVersion": VERSION}
