"""kwire sql: arguments, forms, what a terminal gets, and the prompt."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kwire.cli.prompt import history_file
from kwire.errors import Exit

ROOT = Path(__file__).parents[2]
CLASSIC = "fixtures/captures/classic.pcap.gz"
BY_API = "select api, count(*) as count from exchanges group by api order by count desc, api limit 3"
ROWS = [("Fetch", 64), ("Heartbeat", 32), ("Metadata", 16)]


def test_a_table(kwire: Any) -> None:
    ran = kwire("sql", CLASSIC, BY_API)
    assert ran.text == "api        count\nFetch         64\nHeartbeat     32\nMetadata      16\n3 rows\n"
    assert (ran.status, ran.err) == (Exit.OK, "")


def test_json_is_an_object_a_line(kwire: Any) -> None:
    found = [json.loads(line) for line in kwire("sql", CLASSIC, BY_API, "--format", "json").text.splitlines()]
    assert found == [{"api": api, "count": count} for api, count in ROWS]


def test_json_has_no_nan(kwire: Any) -> None:
    ran = kwire("sql", CLASSIC, "select 'nan'::double as a, [1e400] as b, 'x'::blob as c", "--format", "json")
    assert ran.text == '{"a": null, "b": [null], "c": "eA=="}\n'


def test_csv(kwire: Any) -> None:
    text = kwire("sql", CLASSIC, "select 'a,b' as x, null as y, true as z, [1, 2] as l", "--format", "csv").text
    assert list(csv.reader(io.StringIO(text))) == [["x", "y", "z", "l"], ["a,b", "", "true", "[1, 2]"]]


HARM = "select '=1+1' as \"@x\", chr(27) || '[31m' as y, -1 as n, chr(9) || '=1' as t"


def test_csv_holds_no_formulas_and_no_controls_unless_it_is_raw(kwire: Any, tmp_path: Path) -> None:
    safe = "'@x,y,n,t\n'=1+1,\\x1b[31m,-1,\\t=1\n"
    assert kwire("sql", CLASSIC, HARM, "--format", "csv").text == safe
    assert kwire("sql", CLASSIC, HARM, "--format", "csv", "--raw").text == "@x,y,n,t\n=1+1,\x1b[31m,-1,\t=1\n"
    target = tmp_path / "x.csv"
    kwire("sql", CLASSIC, HARM, "-o", str(target))
    assert target.read_text() == safe


def test_markdown(kwire: Any) -> None:
    text = kwire("sql", CLASSIC, "select 'a|b' as x, 1 as n", "--format", "markdown").text
    assert text == "| x | n |\n| --- | ---: |\n| a\\|b | 1 |\n"


@pytest.mark.parametrize(("name", "form"), [("x.parquet", None), ("x", "parquet")])
def test_parquet_to_a_file(name: str, form: str | None, tmp_path: Path, kwire: Any) -> None:
    path = tmp_path / name
    assert kwire("sql", CLASSIC, BY_API, "-o", str(path), *(["--format", form] if form else [])).status == 0
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == ROWS
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_to_a_pipe(kwire: Any) -> None:
    assert pq.read_table(io.BytesIO(kwire("sql", CLASSIC, BY_API, "--format", "parquet").out)).num_rows == 3


def test_what_fails_leaves_no_file(tmp_path: Path, kwire: Any) -> None:
    ran = kwire("sql", CLASSIC, "select interval 1 day", "-o", str(tmp_path / "x.parquet"))
    assert ran.status == Exit.USAGE
    assert list(tmp_path.iterdir()) == []


def test_text_from_the_wire_is_shown_and_not_obeyed(kwire: Any) -> None:
    query = "select chr(27) || '[31m' || chr(8238) as x"
    assert "\\x1b[31m\\u202e" in kwire("sql", CLASSIC, query).text
    assert "\\x1b[31m\\u202e" in kwire("sql", CLASSIC, query, "--format", "markdown").text


def test_several_captures_are_asked_together(kwire: Any) -> None:
    query = "select capture, count(*) as n from messages group by capture order by capture"
    text = kwire("sql", CLASSIC, "fixtures/captures/ipv6.pcap", query, "--format", "csv").text
    assert [row.split(",")[0] for row in text.splitlines()] == ["capture", "classic.pcap.gz", "ipv6.pcap"]


def test_the_prompts_commands_may_come_from_stdin(kwire: Any) -> None:
    ran = kwire("sql", CLASSIC, stdin=b"select 1 as a;\n.tables\nselect\n2 as b;\n\\x\nquit\nselect 3 as c", columns=80)
    assert ran.status == 0
    assert [line.split()[0] for line in ran.text.splitlines() if line[:1].isalpha()] == [
        "a", "table", "messages", "exchanges", "partitions", "batches", "group_events", "clients", "connections",
        "quality", "bodies", "findings", "audit", "b", "rows",
    ]  # fmt: skip
    assert kwire("sql", CLASSIC, stdin=b"help").text.startswith("command")
    assert kwire("sql", CLASSIC, stdin=b"quit\n").text == ""
    assert kwire("sql", CLASSIC, stdin=b"\\nix\n").err == "kwire: no command \\nix; \\? lists them\n"
    assert kwire("sql", CLASSIC, "--format", "json", stdin=b"\\dt\n").status == 2
    assert kwire("sql", CLASSIC, stdin=b"select '\n\\x\n' as a", columns=80).status == 0


def test_the_query_may_come_from_stdin(kwire: Any) -> None:
    assert kwire("sql", CLASSIC, stdin=b"select 1 as x;\nselect 2 as y;", columns=80).text == "y\n2\n1 row\n"


def test_connections_can_be_chosen(kwire: Any) -> None:
    assert kwire("sql", CLASSIC, "select count(*) as n from messages", "--port", "9").text == "n\n0\n1 row\n"


WRONG = [
    ([], "needs a CAPTURE"),
    (["select 1"], "needs a CAPTURE"),
    (["nowhere.pcap", "from messages"], "nowhere.pcap: No such file or directory"),
    ([CLASSIC, "messages"], "messages is no file, and no query"),
    ([CLASSIC, "select 1", "--report", "errors"], "a QUERY or --report NAME, not both"),
    ([CLASSIC, "--report", "eror"], "no report eror; did you mean errors?"),
    ([CLASSIC, "from messags"], "no table messags; did you mean messages?"),
    ([CLASSIC, "select"], "select is no file, and no query"),
    ([CLASSIC, "select 1 +"], 'syntax error at or near "+"'),
    ([CLASSIC, ""], "is no file, and no query"),
    (["-"], "stdin is the capture: needs a QUERY or --report NAME"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[case[1] for case in WRONG])
def test_what_is_wrong_is_said(arguments: list[str], message: str, kwire: Any) -> None:
    ran = kwire("sql", *arguments)
    assert (ran.status, ran.text) == (Exit.USAGE, "")
    assert message in ran.err


def test_nothing_of_kafka(kwire: Any) -> None:
    ran = kwire("sql", "fixtures/captures/tls.pcap", "select count(*) as n from exchanges", "--port", "1")
    assert ran.status == Exit.NOT_KAFKA
    assert "no Kafka on port 1; brokers elsewhere in it: 127.0.0.1:9094" in ran.err


def test_a_damaged_capture_is_said(tmp_path: Path, kwire: Any) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes((ROOT / "fixtures/captures/ipv6.pcap").read_bytes()[:-5])
    ran = kwire("sql", str(path), "select count(*) > 0 as some from messages")
    assert (ran.status, ran.text) == (Exit.MALFORMED, "some\ntrue\n1 row\n")
    assert ran.err.startswith("kwire: cut.pcap: ")


def test_a_capture_from_stdin(kwire: Any) -> None:
    data = (ROOT / CLASSIC).read_bytes()
    query = "select (select count(*) from exchanges) as e, (select count(*) from group_events) > 0 as g"
    assert kwire("sql", "-", query, stdin=data, columns=80).text == "  e  g\n166  true\n1 row\n"


def test_without_the_extra_it_says_so(kwire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    ran = kwire("sql", CLASSIC, "select 1 as x")
    assert ran.err == "kwire: kwire sql needs pyarrow and duckdb: pip install 'kwire[table]'\n"


def test_reports_are_listed_without_a_capture(kwire: Any) -> None:
    assert kwire("sql", "--reports").text.startswith("report      what\n")
    assert kwire("sql", "--reports", "--report", "errors").text.startswith("-- Error codes")


@pytest.mark.slow
def test_a_query_leaves_nothing_on_stderr() -> None:
    ran = _run("sql", CLASSIC, "from messags")
    assert (ran.returncode, ran.stderr) == (Exit.USAGE, "kwire: no table messags; did you mean messages?\n")
    assert _run("sql", CLASSIC, BY_API).stderr == ""


@pytest.mark.slow
def test_an_interrupt_is_clean() -> None:
    query = "select count(*) from range(100000000000) where range % 7 = 3"
    command = [sys.executable, "-m", "kwire", "sql", CLASSIC, query]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (out, err.strip()) == ("", "")
    assert running.returncode == Exit.INTERRUPTED


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kwire", *arguments], cwd=ROOT, capture_output=True, text=True)


class Terminal:
    """kwire on a terminal of its own."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._seen = ""
        self._mine, theirs = pty.openpty()
        variables = os.environ | {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"} | environment
        command = [sys.executable, "-m", "kwire", *arguments]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)

    def until(self, text: str, seconds: float = 60, again: str = "") -> str:
        """What it writes up to text, which must come. again: typed once more every five seconds until it does, since a
        signal between two looks of readline waits for the next key."""
        end, next_time = time.monotonic() + seconds, time.monotonic() + 5
        while text not in self._seen:
            assert time.monotonic() < end, self._seen
            if again and time.monotonic() > next_time:
                self.type(again)
                next_time += 5
            if select.select([self._mine], [], [], 0.2)[0]:
                try:
                    self._seen += os.read(self._mine, 65536).decode()
                except OSError:  # it ended
                    break
        before, found, self._seen = self._seen.partition(text)
        assert found, before
        seen = before + found
        return re.sub(r"\x1b\[[?\d;]*[a-zA-Z]|\x07", "", seen).replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def end(self) -> int:
        return self._process.wait(60)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._mine)


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[Terminal]:
    with closing(Terminal("sql", CLASSIC, XDG_STATE_HOME=str(tmp_path))) as terminal:
        terminal.until("kwire> ")
        yield terminal


