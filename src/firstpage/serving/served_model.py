"""A model in service: read, tried out, and ready to score."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.kernels.compiler.decorators import LIGHT
from firstpage.rankers.cascade import Cascade
from firstpage.rankers.model_files import Model, read_model
from firstpage.rankers.scorings import scores_of
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.scorers.stumps import StumpsScoring
from firstpage.scorers.trees import TreesScoring
from firstpage.serving.forests import Flat, flat_of
from firstpage.serving.json_messages import ModelDescription
from firstpage.serving.parts import Parts, parts_of, votes_of
from firstpage.types import Array, Floats, Ints

FileStamp = tuple[int, int, int, int, int]
MAX_FILE_BYTES = 1 << 30  # bytes of a model file
WIDE = 256  # hidden units up to which a network scores at once
STEPS = 20_000  # of one row through all trees, up to which they do


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model and the digest of its file, as `sha256sum` prints it."""

    model: Model
    digest: str
    since: float = field(default_factory=time.time)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.model.feature_names or tuple(str(i + 1) for i in range(self.model.n_features))

    @cached_property
    def by_query(self) -> bool:
        """Whether a score depends on the query's other candidates."""
        transform = self.model.transform
        return isinstance(self.model.scoring, Cascade) or (
            transform is not None and transform.per == "query"
        )

    @cached_property
    def trees(self) -> Flat | None:
        """Trees as our kernel walks them."""
        scoring = self.model.scoring
        return flat_of(scoring) if isinstance(scoring, TreesScoring) else None

    @cached_property
    def quick(self) -> bool:
        """Whether a query is scored before another thread could have been woken."""
        scoring = self.model.scoring
        if isinstance(scoring, MLPScoring):
            return len(scoring.b) <= WIDE
        if self.trees is not None:
            return self.trees.steps <= STEPS
        return isinstance(scoring, (LinearScoring, StumpsScoring))

    def scores(self, X: Array, offsets: Ints) -> Floats:
        """The very scores of `firstpage rank`: same scaling, same kernels."""
        scaled = self._scaled(X, offsets)
        if isinstance(self.model.scoring, Cascade):
            return scores_of(self.model.scoring, _dataset(scaled, offsets))
        scoring = self.model.scoring if self.trees is None else self.trees
        found: Floats = scoring.predict(scaled)
        return found

    def parts(self, X: Array, offsets: Ints, rows: Ints) -> tuple[tuple[str, ...], Parts]:
        """Names and parts of the scores of some rows."""
        scaled, scoring = self._scaled(X, offsets), self.model.scoring
        if isinstance(scoring, Cascade):
            found = votes_of(scoring, _dataset(scaled, offsets))
            voters = tuple(voter.name for voter in scoring.voters)
            return voters, Parts(found.kind, found.values[rows], None)
        return self.names, parts_of(scoring, np.ascontiguousarray(scaled[rows]))

    def description(self) -> ModelDescription:
        """Return what `GET /model` answers."""
        model = self.model
        return ModelDescription(
            ranker=model.ranker,
            digest=self.digest,
            parameters=model.parameters,
            features={"count": model.n_features, "names": self.names},
            normalize=None if model.transform is None else model.transform.to_dict(),
            by_query=self.by_query,
            training={k: v for k, v in model.training.items() if k != "curve"},
        )

    def _scaled(self, X: Array, offsets: Ints) -> Array:
        transform = self.model.transform
        return X if transform is None else transform.transform(X, offsets)


def _dataset(X: Array, offsets: Ints) -> Dataset:
    return Dataset(X, np.zeros(len(X)), offsets, Ids.of(range(len(offsets) - 1)))


def load(path: str | os.PathLike[str]) -> ServedModel:
    """Read a model file and score with it once; what cannot score is not served."""
    name, stamp, digest = os.fspath(path), file_stamp(path), sha256_of(path)
    model = read_model(path)
    if sha256_of(path) != digest or file_stamp(path) != stamp:
        raise DataError(f"{name}: changed while it was read.")
    served = ServedModel(model, digest)
    _check_serializable(served, name)
    rows = LIGHT // model.n_features + 2  # enough that kernels are compiled now, not in a request
    for dtype in (np.float32, np.float64):
        X = np.zeros((rows, model.n_features), dtype)
        if not np.isfinite(served.scores(X, np.array([0, rows]))).all():
            raise DataError(f"{name}: gives scores that are not finite.")
    return served


def _check_serializable(served: ServedModel, name: str) -> None:
    """Refuse a description with lone surrogates or infinities: neither can be sent as JSON."""
    try:
        description = msgspec.to_builtins(served.description())
        json.dumps(description, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: its description is no JSON ({error}).") from None


def file_stamp(path: str | os.PathLike[str]) -> FileStamp | None:
    """Return what changes when a file is replaced or written to; None where there is none."""
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
        if not stat.S_ISREG(status.st_mode):  # reading a pipe might never end
            raise DataError(f"{name}: is no file.")
        if status.st_size > MAX_FILE_BYTES:
            raise DataError(f"{name}: is larger than {MAX_FILE_BYTES >> 30} GiB.")
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}).") from None
