"""Predict the cost of a fit from a trial on its first rows.

An estimator lists its passes (`Work`, from its method ``_planned_work``); the time of each is
measured on the first rows, with the estimator itself: nothing about the machine is assumed.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer._run.budget import Budget
from mercer._run.checkpoint import keeping
from mercer._run.engine import current, running
from mercer._run.frozen import frozen
from mercer._run.progress import listening, tell
from mercer._run.threads import n_threads
from mercer.estimators.needs import Sweep, Work, demand_fit
from mercer.exceptions import MercerWarning
from mercer.kernels.registry import is_precomputed
from mercer.plan.plan import Plan, PlannedPass
from mercer.rows.arrays import ArraySource, BlockSource, CSRSource
from mercer.rows.checks import checked_source
from mercer.rows.distinct import sample_size
from mercer.rows.places import paths_of, stored_bytes
from mercer.rows.rows import BlockRows, Rows, part
from mercer.rows.source import TILE, Source

TRIAL_ROWS = 2 * TILE  # of the trial fit, at most
WARM_ROWS = 600  # of a first fit that only loads compiled code
LEAST_SHARE = 4  # a trial takes at most a quarter of the rows ...
LEAST_ROWS = 1000  # ... but at least so many
# stages that examine no more rows later
OF_A_FEW_ROWS = {"kernel", "bandwidth", "number of clusters", "trust"}


@frozen
class Trial:
    """Seconds of a fit on a few rows."""

    n_rows: int
    stages: dict[str, float]
    read: float  # per row of the source
    sweep: float  # per row in memory: the most expensive step done to each of them

    def per_row(self, sweep: Sweep) -> float:
        """Seconds of a pass: as measured, but no less than those of a label.

        Labels are timed apart, without what the stage of a fit does once.
        """
        if sweep.stage == "labels":
            return self.sweep
        return max(self.sweep, self.stages.get(sweep.stage, 0.0) / self.n_rows)


def plan_fit(estimator: Any, X: Any) -> Plan:
    """Predict passes, memory and minutes of ``estimator.fit(X)``; BudgetError if it is too large.

    A quarter of the rows at most, and no more than 16,384, are fitted to see how long it takes.
    """
    estimator._validate_params()
    budget, source = Budget.of(estimator.max_memory), checked_source(X)
    needs, most_rows = demand_fit(estimator, source, budget)
    work, block_rows = needs.work, min(most_rows, source.n_rows)
    trial = _run_trial(estimator, work, source, block_rows)
    return Plan(
        estimator=type(estimator).__name__,
        source=_name(source),
        n_rows=source.n_rows,
        n_features=source.n_features,
        dtype=str(source.dtype),
        sample_rows=needs.n_drawn,
        block_rows=block_rows,
        n_blocks=-(-source.n_rows // block_rows),
        passes=_passes(work, source, trial),
        memory=needs.total(most_rows),
        max_memory=budget.n_bytes,
        sample_seconds=_sample_seconds(work, trial),
        calibration=f"a fit of the first {trial.n_rows:,} rows on this machine, "
        f"{n_threads(estimator.n_jobs)} thread(s), {_n_workers()} process(es); reading them took "
        f"{1e6 * trial.read:.2g} µs per row",
        stored_bytes=sum(map(stored_bytes, paths_of(source))),
    )


def _passes(work: Work, source: Source, trial: Trial) -> tuple[PlannedPass, ...]:
    n_bytes = source.n_rows * source.n_features * source.dtype.itemsize
    n = source.n_rows / _n_workers()  # rows of each worker
    look = n * (trial.read + trial.stages.get("check", 0.0) / trial.n_rows)
    drawn = sample_size(source.n_rows, source.n_features, work.wanted_rows) / trial.n_rows
    draw = n * trial.read + drawn * trial.stages.get("sample", 0.0)
    return (
        PlannedPass("check", 1, 1, n_bytes, look),
        PlannedPass("sample", 1, 1, n_bytes, draw),
        *(
            PlannedPass(s.stage, s.least, s.most, n_bytes, n * (trial.read + trial.per_row(s)))
            for s in (*_extra_passes(work), *work.sweeps)
        ),
    )


def _extra_passes(work: Work) -> tuple[Sweep, ...]:
    """The search of pivots among all rows."""
    n = work.approximation.extra_passes(work.factor_rows)
    return (Sweep("rare rows", least=n, most=n),) if n else ()


def _n_workers() -> int:
    engine = current()
    return 1 if engine is None else engine.n_workers


def _sample_seconds(work: Work, trial: Trial) -> float:
    """Stages on the sample alone, scaled from the rows of the trial to those of the sample."""
    on_all_rows = {"check", "sample", *(sweep.stage for sweep in work.sweeps)}
    growth = max(work.factor_rows / trial.n_rows, 1.0) ** work.approximation.growth
    return sum(
        seconds if stage in OF_A_FEW_ROWS else growth * seconds
        for stage, seconds in trial.stages.items()
        if stage not in on_all_rows
    )


def _run_trial(estimator: Any, work: Work, source: Source, block_rows: int) -> Trial:
    """Time a fit on the first rows, after one that only warms up."""
    n_rows = min(max(source.n_rows // LEAST_SHARE, LEAST_ROWS, 4 * work.n_clusters), TRIAL_ROWS)
    n_rows = min(max(n_rows, work.n_clusters), source.n_rows)
    started = time.perf_counter()
    block = source.read(0, max(n_rows, min(block_rows, source.n_rows)))
    read = (time.perf_counter() - started) / block.shape[0]
    rows = part(block, 0, n_rows)
    model = clone(work.trial if work.trial is not None else estimator)
    model.set_params(verbose=0, random_state=0)
    n_warm = min(max(WARM_ROWS, 2 * work.n_clusters), n_rows)
    tell("trial fit", 0, 0)
    with (
        warnings.catch_warnings(),
        listening(_ignore),
        running(None),  # no engine
        keeping(None),  # no checkpoint
    ):
        warnings.simplefilter("ignore", MercerWarning)
        warm = _first(source, rows, n_warm, estimator)
        _label_rows(clone(model).fit(warm), warm)
        trial = _first(source, rows, n_rows, estimator)
        model.fit(trial)
        started, busy = time.perf_counter(), time.process_time()
        _label_rows(model, trial)
        sweep = min(time.perf_counter() - started, time.process_time() - busy) / n_rows
    # Rows are in memory: time beyond that of the CPU is spent by other programs, not by a fit
    stages = {stage.name: min(stage.seconds, stage.cpu_seconds) for stage in model.report_.stages}
    return Trial(n_rows, stages, 0.0 if source.in_memory else read, sweep)


def _ignore(stage: str, done: int, total: int) -> None:
    """The stages of the trial are not those of the fit."""


def _label_rows(model: Any, rows: Any) -> None:
    """Do what is done to every row once: label it, or compute its coordinates."""
    (model.predict if model.report_.cluster_weights else model.transform)(rows)


def _first(source: Source, rows: Rows, n_rows: int, estimator: Any) -> Source:
    """The first rows as a source in memory, with the names that kernels may select."""
    if isinstance(rows, BlockRows):
        parts = tuple(_in_memory(block[:n_rows], None) for block in rows.parts)
        return BlockSource(rows.names, parts)
    rows = part(rows, 0, n_rows)
    if is_precomputed(estimator.kernel):
        return _in_memory(rows[:, :n_rows], None)
    return _in_memory(rows, source.feature_names)


def _in_memory(rows: Any, names: tuple[str, ...] | None) -> Source:
    return CSRSource(rows, names) if sp.issparse(rows) else ArraySource(np.asarray(rows), names)


def _name(source: Source) -> str:
    path = getattr(source, "path", None)
    return type(source).__name__ + ("" if path is None else f" {path}")
