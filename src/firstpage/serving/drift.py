"""Drift: how far features and scores in service are from those of the training data."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.learning.models import Distributions
from firstpage.serving.workers import METRICS_FOLDER

INTERVAL = 0.1  # seconds between rankings that are counted
WINDOW = 200_000  # rows, after which older ones count half
LEAST_ROWS = 500  # that a statement needs
MODERATE, LARGE = 0.1, 0.25  # of the index, by convention


class DriftRow(NamedTuple):
    """The drift of a feature, or of the score: fractions of training and of now, per bin."""

    name: str
    psi: float
    training: list[float]
    now: list[float]

    @property
    def verdict(self) -> str:
        """The drift in a word."""
        return "large" if self.psi >= LARGE else "moderate" if self.psi >= MODERATE else "small"


class Drift:
    """Counts what a model ranks, in the bins of its training data.

    Features are those that the model reads: after its scaling.  With several workers, each counts
    in a file, and all files are added.

    Parameters
    ----------
    distributions : Distributions
        Those of the training data.
    digest : str
        The digest of the model.
    """

    def __init__(self, distributions: Distributions, digest: str) -> None:
        self.distributions, shape = distributions, distributions.counts.shape
        self._lock, self._due = threading.Lock(), 0.0
        self._folder, self._name = os.environ.get(METRICS_FOLDER), f"drift-{digest[:16]}-"
        self._counts: Ints = np.zeros(shape, np.int64)
        if self._folder is not None:
            path = Path(self._folder) / f"{self._name}{os.getpid()}"
            self._counts = np.memmap(path, np.int64, "w+", shape=shape)

    def is_due(self) -> bool:
        """Return whether a ranking is to be counted now: few are, so that this costs little."""
        now = time.monotonic()
        with self._lock:
            if now < self._due:
                return False
            self._due = now + INTERVAL
        return True

    def add(self, X: Array, scores: Floats) -> None:
        """Count scaled features and their scores."""
        counts = self.distributions.counts_of(np.column_stack([scores, X]))
        with self._lock:
            self._counts += counts
            if self._counts[0].sum() > WINDOW:
                self._counts //= 2

    def rows(self, names: tuple[str, ...]) -> tuple[int, list[DriftRow]]:
        """Return how many documents were counted, and the drift of the score and of each feature.

        The drift is the population stability index; there is none of few documents.
        """
        counts = self._counts
        if self._folder is not None:
            files = Path(self._folder).glob(f"{self._name}*")
            each = [np.fromfile(path, np.int64).reshape(counts.shape) for path in files]
            counts = np.sum(each, axis=0)
        total = int(counts[0].sum())
        if total < LEAST_ROWS:
            return total, []
        then, now = (_fractions(each) for each in (self.distributions.counts, counts))
        index = ((now - then) * np.log(now / then)).sum(axis=1).tolist()
        rows = zip(("score", *names), index, then.tolist(), now.tolist(), strict=True)
        return total, [DriftRow(*row) for row in rows]


def _fractions(counts: Ints) -> Floats:
    """Return the fraction of each bin, none of which is 0."""
    return np.asarray((counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True))
