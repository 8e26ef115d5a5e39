"""The steps of a run, for whoever waits: their names stand in Spark's UI, and how many tasks are done is told twice a
second. Behind Spark Connect only the names are known."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

DESCRIPTION = "spark.job.description"
EVERY = 0.5  # s


class RunStep(NamedTuple):
    """name: of the step; size: bytes that it reads, 0 if that is not known; done, tasks: tasks of Spark, 0 if it has
    none now."""

    name: str
    size: int = 0
    done: int = 0
    tasks: int = 0


Watch = Callable[[RunStep], None]


class Steps:
    """begin(name) names what Spark does from then on in this context. watch: is called with the present step."""

    def __init__(self, spark: SparkSession, watch: Watch | None = None) -> None:
        self._context: SparkContext | None = spark.sparkContext if hasattr(spark, "_jsparkSession") else None
        self._watch, self._step = watch, RunStep("")
        self._over = Event()
        self._thread = Thread(target=self._tell, daemon=True) if watch else None
        self._before: str | None = None

    def __enter__(self) -> Steps:
        if self._context is not None:
            self._before = self._context.getLocalProperty(DESCRIPTION)
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._context is not None and kind is None:
            self._describe(self._before)

    def begin(self, name: str, size: int = 0, note: str = "") -> None:
        """Another step begins. note: stands behind its name in Spark's UI."""
        self._step = RunStep(name, size)
        self._describe(f"kwire: {name}" + (f" ({note})" if note else ""))

    def _describe(self, text: str | None) -> None:
        if self._context is not None:
            self._context.setLocalProperty(DESCRIPTION, text)  # type: ignore[arg-type]  # None removes it

    def _tell(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        assert self._watch is not None
        while not self._over.wait(EVERY):
            step = self._step
            try:
                done, tasks = tasks_of(self._context) if self._context is not None else (0, 0)
            except Py4JError:
                return  # Spark has gone; the run says why
            self._watch(step._replace(done=done, tasks=tasks))


def tasks_of(context: SparkContext) -> tuple[int, int]:
    """How many tasks of the jobs that run are done, and how many they have."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    found = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    stages = [stage for stage in found if stage is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
