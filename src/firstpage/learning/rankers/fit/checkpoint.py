"""Checkpoints: the state of a fit in a file, from which a later fit can continue."""

from __future__ import annotations

import base64
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, warn
from firstpage.data import Dataset
from firstpage.data.io import JsonFormat, json_digest, write_json
from firstpage.data.preferences import RowPairs
from firstpage.learning.rankers.fit.progress import Record, Step, Watcher, versions
from firstpage.learning.rankers.fit.training_data import TrainingData
from firstpage.learning.solvers.solver import (
    AnySolver,
    Objective,
    Resume,
    SolverResult,
    SolverState,
)

FILE = JsonFormat("firstpage-checkpoint", 2, "checkpoint")
Json = Any
"""A JSON value."""
WRITE_INTERVAL = 10.0  # seconds
IRRELEVANT = ("threads", "verbose", "warm_start")  # parameters that change no result


class Checkpoint:
    """The state of a fit, written every few seconds and when the fit is interrupted.

    Attributes
    ----------
    path : Path
        The file.
    state : dict or None
        The state of an earlier, unfinished fit, if the file exists.
    """

    def __init__(self, path: str | os.PathLike[str], identity: SolverState) -> None:
        self.path, self._identity = Path(path), identity
        self._last: Callable[[], SolverState] | None = None
        self._written = time.monotonic()
        self.state: SolverState | None = None
        self._warned = False
        self._check_writable()
        if self.path.exists():
            self.state = self._read()
            warn(f"continuing from {self.path}, after {self.state['iterations']} iterations.")

    def _check_writable(self) -> None:
        """Raise an error now, before hours of work, if the file cannot be written."""
        folder = self.path.absolute().parent
        if self.path.is_dir() or not folder.is_dir():
            raise DataError(f"{self.path}: a checkpoint cannot be written there.")
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise DataError(
                f"{self.path}: a checkpoint cannot be written there ({error.strerror})."
            ) from error

    def _read(self) -> SolverState:
        """Return the stored state; raise an error if it belongs to another fit."""
        contents = FILE.read(self.path)
        checked = {key: contents.get(key) for key in ("identity", "state")}
        if json_digest(checked) != contents.get("sha256"):
            raise DataError(f"{self.path}: damaged: its contents do not match its checksum.")
        for key, value in self._identity.items():
            if contents["identity"].get(key) != value and key == "version":
                raise DataError(
                    f"{self.path}: was written by another version of Firstpage; remove it, or name "
                    "another file."
                )
            if contents["identity"].get(key) != value:
                raise DataError(
                    f"{self.path}: is the checkpoint of another fit (its {key} differ); remove "
                    "it, or name another file."
                )
        state: SolverState = _from_json(contents["state"])
        return state

    def store(self, state: Callable[[], SolverState]) -> None:
        """Set the current state; `state` is only called when the file is written."""
        self._last = state
        if time.monotonic() - self._written > WRITE_INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the last state, if there is one; a failure causes only a warning."""
        if self._last is None:
            return
        contents = {"identity": self._identity, "state": _to_json(self._last())}
        self._written = time.monotonic()
        try:
            write_json(FILE.with_header(contents), self.path)
        except (OSError, DataError) as error:
            self._warn(f"{self.path}: the checkpoint cannot be written ({_reason(error)}).")

    def done(self) -> None:
        """Remove the file: the fit is finished."""
        self._last = None
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"{self.path}: the fit is done; remove the file ({_reason(error)}).")

    def _warn(self, text: str) -> None:
        """Warn once per checkpoint."""
        if not self._warned:
            warn(text)
        self._warned = True

    def minimize(
        self,
        solver: AnySolver,
        objective: Objective,
        start: Floats,
        watcher: Watcher,
        memory: object,
    ) -> SolverResult:
        """Continue with a solver from the stored state; store its state after every iteration."""
        if solver.batch is not None and not solver.resumable:
            raise DataError(f"{type(solver).__name__} does not support checkpoints.")
        state, solver_state, done = self.state, dict[str, Callable[[], SolverState]](), 0
        if state is not None:
            done, start = int(state["iterations"]), state["params"]
            watcher.history = [Step(*step) for step in state["history"]]
            if state["best"] is not None:
                watcher.best = Step(*state["best"])
                watcher.best_params = state["best_params"]

        def watch(iteration: int, value: float, params: Floats) -> bool:
            stop = False
            try:
                stop = watcher(done + iteration, value, params)
            finally:  # an interrupted step is complete, too
                best = None if watcher.best is None else list(vars(watcher.best).values())
                current = {"iterations": done + iteration, "params": params.copy(), "best": best,
                           "best_params": watcher.best_params}  # fmt: skip
                steps = len(watcher.history)
                if np.isfinite(params).all() and not stop:
                    self.store(
                        lambda: {
                            **current,
                            "history": [list(vars(s).values()) for s in watcher.history[:steps]],
                            **{name: get() for name, get in solver_state.items()},
                        }
                    )
            return stop

        stored = state["solver"] if state is not None and solver.resumable else None
        resume = Resume(memory, done, stored, lambda get: solver_state.update(solver=get))
        result = solver.minimize(objective, start, watch, resume)
        return replace(result, iterations=result.iterations + done)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        """Write the state of an unfinished fit."""
        self.write()


def _reason(error: Exception) -> str:
    """Return the message of an error of the operating system, or any other."""
    return getattr(error, "strerror", None) or str(error)


def fit_identity(
    name: str,
    parameters: Record,
    training: TrainingData,
    valid: Dataset | None,
    start: Floats | None,
    valid_pairs: RowPairs | None = None,
) -> SolverState:
    """Return what identifies a fit: a checkpoint must agree with all of it."""
    weights = [w for w in (training.weights, training.query_weights) if w is not None]
    pairs = [p.fingerprint()["sha256"] for p in (training.pairs, valid_pairs) if p is not None]
    return {
        "version": versions()["firstpage"],
        "ranker": name,
        "parameters": {k: v for k, v in parameters.items() if k not in IRRELEVANT},
        "data": [
            training.fingerprint()["sha256"],
            *[json_digest({"w": w.tolist()}) for w in weights],
            *pairs,
        ],
        "warm start": None if start is None else json_digest({"w": np.asarray(start).tolist()}),
        "validation data": None if valid is None else valid.sha256(),
    }


def _to_json(value: object) -> Json:
    """Return a state as JSON, with all bits of its numbers."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, np.float64)
        return {"float64": base64.b64encode(array.tobytes()).decode(), "shape": array.shape}
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        return _to_json(np.asarray(value))  # JSON has no NaN and no infinities
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Json) -> Json:
    """Return the state that `_to_json` has written."""
    if isinstance(value, dict) and set(value) == {"float64", "shape"}:
        raw = base64.b64decode(value["float64"])
        array = np.frombuffer(raw, np.float64).reshape(value["shape"]).copy()
        return array if array.ndim else float(array)
    if isinstance(value, dict):
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
