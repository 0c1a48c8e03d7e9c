"""Checkpoints: where a fit stands, in a file, so that the next can go on from there."""

from __future__ import annotations

import base64
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.io.json_files import JsonFormat, json_digest, write_json
from firstpage.errors import DataError, FirstpageWarning
from firstpage.rankers.fit.progress import Step, Watcher
from firstpage.rankers.fit.record import Record, versions
from firstpage.rankers.fit.training_data import TrainingData
from firstpage.solvers.solver import AnySolver, Objective, Resume, SolverResult, State
from firstpage.types import Floats

FILE = JsonFormat("firstpage-checkpoint", 1, "checkpoint")
Json = Any
"""What JSON holds."""
EVERY = 10.0  # seconds between writings
INDIFFERENT = ("threads", "verbose", "warm_start")  # parameters that change no result


class Checkpoint:
    """Keeps where a fit stands: written every so often, and when the fit breaks off.

    state   what a former fit left; None: nothing
    """

    def __init__(self, path: str | os.PathLike[str], belongs: State) -> None:
        self.path, self._belongs = Path(path), belongs
        self._last: Callable[[], State] | None = None
        self._written = time.monotonic()
        self.state: State | None = None
        self._mute = False
        self._check_place()
        if self.path.exists():
            self.state = self._read()
            warnings.warn(
                f"going on from {self.path}, where {self.state['iterations']} iterations were "
                "done.", FirstpageWarning, stacklevel=5,
            )  # fmt: skip

    def _check_place(self) -> None:
        """Now, not when hours of work are to be kept."""
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

    def _read(self) -> State:
        held = FILE.read(self.path)
        parts = {key: held.get(key) for key in ("belongs", "state")}
        if json_digest(parts) != held.get("sha256"):
            raise DataError(f"{self.path}: damaged: its contents do not match its checksum.")
        for key, mine in self._belongs.items():
            if held["belongs"].get(key) != mine and key == "version":
                raise DataError(
                    f"{self.path}: was left by another version of Firstpage; remove it, or name "
                    "another file."
                )
            if held["belongs"].get(key) != mine:
                raise DataError(
                    f"{self.path}: is the checkpoint of another fit (its {key} differ); remove "
                    "it, or name another file."
                )
        found: State = _unpacked(held["state"])
        return found

    def keep(self, state: Callable[[], State]) -> None:
        """This is where the fit stands now; `state` is asked only when it is written down."""
        self._last = state
        if time.monotonic() - self._written > EVERY:
            self.write()

    def write(self) -> None:
        """The last state, if there is any.  A disk that is full shall not end the fit."""
        if self._last is None:
            return
        held = {"belongs": self._belongs, "state": _packed(self._last())}
        self._written = time.monotonic()
        try:
            write_json(FILE.with_header(held), self.path)
        except (OSError, DataError) as error:
            self._warn(f"{self.path}: the checkpoint cannot be written ({_why(error)}).")

    def done(self) -> None:
        """Nothing is left to go on with."""
        self._last = None
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"{self.path}: the fit is done; remove it ({_why(error)}).")

    def _warn(self, text: str) -> None:
        """Once: the next time it will be no other."""
        if not self._mute:
            warnings.warn(text, FirstpageWarning, stacklevel=2)
        self._mute = True

    def minimize(
        self, solver: AnySolver, objective: Objective, start: Floats, watcher: Watcher,
        memory: object,
    ) -> SolverResult:  # fmt: skip
        """Let a solver go on from here, and store where it stands after every iteration."""
        if solver.batch is not None:
            raise DataError(f"{type(solver).__name__} leaves no checkpoints.")
        state, inner, done = self.state, dict[str, Callable[[], State]](), 0
        if state is not None:
            done, start = int(state["iterations"]), state["params"]
            if state["best"] is not None:
                watcher.best = Step(*state["best"])
                watcher.best_params = state["best_params"]

        def watch(iteration: int, value: float, params: Floats) -> bool:
            stop = watcher(done + iteration, value, params)
            best = None if watcher.best is None else list(vars(watcher.best).values())
            now = {"iterations": done + iteration, "params": params.copy(), "best": best,
                   "best_params": watcher.best_params}  # fmt: skip
            if np.isfinite(params).all() and not stop:
                self.keep(lambda: {**now, **{key: tell() for key, tell in inner.items()}})
            return stop

        inside = state["solver"] if state is not None and solver.resumable else None
        resume = Resume(memory, done, inside, lambda tell: inner.update(solver=tell))
        found = solver.minimize(objective, start, watch, resume)
        return replace(found, iterations=found.iterations + done)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        """However it ended, what is not done is written down."""
        self.write()


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def belongs(
    name: str, parameters: Record, training: TrainingData, valid: Dataset | None,
    start: Floats | None,
) -> State:  # fmt: skip
    """What a checkpoint must have been made with."""
    weights = [w for w in (training.weights, training.query_weights) if w is not None]
    return {
        "version": versions()["firstpage"],
        "ranker": name,
        "parameters": {k: v for k, v in parameters.items() if k not in INDIFFERENT},
        "data": [
            training.fingerprint()["sha256"],
            *[json_digest({"w": w.tolist()}) for w in weights],
        ],
        "warm start": None if start is None else json_digest({"w": np.asarray(start).tolist()}),
        "validation data": None if valid is None else valid.sha256(),
    }


def _packed(value: object) -> Json:
    """As JSON holds it, with all bits."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, np.float64)
        return {"float64": base64.b64encode(array.tobytes()).decode(), "shape": array.shape}
    if isinstance(value, dict):
        return {key: _packed(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(one) for one in value]
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        return _packed(np.asarray(value))  # which JSON has no word for
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Json) -> Json:
    if isinstance(value, dict) and set(value) == {"float64", "shape"}:
        raw = base64.b64decode(value["float64"])
        array = np.frombuffer(raw, np.float64).reshape(value["shape"]).copy()
        return array if array.ndim else float(array)
    if isinstance(value, dict):
        return {key: _unpacked(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_unpacked(one) for one in value]
    return value
