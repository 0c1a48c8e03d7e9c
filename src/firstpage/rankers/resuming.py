"""Run a solver, from where an earlier one was if that is known, and keep where it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.rankers.checkpoint import Checkpoint
from firstpage.rankers.watcher import Step, Watcher
from firstpage.solvers.watch import Found, Watch
from firstpage.types import Floats


def minimized(
    checkpoint: Checkpoint | None, memory: Any, solver: Any, objective: Any, start: Floats,
    watcher: Watcher,
) -> Found:  # fmt: skip
    """Some solvers can begin with what an earlier one left."""
    more: dict[str, Any] = {} if memory is None else {"memory": memory}
    watch: Watch = watcher
    if checkpoint is not None:
        if solver.batch is not None:
            raise DataError(f"{type(solver).__name__} leaves no checkpoints.")
        most = solver.max_iter if solver.path else None
        solver, start, watch = _resumed(checkpoint, solver, start, watcher, more)
        if checkpoint.state is not None and checkpoint.state["iterations"] == most:
            return Found(start, objective(start)[0], most, "all iterations done", False)
    found: Found = solver.minimize(objective, start, watch, **more)
    state = None if checkpoint is None else checkpoint.state
    return (
        found
        if state is None
        else replace(found, iterations=found.iterations + state["iterations"])
    )


def _resumed(
    checkpoint: Checkpoint, solver: Any, start: Floats, watcher: Watcher, more: dict[str, Any]
) -> tuple[Any, Floats, Watch]:
    """Begin with what was kept, and go on keeping; iterations are counted on."""
    state, done = checkpoint.state, 0
    if state is not None:
        done, start = int(state["iterations"]), state["params"]
        if state["best"] is not None:
            watcher.best = Step(*state["best"])
            watcher.best_params = state["best_params"]
        if getattr(solver, "keeps", False):
            more["memory"] = state["solver"]
        elif solver.path:  # a descent: so many steps are done
            solver = replace(solver, max_iter=max(1, solver.max_iter - done))
    inner: dict[str, Any] = {}

    def watch(iteration: int, value: float, params: Floats) -> bool:
        told = watcher(done + iteration, value, params)
        best = None if watcher.best is None else list(vars(watcher.best).values())
        now = {"iterations": done + iteration, "params": params.copy(), "best": best,
               "best_params": watcher.best_params}  # fmt: skip
        if np.isfinite(params).all() and not told:
            checkpoint.keep(lambda: {**now, **{key: tell() for key, tell in inner.items()}})
        return told

    if getattr(solver, "keeps", False):
        more["keep"] = lambda tell: inner.update(solver=tell)
    return solver, start, watch
