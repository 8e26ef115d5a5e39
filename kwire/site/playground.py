"""The playground's page: a field for bytes, what they are, the diagram. Its script is playground.js."""

from __future__ import annotations

from kwire.render.html.markup import LINE, Markup, element, joined
from kwire.site.bundle import CODE, FOLDER, Pyodide

FORMATS = {"text": "diagram", "tree": "tree", "hex": "hex", "json": "JSON"}
INPUTS = {
    "auto": "found out",
    "raw": "raw",
    "hex": "hex",
    "base64": "base64",
    "dump": "a dump",
    "escapes": "escapes",
    "array": "an array",
}


def playground_body(pyodide: Pyodide) -> Markup:
    """The page's content."""
    if not pyodide.there:
        told = "This site was made without Pyodide: kwire site DIR --pyodide FOLDER gives it a playground. Until then: "
        return element("p", told, element("code", "kwire decode < bytes.bin"))
    captures = "yes" if pyodide.numpy else "maybe" if pyodide.address else "no"
    place = pyodide.address or f"{FOLDER}/"
    told = (
        "Paste a frame, a message or a record batch in any form: hex, base64, literals of a program, the text of "
        "Wireshark or xxd. Or choose or drop a file. All is done in this page: nothing is sent anywhere."
    )
    capture_words = {
        "yes": "A capture (pcap, pcapng) gives a list of its exchanges.",
        "maybe": "A capture (pcap, pcapng) gives a list of its exchanges, where the address of Pyodide has numpy.",
        "no": "Captures are not read here: that needs a Pyodide with numpy. kwire read CAPTURE does.",
    }[captures]
    field = element(
        "textarea", id="bytes", rows=8, spellcheck="false", autocomplete="off", autocapitalize="off",
        placeholder="00 00 00 0a 00 00 00 11 00 00 00 00 00 1b",
    )  # fmt: skip
    choices = [
        _labelled("What it is", element("input", id="as", placeholder="found out", size=22, spellcheck="false")),
        _labelled("version", element("input", id="v", size=4, inputmode="numeric")),
        _labelled("form", _select("input", INPUTS)),
        _labelled("show", _select("format", FORMATS)),
        element("label", element("input", type="checkbox", id="full"), " all bytes"),
    ]
    buttons = [
        element("button", "Decode", id="go", type="button", title="Ctrl+Enter"),
        element("button", "Stop", id="stop", type="button", disabled=True),
        element("button", "Copy link", id="share", type="button"),
        _labelled("File", element("input", type="file", id="file")),
    ]
    need = "The playground needs JavaScript; kwire decode does the same in a terminal."
    return joined(
        [
            element("noscript", element("p", need, class_="error")),
            element("p", told),
            element("p", capture_words, class_="dim"),
            element("div", element("label", "Bytes", for_="bytes"), field, class_="tool"),
            element("div", *choices, class_="choices tool"),
            element("div", *buttons, class_="choices tool"),
            element("p", "", id="state", role="status", class_="dim"),
            element("div", id="exchanges"),
            element("p", "", id="said", class_="note"),
            element("pre", "", id="out", class_="lines", tabindex=0, aria_label="Diagram"),
            element(
                "div", id="setting", hidden=True, data_pyodide=place, data_code=CODE, data_captures=captures,
            ),
        ],
        LINE,
    )  # fmt: skip


def _labelled(text: str, field: Markup) -> Markup:
    return element("label", f"{text} ", field)


def _select(name: str, values: dict[str, str]) -> Markup:
    return element("select", *(element("option", text, value=value) for value, text in values.items()), id=name)
