"""What those do who work: surveys made on this machine, by several processes when it is worth it."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial

from kwire.pipeline.plan import Surveyor
from kwire.pipeline.reading import survey
from kwire.pipeline.splits import Split
from kwire.pipeline.survey import Survey, SurveyNames
from kwire.session.reader import Settings

LEAST = 32 << 20  # bytes from which a second process is worth its start


@contextmanager
def few_collections() -> Iterator[None]:
    """A split makes objects by the hundred thousand and no cycles: looking for those takes a sixth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def surveyor(settings: Settings, want: SurveyNames, jobs: int | None = None) -> Surveyor:
    """Makes the surveys of splits with so many processes, as many as there are cores otherwise."""

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
