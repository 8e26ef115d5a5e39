"""Why a broker closed the connection instead of answering: asked on a connection of its own.

A broker closes without a word when it does not serve an API or a version (every API but ApiVersions), when the listener
wants SASL first, and when it does not know ApiVersions itself (before 0.10). SaslHandshake tells a listener with SASL
from one without: the one names its mechanisms (error 33), the other has no use for it (error 34).
"""

from __future__ import annotations

from kwire.client.address import Address
from kwire.client.connection import BrokerConnection, unserved
from kwire.client.inbox import WANTS_TLS
from kwire.client.security import Security
from kwire.codec.library import Library
from kwire.errors import Failure, KwireError
from kwire.schema import codes


def why_closed(
    address: Address, security: Security, api: str, version: int, timeout: float, library: Library | None = None
) -> str | None:
    """A clause, or None when nothing can be found out."""
    bare = Security(security.tls, security.ca, security.cert, security.key, security.insecure)
    try:
        with BrokerConnection.open(address, bare, timeout=timeout, library=library) as connection:
            refused = _version(connection, api, version)
            if refused:
                return refused
            if security.mechanism is None:
                answer = connection.request("SaslHandshake", 1, {"Mechanism": ""}).body()
                if answer["ErrorCode"] == codes.UNSUPPORTED_SASL_MECHANISM:
                    return f"this listener wants a login: --sasl {' or '.join(answer['Mechanisms'])}"
    except Failure as failure:
        if failure.hint == WANTS_TLS:
            return WANTS_TLS
        if failure.kind == "closed" and "ApiVersions" in failure.reason:
            return "it closes on ApiVersions too: a broker before 0.10, or no broker"
        return "nothing listens there any more" if failure.kind == "refused" else None
    except (KwireError, OSError):
        return None
    return None


def _version(connection: BrokerConnection, api: str, version: int) -> str | None:
    definition = connection.library.registry.find(api).definition
    theirs = (connection.offered or {}).get(definition.key or 0)
    if theirs is None:
        return unserved(definition.name, connection.offered or {})
    if version not in theirs:
        gone = [row.release for row in definition.releases if version < row.versions.low]
        since = f", which Kafka {gone[0]} removed" if gone and version < theirs.low else ""
        return f"it takes {definition.name} v{theirs}, not v{version}{since}"
    return None