def test_the_prompt_answers(prompt: Terminal, tmp_path: Path) -> None:
    prompt.type("select api, count(*) as count\n")
    prompt.until("... ")
    prompt.type("from exchanges group by api order by count desc limit 1;\n")
    assert "\nFetch     64\n1 row\n" in prompt.until("kwire> ")
    prompt.type("from messags;\n")
    assert "kwire: no table messags; did you mean messages?" in prompt.until("kwire> ")
    prompt.type("\\d\n")
    assert "group_events" in prompt.until("kwire> ")
    prompt.type("\\d clients\n")
    assert re.search(r"client_id +VARCHAR +as the client calls itself", prompt.until("kwire> "))
    prompt.type("\\r errors\n")
    assert "MEMBER_ID_REQUIRED" in prompt.until("kwire> ")
    prompt.type("\\r\n")
    assert "top-topics" in prompt.until("kwire> ")
    prompt.type("\\q\n")
    assert prompt.end() == 0
    history = (tmp_path / "kwire" / "sql_history").read_text()
    assert "from exchanges group by api order by count desc limit 1;" in history


def test_the_prompt_helps_whatever_help_is_called(prompt: Terminal) -> None:
    for word in ("help", "\\?", "HELP;", ".help", "\\h"):
        prompt.type(f"{word}\n")
        assert re.search(r"\\q  quit  exit +the end; Ctrl-D too\n", prompt.until("kwire> ")), word


