"""Makes surveys on this machine, in several processes if there is enough to read."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count

from kwire.pipeline.plan import Surveyor
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import Survey, SurveyNames
from kwire.session.reader import Settings

_TASKS = count(1)
LEAST = 32 << 20  # bytes from which on several processes are used


@contextmanager
def few_collections() -> Iterator[None]:
    """Collects cycles less often: a split makes hundreds of thousands of objects without cycles, and collecting takes a
    sixth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def task_done() -> None:
    """Takes what outlives a task, which is modules and compiled messages, out of garbage collections: Spark's worker
    collects after each task, which takes 50 ms otherwise. After the first, second, fourth, eighth task of a process, so
    that little is kept by mistake."""
    number = next(_TASKS)
    if not number & number - 1:
        gc.collect()
        gc.freeze()


def surveyor(settings: Settings, want: SurveyNames, jobs: int | None = None) -> Surveyor:
    """A function that makes the surveys of splits, in jobs processes (default: one per core)."""

    def make(splits: Sequence[Split]) -> Iterable[Survey]:
        one = partial(_survey, settings=settings, want=want)
        many = min(jobs or os.cpu_count() or 1, len(splits))
        if many == 1 or sum(split.end - split.start for split in splits) < LEAST:
            return [one(split) for split in splits]
        context = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn")
        with ProcessPoolExecutor(many, mp_context=context) as pool:
            return list(pool.map(one, splits))

    return make


def _survey(split: Split, settings: Settings, want: SurveyNames) -> Survey:
    with few_collections():
        return survey(split, settings, want)
