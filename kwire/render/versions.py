"""What versions brought, which releases speak them, and two versions side by side."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.codec.plan import Plan, StructPlan
from kwire.render.lines import Line, Piece, paragraph, table
from kwire.schema.model import Definition, MessageSchema, Versions

FOUR = (4, 0)


def accepted(definition: Definition) -> str:
    """Which versions a 4.x broker takes, from the releases that kwire knows."""
    if not definition.is_api or not definition.releases:
        return ""
    before = [release for release in definition.releases if release.order < FOUR]
    since = [release for release in definition.releases if release.order >= FOUR]
    if before and not any(release.order == FOUR for release in since):
        since.insert(0, before[-1]._replace(release="4.0"))
    texts = []
    for release, following in zip(since, [*since[1:], None], strict=True):
        last = f"{following.order[0]}.{following.order[1] - 1}" if following and following.order[1] else release.release
        span = release.release if last == release.release else f"{release.release} to {last}"
        newest = release.versions.high
        unstable = f" (v{newest} not yet stable)" if release.highest_stable < newest else ""
        texts.append(f"{span}: {f'v{release.versions}{unstable}' if release.versions else 'none, removed'}")
    return "Kafka " + ", ".join([*texts[:-1], texts[-1].replace(":", " and later:")])


def first_release(definition: Definition, version: int) -> str:
    """The first release that kwire knows to speak a version; "-2.2" for older than its facts reach."""
    for release in definition.releases:
        if version in release.versions:
            oldest = release is definition.releases[0] and release.order <= (2, 2)
            return f"≤{release.release}" if oldest else release.release
    return ""


def versions_table(definition: Definition, width: int) -> Iterator[Line]:
    """What each version brought, and which release first spoke it."""
    rows: list[list[Piece]] = []
    for version in definition.messages[0].versions.each():
        text = brought(definition, version)
        rows.append([(f"  v{version}", "name"), (first_release(definition, version), "dim"), (text, "")])
    yield from table(["  version", "Kafka", "what it brought"], rows, width)


def brought(definition: Definition, version: int) -> str:
    """What a version brought, in our words or by comparison."""
    return dict(definition.changes).get(version) or "; ".join(changes(definition, version)) or "Same fields."


def changes(definition: Definition, version: int) -> Iterator[str]:
    """The fields that come and go with a version, by comparison with the one before."""
    for message in definition.messages:
        if version - 1 not in message.versions:
            continue
        fields = [(path, field) for path, field in message.walk()]
        come = [path for path, field in fields if field.versions.low == version]
        gone = [path for path, field in fields if field.versions.high == version - 1]
        if come:
            yield f"{message.kind} adds {', '.join(come)}"
        if gone:
            yield f"{message.kind} drops {', '.join(gone)}"
        if message.flexible.low == version:
            yield f"{message.kind} is flexible"


def diff_lines(definition: Definition, message: MessageSchema, old: Plan, new: Plan, width: int) -> Iterator[Line]:
    """Two versions of a message side by side, structs indented; what differs is marked."""
    yield [(f"{message.name} v{old.version} and v{new.version}", "title")]
    rows = compared(old, new)
    names = ["  " * path.count(".") + path.rpartition(".")[2] for path, _, _ in rows]
    wide = max(map(len, ["field", *names]))
    kind = max([8, *(len(a) for _, a, _ in rows)])
    yield [(f"    {'field':<{wide}}  {f'v{old.version}':<{kind}}  v{new.version}", "head")]
    for name, (_, a, b) in zip(names, rows, strict=True):
        mark, style = ("+", "good") if not a else ("-", "error") if not b else ("~", "note") if a != b else (" ", "")
        yield [(f"  {mark} {name:<{wide}}  {a:<{kind}}  {b}", style)]
    words = dict(definition.changes)
    span = Versions(min(old.version, new.version) + 1, max(old.version, new.version))
    for version in span.each():
        if words.get(version):
            yield from paragraph(words[version], width, f"  v{version:<3} ", hang=" " * 7)


def compared(old: Plan, new: Plan) -> list[tuple[str, str, str]]:
    """Every field's path with its type in the one and in the other version, "" where it is not there."""
    left, right = _outline(old.root, ""), _outline(new.root, "")
    paths = list(dict.fromkeys([*left, *right]))
    order = {path: index for index, path in enumerate(right)}
    paths.sort(key=lambda path: (order.get(path, _before(path, left, order)), path not in left))
    return [(path, left.get(path, ""), right.get(path, "")) for path in paths]


def _outline(plan: StructPlan, path: str) -> dict[str, str]:
    """Every field's path and type."""
    out: dict[str, str] = {}
    for slot in (*plan.slots, *plan.tagged.values()):
        tag = f" · tag {slot.tag}" if slot.tag is not None else ""
        out[path + slot.name] = slot.label + tag
        if slot.struct:
            out |= _outline(slot.struct, f"{path}{slot.name}.")
    return out


def _before(path: str, left: dict[str, str], order: dict[str, int]) -> int:
    """Where a field that is gone stood: behind its last sibling that is still there."""
    place = -1
    for known in left:
        if known == path:
            break
        place = order.get(known, place)
    return place
