"""What a run is at: said in Spark's UI, and to whoever watches."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.pipeline.steps import RunStep, Steps, tasks_of


class Context:
    """As much of a SparkContext as is asked: two jobs, of which one has just gone."""

    def __init__(self) -> None:
        self.said: list[str | None] = ["theirs"]

    def getLocalProperty(self, _: str) -> str | None:
        return self.said[-1]

    def setLocalProperty(self, _: str, text: str | None) -> None:
        self.said.append(text)

    def statusTracker(self) -> Any:
        stages = {
            1: SimpleNamespace(numTasks=8, numCompletedTasks=3),
            2: SimpleNamespace(numTasks=2, numCompletedTasks=0),
        }
        return SimpleNamespace(
            getActiveJobsIds=lambda: [5, 6],
            getJobInfo=lambda job: SimpleNamespace(stageIds=[1, 2, 3]) if job == 5 else None,
            getStageInfo=stages.get,
        )


def test_spark_is_told_the_step_and_gets_its_own_description_back() -> None:
    context = Context()
    with Steps(SimpleNamespace(_jsparkSession=1, sparkContext=context)) as steps:  # type: ignore[arg-type]
        steps.begin("read", 100, "100 bytes in 2 splits")
        steps.begin("stitch")
    assert context.said[1:] == ["kwire: read (100 bytes in 2 splits)", "kwire: stitch", "theirs"]


def test_tasks_of_all_jobs_that_run() -> None:
    assert tasks_of(Context()) == (3, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize(("classic", "told"), [(True, RunStep("read", 100, 3, 10)), (False, RunStep("read", 100))])
def test_who_watches_is_told(classic: bool, told: RunStep) -> None:
    """Behind Spark Connect there is nothing to ask for tasks."""
    came, seen = Event(), []

    def watch(step: RunStep) -> None:
        seen.append(step)
        came.set()

    session = SimpleNamespace(_jsparkSession=1, sparkContext=Context()) if classic else SimpleNamespace()
    with Steps(session, watch) as steps:  # type: ignore[arg-type]
        steps.begin("read", 100)
        assert came.wait(60)
    assert seen[-1] == told
