"""Logins that fail: a mechanism that the listener does not offer, a wrong password, a token that has expired.

Sees the errors of SaslHandshake and SaslAuthenticate: UNSUPPORTED_SASL_MECHANISM (33) with the Mechanisms offered,
ILLEGAL_SASL_STATE (34), SASL_AUTHENTICATION_FAILED (58); after SaslHandshake v0, whose tokens have no answers with
errors, connections that the broker closes before any request (KIP-43, KIP-152); SessionLifetimeMs (KIP-368).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.analyze.connect_attempts import packet_of
from kwire.analyze.detectors import Detector, Watch
from kwire.analyze.findings import Finding, Reference, about
from kwire.analyze.tally import Tallies
from kwire.counted import counted
from kwire.schema import codes
from kwire.schema.keys import SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwire.session.record import error_name

if TYPE_CHECKING:
    from kwire.analyze.case import Case
    from kwire.session.connection_info import ConnectionCoverage, ConnectionInfo
    from kwire.session.exchange import Exchange

CLOSED = codes.NONE  # no answer: the broker closed the connection
MOST = 10_000
WHY = {
    "PLAIN": "the user is unknown or the password is wrong",
    "SCRAM-SHA-256": "the user is unknown, has no SCRAM-SHA-256 credentials, or the password is wrong",
    "SCRAM-SHA-512": "the user is unknown, has no SCRAM-SHA-512 credentials, or the password is wrong",
    "OAUTHBEARER": "the token has expired, or its issuer, audience or signature is not what the broker expects",
    "GSSAPI": "Kerberos refused: clocks, the service's name, the keytab",
}
CHECK = "Check user and password in sasl.jaas.config, and the broker's log for the reason."
ADVICE = {
    "OAUTHBEARER": "Check both clocks, how long tokens last, and what the broker expects (sasl.oauthbearer.expected.*)"
                   " and keys; its log has the reason.",
    "GSSAPI": "Check the clocks, sasl.kerberos.service.name, the keytab and the broker's host name; its log has the "
              "reason.",
}  # fmt: skip
Key = tuple[str, str, str, str, str]  # client id, host, broker, mechanism, principal


class Logins(Watch):
    def __init__(self, case: Case, limits: Mapping[str, float]) -> None:
        super().__init__(case, limits)
        self.offered: dict[str, list[str]] = {}  # mechanisms, by broker
        self.refused: Tallies[Key] = Tallies()
        self.error: dict[Key, int] = {}  # the last one; 0 where the broker closed
        self.words: dict[Key, str] = {}
        self.good: dict[Key, int] = {}  # when such a login last went well
        self.short: Tallies[Key] = Tallies()

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        kind = request.api if request is not None else None
        if request is None or response is None or kind is None:
            return
        key = _key(exchange.connection)
        answer, error, proof = response.body() or {}, exchange.error, Reference.of(response)
        if kind.key == SASL_HANDSHAKE:
            if "Mechanisms" in answer and len(self.offered) < MOST:
                self.offered[key[2]] = list(answer["Mechanisms"])
            if error:
                self._refuse((*key[:3], (request.body() or {}).get("Mechanism", ""), ""), proof, error)
        elif error:
            self._refuse(key, proof, error, answer.get("ErrorMessage") or "")
        else:
            self.good[key] = max(response.time, self.good.get(key, 0))
            if 0 < answer.get("SessionLifetimeMs", 0) < self.limit("lifetime_ms"):
                self.short.add(key, proof, response.time, answer["SessionLifetimeMs"])

    def _refuse(self, key: Key, proof: Reference, error: int, words: str = "") -> None:
        self.refused.add(key, proof, proof.time)
        if key in self.refused.known:
            self.error[key] = error
            self.words[key] = self.words.get(key) or words

    def connection(self, connection: ConnectionInfo, coverage: ConnectionCoverage) -> None:
        """After SaslHandshake v0: a broker that closes in the midst of the tokens has refused them."""
        login, tcp, key = connection.login, connection.tcp, _key(connection)
        if not connection.identity.mechanism:
            return
        if not login.fresh and not login.active:
            self.good[key] = max(tcp.first_time, self.good.get(key, 0))
        ended = tcp.ended_by
        closed = ended is not None and ended[1] == connection.sides[1]
        if login.token_after is not None and coverage.whole and coverage.opened and closed and ended is not None:
            number = next((packet for side, packet in tcp.closing if side == ended[1]), 0)
            known = (*key[:4], "") in self.refused.known  # its mechanism was refused, and told so
            if not known:
                self._refuse(key, packet_of(connection, number, ended[0], "close"), CLOSED)

    def findings(self) -> Iterator[Finding]:
        for key, tally in self.refused.known.items():
            client, host, broker, mechanism, principal = key
            error = self.error[key]
            who = f"{principal} at {host}" if principal else f"{client} at {host}" if client else host
            times = f", {counted(tally.count, 'time')}" if tally.count > 1 else ""
            if error == codes.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(self.offered.get(broker, ())) or "none that is shown"
                what = f"{who} wants {mechanism or 'a mechanism'}, which {broker} does not offer{times}; "
                what += f"it offers {offered}"
                advice = f"Set sasl.mechanism to one of {offered}, or enable it (sasl.enabled.mechanisms)."
            else:
                why = WHY.get(mechanism, "the broker does not take the credentials")
                how = "by closing the connection" if error == CLOSED else f"({error_name(error)})"
                what = f"{broker} refuses the {mechanism or 'SASL'} login of {who} {how}{times}: {why}"
                advice = ADVICE.get(mechanism, CHECK)
            went = self.good.get(key, 0) > tally.last
            what += "; a later login went well" if went else ""
            yield Finding(
                "warning" if went else "error", what, tuple(tally.samples), advice, time=tally.first, last=tally.last,
                about=about(client_id=client, address=host, broker=broker, principal=principal), count=tally.count,
                words=self.words.get(key, ""),
                otherwise="a login of the same user with the same mechanism goes well",
            )  # fmt: skip
        for (client, host, broker, mechanism, principal), tally in self.short.known.items():
            what = f"the {mechanism} login of {principal or client or host} lasts {tally.most:,} ms only"
            yield Finding("warning", what, tuple(tally.samples), "Give out tokens that last longer.",
                          time=tally.first, last=tally.last, count=tally.count,
                          about=about(client_id=client, address=host, broker=broker, principal=principal))  # fmt: skip


def _key(connection: ConnectionInfo) -> Key:
    client, broker = connection.ends
    identity = connection.identity
    host = client.rpartition(":")[0].strip("[]")
    return connection.client_id or "", host, broker, identity.mechanism or "", identity.principal or ""


DETECTOR = Detector(
    "logins that fail: mechanism, password, token",
    watch=Logins,
    fields="errors of SaslHandshake and SaslAuthenticate; closes after bare tokens; SessionLifetimeMs",
    source="KIP-43, KIP-152, KIP-368; org.apache.kafka.common.security.authenticator.SaslServerAuthenticator",
    means="The broker does not take the login: its mechanism, or who it says it is.",
    proof="The answer with the error, or the broker's close in the midst of the tokens.",
    advice="Check mechanism, user and password; for tokens the clocks, issuer and audience.",
    thresholds={"lifetime_ms": 30_000},
    exchanges=(SASL_HANDSHAKE, SASL_AUTHENTICATE),
    connections=True,
)