@pytest.mark.parametrize("word", ["quit", "exit", "quit;", ".exit", "\\q", "select 1,\n\\q"])
def test_the_prompt_ends_as_people_end_it(word: str, kwire: Any) -> None:
    ran = kwire("sql", CLASSIC, stdin=f"{word}\nselect 3 as c;\n".encode())
    assert (ran.status, ran.out, ran.err) == (0, b"", "")


def test_the_prompt_knows_commands_of_psql(prompt: Terminal) -> None:
    prompt.type("\\dt\n")
    assert "group_events" in prompt.until("kwire> ")
    prompt.type("\\x\n")
    assert "rows as blocks" in prompt.until("kwire> ")
    prompt.type("select 'it' as one, 7 as two;\n")
    assert "\nrow 1\n  one  it\n  two  7\n1 row\n" in prompt.until("kwire> ")
    prompt.type("\\x off\n\\timing on\n")
    assert "rows as a table" in prompt.until("kwire> ")
    prompt.until("kwire> ")
    prompt.type("select 1 as help;\n")
    assert re.search(r"help\n +1\n1 row\n[\d,.]+ ms\n", prompt.until("kwire> "))
    prompt.type("\\foo\n")
    assert "no command \\foo; \\? lists them" in prompt.until("kwire> ")
    prompt.type("select '\n\\q\n' as text;\n")
    assert "1 row" in prompt.until("kwire> ")


