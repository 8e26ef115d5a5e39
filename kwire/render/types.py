"""The pages of the wire's types, from schema/types.txt."""

from __future__ import annotations

from kwire.schema.shipped import folder_of


def read_types() -> dict[str, tuple[str, str]]:
    """types.txt: {word: (title, text)}; a block begins with "type NAME NAME…" and its title behind " · "."""
    out: dict[str, tuple[str, str]] = {}
    words: list[str] = []
    title, body = "", list[str]()

    def end() -> None:
        text = "\n\n".join(" ".join(part.split()) for part in "\n".join(body).split("\n\n")).strip()
        out.update(dict.fromkeys(words, (title, text)))

    types = folder_of("kwire.schema") / "types.txt"
    for line in types.read_text(encoding="utf-8").splitlines():
        if line.startswith("type "):
            end()
            names, _, title = line.removeprefix("type ").partition(" · ")
            words, body = names.split(), []
        else:
            body.append(line.strip())
    end()
    return out
