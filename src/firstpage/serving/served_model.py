"""A model in service: read, tested and ready to score."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.core.kernels.compiler import MAX_INTERPRETED
from firstpage.learning.models import (
    LONG_RECORDS,
    Model,
    probe_features,
    read_distributions,
    read_model,
    unusable,
)
from firstpage.learning.scorers import Contributions
from firstpage.serving.drift import Drift
from firstpage.serving.forests import FlatForest, flat_forest
from firstpage.serving.json_messages import IndexSummary, ModelDescription
from firstpage.serving.rank_request import CategoryCodes
from firstpage.serving.served_index import ServedIndex

log = logging.getLogger("firstpage.serving")
FileStamp = tuple[int, int, int, int, int]
MAX_FILE_BYTES = 1 << 30  # bytes of a model file
MAX_QUICK_PRODUCTS = 1 << 16  # per row, of a network that scores in the event loop
MAX_QUICK_STEPS = 20_000  # splits per row of trees that score in the event loop


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model and the digest of its file, as `sha256sum` prints it."""

    model: Model
    digest: str
    since: float = field(default_factory=time.time)
    texts: ServedIndex | None = None
    is_arm: bool = False  # of an experiment: nobody asks for its drift
    _faulty: Event = field(default_factory=Event)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features; numbers, if the model has no names."""
        return self.model.feature_names or tuple(str(i + 1) for i in range(self.model.n_features))

    @cached_property
    def category_codes(self) -> CategoryCodes:
        """The code of each category, by column that holds categories."""
        return {
            column: {name: float(code) for code, name in enumerate(known)}
            for column, known in self.model.categories.items()
        }

    @cached_property
    def drift(self) -> Drift | None:
        """What it ranks, against its training data; None if the file does not describe these."""
        if self.is_arm:
            return None
        distributions = read_distributions(self.model.training, self.model.n_features)
        return None if distributions is None else Drift(distributions, self.digest)

    def count_drift(self, X: Array, offsets: Ints, scores: Floats) -> None:
        """Count ranked documents for the drift, now and then."""
        if self.drift is not None and self.drift.is_due():
            self.drift.add(self.model.scaled(X, offsets), scores)

    @cached_property
    def by_query(self) -> bool:
        """Whether a score depends on the query's other candidates."""
        transform = self.model.transform
        scaled = transform is not None and transform.per == "query"
        return self.model.scoring.by_query or scaled

    @cached_property
    def trees(self) -> FlatForest | None:
        """The trees for our kernel; None if the model has none, or the kernel cannot score them."""
        scoring = self.model.scoring
        return None if scoring.library_model is None else flat_forest(scoring)

    @cached_property
    def quick(self) -> bool:
        """Whether scoring a query takes less time than waking another thread."""
        scoring = self.model.scoring
        if scoring.network is not None:
            return not scoring.by_query and scoring.network.products <= MAX_QUICK_PRODUCTS
        if self.trees is not None:
            return self.trees.steps <= MAX_QUICK_STEPS
        return scoring.library_model is None and not scoring.by_query

    def scores(self, X: Array, offsets: Ints) -> Floats:
        """Return the scores, equal to those of `firstpage rank`."""
        scaled = self.model.scaled(X, offsets)
        if self.trees is not None:
            return self.trees.predict(scaled)
        return self.model.scoring.predict(scaled, None, offsets)

    def check_on_texts(self, name: str) -> None:
        """Refuse a model whose scores of documents of the index are not finite.

        This also opens files and links code, for which no request then waits.
        """
        assert self.texts is not None
        for X in self.texts.sample_features():
            if not np.isfinite(self.scores(X, np.array([0, len(X)]))).all():
                raise unusable(self.model.scoring, name, " for documents of the index")

    def contributions(
        self, X: Array, offsets: Ints, rows: Ints
    ) -> tuple[tuple[str, ...], Contributions]:
        """Return names and the contributions to the scores of some rows."""
        _, contributions = self.model.contributions(X, offsets, rows)
        return contributions.names or self.names, contributions

    def description(self) -> ModelDescription:
        """Return the answer to GET /model."""
        model = self.model
        categories = {self.names[c]: list(known) for c, known in model.categories.items()}
        return ModelDescription(
            ranker=model.ranker,
            digest=self.digest,
            parameters=model.parameters,
            features={
                "count": model.n_features,
                "names": self.names,
                "missing": model.reads_missing,
                **({"categories": categories} if categories else {}),
            },
            normalize=None if model.transform is None else model.transform.to_dict(),
            by_query=self.by_query,
            training={k: v for k, v in model.training.items() if k not in LONG_RECORDS},
        )

    def report_fault(self, problem: str) -> None:
        """Log once that this model has no scores for features of ordinary size."""
        if not self._faulty.is_set():
            self._faulty.set()
            log.error("model %s: %s; train it again", self.digest[:12], problem)

    def index_summary(self) -> IndexSummary | UnsetType:
        """Return what GET /health answers about the index."""
        if self.texts is None:
            return UNSET
        index = self.texts.index
        return IndexSummary(len(index), index.fingerprint, list(self.texts.notes))


def load(path: str | os.PathLike[str]) -> ServedModel:
    """Read a model file and score with it once; refuse a model that cannot score."""
    name, stamp, digest = os.fspath(path), file_stamp(path), sha256_of(path)
    model = read_model(path)
    if sha256_of(path) != digest or file_stamp(path) != stamp:
        raise DataError(f"{name}: changed while it was being read.")
    served = ServedModel(model, digest)
    _check_serializable(served, name)
    _check_finite(served, name)
    return served


def _check_finite(served: ServedModel, name: str) -> None:
    """Refuse a model whose scores for features of ordinary size are not finite."""
    model = served.model
    # Enough rows to compile the kernels now, not during a request, in lists of ordinary length:
    # the cost of attention grows with the square of it.
    rows = MAX_INTERPRETED // model.n_features + 2
    offsets = np.append(np.arange(0, rows, 100), rows)
    X = probe_features(model.transform, model.n_features, rows, model.categories)
    for dtype in (np.float32, np.float64):
        limit = np.finfo(dtype).max
        scores = served.scores(np.clip(X, -limit, limit).astype(dtype), offsets)
        if not np.isfinite(scores).all():
            raise unusable(model.scoring, name)
    if served.trees is not None and not np.isfinite(served.trees.largest_score):
        raise unusable(model.scoring, name)


def _check_serializable(served: ServedModel, name: str) -> None:
    """Refuse a description with lone surrogates or infinities: neither can be sent as JSON."""
    try:
        description = msgspec.to_builtins(served.description())
        json.dumps(description, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: its description cannot be encoded as JSON ({error}).") from None


def file_stamp(path: str | os.PathLike[str]) -> FileStamp | None:
    """Return values that change when a file is replaced or written; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file, as `sha256sum` prints it."""
    name = os.fspath(path)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # reading a pipe may never end
            raise DataError(f"{name}: is not a file.")
        if status.st_size > MAX_FILE_BYTES:
            raise DataError(f"{name}: is larger than {MAX_FILE_BYTES >> 30} GiB.")
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}).") from None
