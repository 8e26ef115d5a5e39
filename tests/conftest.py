"""What several test files share: the --rewrite flag, and kwire's command line run inside the test's process."""

from __future__ import annotations

import gc
import inspect
import io
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]

# The suite tries the same examples in every run; `pytest --hypothesis-profile=explore` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write tests/console/*.txt anew, for a person to review")


SLOW = {"pipeline", "browser", "interop"}  # rooms whose tests are all slow: Spark, a browser, others' programs
SWEEPS = {  # files whose many cases, seconds together, hold each view or damage against what others test once
    "analyze/test_worse_captures.py", "analyze/test_worse_fixtures.py", "broker/test_soak.py",
    "broker/test_transaction_machine.py", "browse/test_app.py", "browse/test_prompt.py",
    "capture/test_attacks.py", "capture/tls/test_holes.py", "cli/test_attacks.py",
    "cli/test_capture_secrets.py", "cli/test_extcap.py", "cli/test_planted_secrets.py",
    "coordinator/share/test_share_machine.py", "coordinator/test_consumer_group_rules.py",
    "proxy/test_attacks.py",
}  # fmt: skip
TESTS = str(ROOT / "tests")
PROCESSES = {"Popen", "ProcessPoolExecutor", "fork", "multiprocessing", "openpty", "subprocess"}  # what starts one
MOST = 4  # cases of one test in a quick run, of those that have more: evenly spread; its own file runs them all


def _slow(path: Path) -> bool:
    """Whether all tests of a file or folder are."""
    inside = path.relative_to(ROOT / "tests")
    return bool(SLOW & set(inside.parts)) or inside.as_posix() in SWEEPS


@cache
def _starts_processes(function: FunctionType) -> bool:
    """Whether a function, or a function or class of the suite's own that it uses, names what starts a process."""
    seen, left = {function}, [function]
    while left:
        function = left.pop()
        names = set(_names(function.__code__))
        if names & PROCESSES:
            return True
        used = {each for name in names for each in _functions(function.__globals__.get(name))} - seen
        left.extend(used)
        seen |= used
    return False


def _functions(thing: object) -> Iterator[FunctionType]:
    """A function of the suite's own, or those of a class of its own."""
    for each in vars(thing).values() if isinstance(thing, type) else (thing,):
        function = inspect.unwrap(each) if callable(each) else each
        if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(TESTS):
            yield function


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def _quick(config: pytest.Config) -> bool:
    return bool(config.option.markexpr == "not slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A run without slow tests need not import what has no others."""
    inside = (ROOT / "tests") in collection_path.parents
    return True if inside and _quick(config) and _slow(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A run without slow tests makes only the cases that it runs."""
    if _quick(metafunc.config):
        metafunc.parametrize = partial(_few, metafunc.parametrize)  # type: ignore[method-assign]


def _few(make: Callable[..., None], names: object, cases: Iterable[object], *rest: object, **more: object) -> None:
    """Metafunc.parametrize with at most MOST of the cases."""
    cases = list(cases)
    step = max(1, -(-len(cases) // MOST))
    if isinstance(ids := more.get("ids"), Iterable):
        more["ids"] = list(ids)[::step]
    make(names, cases[::step], *rest, **more)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as slow what is: by its place, by what it starts, and the cases beyond the first few of a test."""
    cases = defaultdict(list)
    for item in items:
        cases[item.parent, getattr(item, "originalname", item.name)].append(item)
    slow = {path: _slow(path) for path in {item.path for item in items}}
    for many in cases.values():
        step = -(-len(many) // MOST)
        for number, item in enumerate(many):
            if number % step or slow[item.path] or any(map(_starts_processes, _code_of(item))):
                item.add_marker("slow")


def _code_of(item: pytest.Item) -> Iterator[FunctionType]:
    """The functions of a test and of its fixtures."""
    if isinstance(item, pytest.Function):
        yield from _functions(item.function)
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            yield from _functions(fixtures[-1].func)


LOW: list[int] = []  # descriptors kept for who uses select, which takes none above 1,023; see tests/pipeline


def pytest_configure() -> None:
    LOW.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(8))
    _heed_signals()


def _heed_signals() -> None:
    """Programs that tests start and signal should not have inherited that these are ignored, as nohup and & make it."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_unconfigure() -> None:
    """Commands freeze what there is; DuckDB complains at exit of what was not collected."""
    gc.unfreeze()
    gc.collect()


class Ran(NamedTuple):
    """What a run of the command line left: its exit status and what it wrote."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@pytest.fixture
def kwire(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """kwire(*arguments, stdin=b"", columns=100, folder=ROOT): runs the command line in a folder, stdout a pipe."""
    from kwire.cli.main import main

    def run(*arguments: str, stdin: bytes = b"", columns: int = 100, folder: Path = ROOT) -> Ran:
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", str(columns))
            patch.setattr(sys, "argv", ["kwire", *arguments])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit) as left:
                main()
            out.flush()
            err.flush()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, out.buffer.getvalue(), err.buffer.getvalue().decode())

    return run