def test_the_banner_breaks_between_its_parts(tmp_path: Path) -> None:
    with closing(Terminal("sql", CLASSIC, XDG_STATE_HOME=str(tmp_path), COLUMNS="80")) as terminal:
        lines = terminal.until("kwire> ").splitlines()[:-1]
    assert lines == [
        "statements end with ; · \\d tables · \\d NAME its columns · \\r reports · \\? help", "  \\q ends"
    ]  # fmt: skip


def test_the_prompt_completes(prompt: Terminal) -> None:
    prompt.type("select count(*) as n from group_e\t;\n")
    assert "from group_events" in prompt.until("1 row")
    prompt.until("kwire> ")
    prompt.type("sel\t 'x' as y;\n")
    assert "select" in prompt.until("1 row")


@pytest.mark.slow
def test_the_prompt_outlives_ctrl_c(prompt: Terminal) -> None:
    prompt.type("select 1,\n")
    prompt.until("... ")
    prompt.type("\x03")
    prompt.until("kwire> ", again="\x03")
    prompt.type("select count(*) from range(100000000000) where range % 7 = 3;\n")
    prompt.until(";\r\n")
    time.sleep(1)
    prompt.type("\x03")
    prompt.until("kwire> ", again="\x03")
    prompt.type("select 6 * 7 as x;\n")
    assert "\n42\n" in prompt.until("kwire> ")
    prompt.type("\x04")
    assert prompt.end() == 0


@pytest.mark.slow
def test_history_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with closing(Terminal("sql", CLASSIC, XDG_STATE_HOME=str(tmp_path / "file"))) as terminal:
        terminal.until("kwire> ")
        terminal.type("\\q\n")
        assert terminal.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["nowhere.pcap"], "nowhere.pcap: No such file or directory", Exit.USAGE),
        ([CLASSIC, "select 1 as x", "--format", "parquet"], "--format parquet needs -o FILE, or a pipe", Exit.USAGE),
        ([CLASSIC, "select range as n from range(1000)"], "the first 100 of 1,000 rows", Exit.OK),
    ],
    ids=["no prompt for a capture that is not there", "no parquet", "the first rows"],
)
def test_what_a_terminal_gets(arguments: list[str], said: str, status: int) -> None:
    with closing(Terminal("sql", *arguments, PAGER="")) as terminal:
        terminal.until(said)
        assert terminal.end() == status


def test_history_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "kwire" / "sql_history"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_file() == tmp_path / ".local" / "state" / "kwire" / "sql_history"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select " + "(" * 60_000 + "1", "parentheses 60,000 deep; 500 are read"),
        ("select " + "1 " * 600_000, "characters"),
    ],
)
def test_a_query_has_bounds(query: str, said: str, kwire: Any) -> None:
    ran = kwire("sql", "fixtures/captures/ipv6.pcap", stdin=query.encode())
    assert ran.status == 2
    assert said in ran.err
