"""From splits to tables: survey, stitch, read. The steps, independent of where they run.

Surveys may be made anywhere, in any order; stitching them says how each split is to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa

from kwire.capture.tcp import Key
from kwire.pipeline.capture_quality import of_chain, of_file
from kwire.pipeline.connection_parts import ConnectionPart
from kwire.pipeline.duplicates import Origin
from kwire.pipeline.final_connections import EpochNames
from kwire.pipeline.leftover_segments import LeftoverSegments, leftover_of, pair
from kwire.pipeline.reading import read, survey
from kwire.pipeline.splits import Split, whole
from kwire.pipeline.stitch import Stitch
from kwire.pipeline.survey import Fix, LearnedNames, Survey, SurveyNames
from kwire.session.reader import Reader, Settings
from kwire.session.reading import Reading, chained
from kwire.session.twins import RANDOM
from kwire.tables.build import BodyTexts, Builder, Emit

SUMS = frozenset({"clients", "connections", "quality"})  # tables that the stitch makes alone
NAMED = frozenset({"partitions", "batches"})  # tables that need topic names

Surveyor = Callable[[Sequence[Split]], Iterable[Survey]]
Fixes = dict[tuple[Key, int], Fix]
Fetch = Callable[[set[Key]], dict[Split, list[ConnectionPart]]]  # of final connections between these endpoints


@dataclass(slots=True)
class Task:
    """A split with the names of its parts, by first packet and by ordinal. made: its rows exist and only need names;
    otherwise it is to be read."""

    split: Split
    fixes: Fixes
    ordinals: dict[int, Fix]
    made: bool


@dataclass(slots=True)
class TaskPlan:
    """tasks: splits to name or read; rows: (table, rows) made by the stitch. parts, again: number of parts, and of
    those read again; packets: in all; failed: files that could not be read, with the reason; origins: of connections.
    """

    tasks: list[Task] = field(default_factory=list)
    rows: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)
    names: LearnedNames = field(default_factory=LearnedNames)
    parts: int = 0
    again: int = 0
    packets: int = 0
    exchanges: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)


def wanted(names: Iterable[str]) -> SurveyNames:
    """What a survey for these tables must collect."""
    there = set(names)
    return SurveyNames(bool(NAMED & there), "clients" in there, "connections" in there)


def survey_all(
    splits: Sequence[Split], surveyor: Surveyor, settings: Settings, want: SurveyNames, window: int | None = None
) -> list[list[Survey]]:
    """The surveys of each file, checked: a split that does not begin where the one before ended is read again."""
    found = {(made.split.path, made.split.number): made for made in surveyor(splits)}
    files: dict[str, list[Survey]] = {}
    for split in splits:
        files.setdefault(split.path, []).append(found[split.path, split.number])
    return [checked(surveys, settings, want, window) for surveys in files.values()]


def checked(surveys: list[Survey], settings: Settings, want: SurveyNames, window: int | None = None) -> list[Survey]:
    """The surveys of a file, with those that guessed their begin wrong made again; one survey of the whole file if it
    cannot be split."""
    out: list[Survey] = []
    for made in surveys:
        if out and not made.error and made.begin != out[-1].reached:
            made = survey(replace(made.split, at=out[-1].reached), settings, want, window)
        if made.error and len(surveys) == 1:
            return [made]
        if made.error or made.odd:
            return [survey(whole(made.split, made.odd or "it is damaged"), settings, want, window)]
        out.append(made)
    return out


def chains(files: Sequence[list[Survey]]) -> list[list[list[Survey]]]:
    """Groups files that follow each other in time, as session.reading does."""
    if len(files) == 1:
        return [list(files)]
    spans = sorted(((*span(made), made) for made in files), key=lambda each: (*each[:2], each[2][0].split.path))
    return chained(spans)


def stitch(
    files: Sequence[list[Survey]], names: Iterable[str], settings: Settings, *, bodies: BodyTexts | None = None,
    window: int | None = None, origins: bool = False, fetch: Fetch | None = None,
) -> TaskPlan:  # fmt: skip
    """Joins the surveys of all files. origins: whether to collect the connections' origins. fetch: returns the parts of
    final connections; None: they are in the surveys."""
    tables, plan = list(dict.fromkeys(names)), TaskPlan()
    good = []
    for surveys in files:
        if surveys[0].error is None:
            good.append(surveys)
        else:
            plan.failed[surveys[0].split.path] = surveys[0].error
    known: dict[UUID, str] = {}
    while True:
        made, unknown, learned, doubted = _stitched(
            plan, chains(good) if good else [], tables, settings, bodies, window, known, origins,
            fetch,
        )  # fmt: skip
        if doubted and "clients" in tables:  # they counted its clients
            want = wanted(tables)
            good = [
                [survey(placed(one), settings, want, window) if one.split in doubted else one for one in surveys]
                for surveys in good
            ]
            continue
        if not unknown or learned.keys() <= known.keys():
            return made
        known = learned


def _stitched(
    plan: TaskPlan, joined: list[list[list[Survey]]], tables: list[str], settings: Settings, bodies: BodyTexts | None,
    window: int | None, known: dict[UUID, str], origins: bool,
    fetch: Fetch | None,
) -> tuple[TaskPlan, bool, dict[UUID, str], set[Split]]:  # fmt: skip
    def again(made: Survey, keys: set[Key]) -> Iterator[LeftoverSegments]:
        return leftover_of(placed(made), settings, keys, window)

    out = TaskPlan(failed=plan.failed)
    builder = Builder(tables, lambda name, batch: out.rows.append((name, batch)), bodies, whole=False)
    names, unknown = dict(known), False
    readers: list[Reader] = []
    doubted: set[Split] = set()
    for chain in joined:
        apart = met_otherwise([made for surveys in chain for made in surveys])
        parts = fetch(apart) if fetch is not None and apart else {}
        chain = [[with_parts(made, apart, parts) for made in surveys] for surveys in chain]
        epochs = EpochNames()
        stitching = Stitch(settings, builder, again, names, tracking=builder.tracking, origins=origins)
        for surveys in chain:
            stitching.add(surveys)
        stitching.finish()
        readers.append(stitching.reader)
        names.update(stitching.topics.names)
        unknown |= stitching.unknown
        out.origins += stitching.origins
        out.parts += stitching.out.parts
        out.again += stitching.out.again
        doubted |= stitching.doubted
        flat = [made for surveys in chain for made in surveys]
        finals = [fixes for surveys in chain for fixes in final_fixes(surveys, apart, epochs)]
        out.parts += sum(map(len, finals))
        out.packets += sum(made.packets for made in flat)
        out.tasks += [
            task_of(made, fixes, final)
            for made, fixes, final in zip(flat, stitching.out.fixes, finals, strict=True)
            if fixes or final
        ]
        unread: dict[str, int] = {}
        for surveys in chain:
            of_file(builder, surveys, unread)
        of_chain(builder, stitching.reader, unread)
    for path, why in plan.failed.items():
        builder.remark(Path(path).name, "damaged", why)
    reading = Reading([], settings)
    reading.readers = readers
    builder.finish(reading)
    out.exchanges, out.names = builder.exchanges, LearnedNames(names, builder.broker_ids)
    return out, unknown, names, doubted


def placed(made: Survey) -> Split:
    """The split, with at set to where its first packet begins."""
    return made.split if made.split.whole else replace(made.split, at=made.begin)


def met_otherwise(surveys: Sequence[Survey]) -> set[Key]:
    """The endpoints of final connections that must be stitched after all, because they occur again or because a
    connection of another split may be a second recording."""
    others: set[Key] = set()
    out: set[Key] = set()
    begun: set[int] = set()  # where streams that the stitch reads begin
    known: dict[Key, int] = {}
    whose: dict[int, Key] = {}
    for made in surveys:
        others |= made.again | {pair(part.key) for part in made.parts}
        others |= {pair(key) for left in made.leftover for key in left.segments.keys}
        begun |= made.firsts | {flow.first or 0 for part in made.parts for flow in part.exit.flows}
    finals = [
        (pair(key), firsts, number in made.final.twins)
        for made in surveys
        for number, (key, *firsts) in enumerate(zip(made.final.keys, *made.final.firsts, strict=True))
    ]
    for both, (first, _), _ in finals:
        if both in others or known.get(both) == first:
            out.add(both)
        known[both] = first
    begun.update(first for both, firsts, twin in finals if twin and both in out for first in firsts)
    for both, firsts, twin in finals:
        for first in firsts if not twin else ():
            if first < RANDOM:
                continue
            other = whose.setdefault(first, both)
            if other != both:
                out |= {other, both}
            elif first in begun:
                out.add(both)
    return out


def with_parts(made: Survey, apart: set[Key], kept: dict[Split, list[ConnectionPart]]) -> Survey:
    """The survey with the final connections between these endpoints as parts. kept: parts kept elsewhere."""
    more = made.final.parts(apart) + (kept.get(made.split, []) if made.final else [])
    return replace(made, parts=sorted([*made.parts, *more], key=lambda part: part.number)) if more else made


def final_fixes(surveys: Sequence[Survey], apart: set[Key], epochs: EpochNames) -> Iterator[dict[int, Fix]]:
    """For each split the names of its final connections, by ordinal, except those between these endpoints."""
    before, capture = 0, Path(surveys[0].split.path).name
    for made in surveys:
        out: dict[int, Fix] = {}
        for key, ordinal in zip(made.final.keys, made.final.ordinals, strict=True):
            if not apart or pair(key) not in apart:
                out[ordinal] = Fix(capture, *epochs.name_of(key), (0, 0), (0, 0), (), before, True)
        before += made.packets
        yield out


def task_of(made: Survey, fixes: Fixes, final: dict[int, Fix] | None = None) -> Task:
    """The task of a split. final: names of final connections, by ordinal."""
    ordinals = {part.ordinal: fixes[fix] for part in made.parts if (fix := (pair(part.key), part.number)) in fixes}
    ordinals |= final or {}
    return Task(placed(made), fixes, ordinals, made.rows)


def survey_with_rows(
    split: Split, names: Iterable[str], emit: Emit, settings: Settings, want: SurveyNames, *,
    bodies: BodyTexts | None = None, window: int | None = None, finals: bool = False,
) -> Survey:  # fmt: skip
    """The survey of a split; emits the rows that it can read, with provisional names (provisional.py). finals: as in
    survey."""
    made_here = [name for name in names if name not in SUMS or (finals and name == "connections")]
    builder = Builder(made_here, emit, bodies, whole=False)
    made = survey(split, settings, want, window, builder if builder.names else None, finals and bool(builder.names))
    if made.error is None:
        builder.finish(Reading([], settings))
    return made


def read_task(
    task: Task, names: Iterable[str], emit: Emit, settings: Settings, learned: LearnedNames, *,
    bodies: BodyTexts | None = None, window: int | None = None, columns: Collection[str] | None = None,
) -> int:  # fmt: skip
    """Emits the rows of a split's parts; returns the number of exchanges. columns: only these, None: all."""
    builder = Builder([name for name in names if name not in SUMS], emit, bodies, whole=False, columns=columns)
    read(task.split, settings, task.fixes, builder, learned.topics, window)
    builder.finish(Reading([], settings))
    return builder.exchanges


def span(surveys: list[Survey]) -> tuple[int, int]:
    """The times of a file's first and last packet, ns; 0 if it is empty."""
    times = [(made.first_time, made.last_time) for made in surveys if made.last_time]
    return min((first for first, _ in times), default=0), max((last for _, last in times), default=0)
