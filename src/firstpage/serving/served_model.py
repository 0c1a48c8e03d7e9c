"""A model in service: read, tried out, and ready to score."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from firstpage.errors import DataError
from firstpage.kernels.compiler.decorators import MAX_INTERPRETED
from firstpage.rankers.model_files import Model, read_model
from firstpage.scorers.scorer import Contributions
from firstpage.serving.forests import Flat, flat_of
from firstpage.serving.json_messages import ModelDescription
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
        scaled = transform is not None and transform.per == "query"
        return self.model.scoring.by_query or scaled

    @cached_property
    def trees(self) -> Flat | None:
        """Trees as our kernel walks them."""
        scoring = self.model.scoring
        return None if scoring.library_model is None else flat_of(scoring)

    @cached_property
    def quick(self) -> bool:
        """Whether a query is scored before another thread could have been woken."""
        scoring = self.model.scoring
        if scoring.network is not None:
            return len(scoring.network.b) <= WIDE
        if self.trees is not None:
            return self.trees.steps <= STEPS
        return scoring.library_model is None and not scoring.by_query

    def scores(self, X: Array, offsets: Ints) -> Floats:
        """The very scores of `firstpage rank`: same scaling, same kernels."""
        scaled = self._scaled(X, offsets)
        if self.trees is not None:
            return self.trees.predict(scaled)
        return self.model.scoring.predict(scaled, None, offsets)

    def parts(self, X: Array, offsets: Ints, rows: Ints) -> tuple[tuple[str, ...], Contributions]:
        """Names and contributions to the scores of some rows."""
        scaled, scoring = self._scaled(X, offsets), self.model.scoring
        if scoring.by_query:
            whole = scoring.contributions(scaled, offsets)
            some = replace(whole, values=whole.values[rows])
        else:
            some = scoring.contributions(np.ascontiguousarray(scaled[rows]))
        return some.names or self.names, some

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


def load(path: str | os.PathLike[str]) -> ServedModel:
    """Read a model file and score with it once; what cannot score is not served."""
    name, stamp, digest = os.fspath(path), file_stamp(path), sha256_of(path)
    model = read_model(path)
    if sha256_of(path) != digest or file_stamp(path) != stamp:
        raise DataError(f"{name}: changed while it was read.")
    served = ServedModel(model, digest)
    _check_serializable(served, name)
    rows = (
        MAX_INTERPRETED // model.n_features + 2
    )  # enough that kernels are compiled now, not in a request
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
