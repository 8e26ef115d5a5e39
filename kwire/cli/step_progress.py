"""The progress of a job on Spark: a line on stderr, when it is a terminal, with tasks, bytes and the time left."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.pipeline.steps import RunStep

PERIOD = 600  # s of the past that the time left is estimated from: tasks take minutes


class StepProgress:
    """show(step) says what a job is at."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._name, self._task = "", 0

    def __enter__(self) -> StepProgress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[how]}"), TimeElapsedColumn(),
                TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True), transient=True,
                redirect_stdout=False, redirect_stderr=False, speed_estimate_period=PERIOD,
            )  # fmt: skip
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def wanted(self) -> bool:
        """Whether anybody sees it."""
        return self._bar is not None

    def show(self, step: RunStep) -> None:
        """Shows the step; another name begins another line in the place of the last one."""
        if step.name != self._name:
            if self._name:
                self._bar.remove_task(self._task)
            self._name, self._task = step.name, self._bar.add_task(step.name, total=None, how="")
        if step.tasks:
            self._bar.update(self._task, completed=step.done, total=step.tasks, how=how(step))


def how(step: RunStep) -> str:
    """Tasks and, as far as they tell, bytes."""
    said = f"{step.done:,}/{step.tasks:,} tasks"
    if not step.size:
        return said
    return f"{said}, {step.size * step.done / step.tasks / 1e6:,.0f}/{step.size / 1e6:,.0f} MB"
