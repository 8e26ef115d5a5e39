"""What ApiVersions tells brokers of this client: its name and version."""

from __future__ import annotations

from kwire import __version__

SAID = {"ClientSoftwareName": "kwire", "ClientSoftwareVersion": __version__}
