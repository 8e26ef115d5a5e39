"""An audit for a person."""

from __future__ import annotations

from scenes import Scene
from session.conftest import block

from kwire.analyze.audit import Audit
from kwire.render.audit import audit_lines
from kwire.session.reader import Reader


def test_a_blocked_client() -> None:
    scene = Scene()
    scene.connect(0, "rdkafka").ask(1, "Fetch", 2, {"Topics": []}, {"Responses": []})
    audit, reader = Audit(), Reader("made.pcap")
    for batch in (*reader.feed(block(scene.packets, 1)), *reader.finish()):
        audit.add(batch)
    text = ["".join(piece for piece, _ in line) for line in audit_lines(audit, audit.verdicts((4, 0)), "to 4.0", 100)]
    assert text[0].startswith("to 4.0  1 blocked  0 unproven  0 ready  1 client seen")
    assert text[2] == "blocked    rdkafka (librdkafka by its client id)  from 10.0.0.7  without ApiVersions"
    assert text[3].strip() == "Fetch v2 (takes v4 to v17)"
    assert text[4].strip().startswith("→ librdkafka 1.8.2 or newer")
