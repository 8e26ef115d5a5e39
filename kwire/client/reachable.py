"""What metadata and the addresses in it say to a consumer: which brokers it would talk to, and where it would hang."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from kwire.client.address import Address
from kwire.client.bootstrap import Attempt, View
from kwire.client.walk.step import ERROR, NOTE, OK, Detail
from kwire.client.walk.step_recorder import words
from kwire.schema import codes
from kwire.schema.errorcodes import errors

SHOWN = 12  # brokers or partitions, a line each
RUNS = 8
LEADERLESS = -1


class Reachability(NamedTuple):
    """ends: nothing can be read of the topic, so the walk is over."""

    verdict: str
    text: str
    details: list[Detail]
    advice: str | None
    ends: bool


def of_metadata(view: View, topic: str, entry: Address, reached: dict[Address, Attempt]) -> Reachability:
    """Told of step 1. A topic that is missing ends the walk; brokers that cannot be reached do not, yet."""
    text = f"{entry} answers: {_some(len(view.brokers), 'broker')}"
    text += f", cluster {view.cluster_id}" if view.cluster_id else ""
    details = [_broker(view, node, address, entry, reached) for node, address in sorted(view.brokers.items())]
    away = [detail for detail in details if detail.verdict == ERROR]
    details = [*away, *(detail for detail in details if detail.verdict != ERROR)]
    if len(details) > SHOWN:
        details = [*details[:SHOWN], Detail(f"… {len(details) - SHOWN} more brokers")]
    if view.error:
        return _no_topic(view, topic, text, details)
    details += _partitions(view, topic, reached)
    lost = any(detail.verdict == ERROR for detail in details)
    advice = None
    if away:
        advice = (
            "A real client uses the bootstrap address only once, then these: have the brokers advertise addresses "
            "that clients can reach (advertised.listeners), or make these resolve and route."
        )
    return Reachability(ERROR if lost else OK, text, details, advice, False)


def _no_topic(view: View, topic: str, text: str, details: list[Detail]) -> Reachability:
    label = errors.label(view.error)
    _, cure = words(view.error)
    if view.error == codes.UNKNOWN_TOPIC_OR_PARTITION:
        cure = (
            "Create it, or check its name. A real consumer warns, asks for metadata again and again, joins the group "
            "and gets no partitions; where the broker creates topics by itself, its asking makes an empty one."
        )
    return Reachability(ERROR, text, [*details, Detail(f"topic {topic}: {label}", ERROR)], cure, True)


def _broker(
    view: View, node: int, address: Address, entry: Address, reached: dict[Address, Attempt]
) -> Detail:  # fmt: skip
    attempt = reached.get(address)
    leads = [row.index for row in view.partitions if row.leader == node]
    role = f", leads {numbers(leads)}" if leads else ""
    if attempt is None:
        return Detail(f"broker {node} at {address}: not tried", NOTE)
    if attempt.failure is None:
        return Detail(f"broker {node} at {address}: reached in {attempt.took / 1e6:.1f} ms{role}")
    reason = getattr(attempt.failure, "reason", str(attempt.failure))
    return Detail(f"broker {node} advertises {address}{role}: {reason}{_local(address, entry)}", ERROR)


def _local(address: Address, entry: Address) -> str:
    """The hint for the address of a machine's own, seen from another."""
    if _loopback(address.host) and not _loopback(entry.host):
        return "; that is this machine itself, not the broker's"
    return ""


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback or ip_address(host).is_unspecified
    except ValueError:
        return False


def _partitions(view: View, topic: str, reached: dict[Address, Attempt]) -> list[Detail]:
    rows = view.partitions
    down = {node for node, address in view.brokers.items() if address in reached and reached[address].failure}
    behind = [row for row in rows if len(row.in_sync) < len(row.replicas)]
    text = f"topic {topic}: {_some(len(rows), 'partition')}, {_some(len(rows[0].replicas), 'replica') if rows else ''}"
    text += "" if not rows or behind else ", all in sync"
    out = [Detail(text.removesuffix(", "))]
    headless = [row.index for row in rows if row.leader == LEADERLESS or row.leader not in view.brokers]
    if headless:
        out.append(Detail(f"without a leader: {_which(headless)}; poll() gives nothing of it", ERROR))
    if behind:
        shown = [f"{row.index} ({numbers(row.in_sync)} of {numbers(row.replicas)})" for row in behind[:SHOWN]]
        out.append(Detail(f"replicas not in sync: {', '.join(shown)}", NOTE))
    stuck = [row.index for row in rows if row.leader in down]
    if stuck:
        out.append(Detail(f"a real client hangs at {_which(stuck)}: the leader cannot be reached", ERROR))
    return out


def numbers(values: Sequence[int] | Iterable[int]) -> str:
    """0-3, 7; of many, the first."""
    out: list[list[int]] = []
    for value in sorted(values):
        if out and value == out[-1][-1] + 1:
            out[-1] = [out[-1][0], value]
        else:
            out.append([value])
    more = f" and {len(out) - RUNS} more" if len(out) > RUNS else ""
    return ", ".join("-".join(map(str, run)) for run in out[:RUNS]) + more


def _which(partitions: Sequence[int]) -> str:
    return f"partition{'' if len(partitions) == 1 else 's'} {numbers(partitions)}"


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
