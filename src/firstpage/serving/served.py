"""A model in service: read, tried out, and ready to score."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.errors import DataError
from firstpage.kernels.compiler.decorators import LIGHT
from firstpage.rankers.model_files import Model, read_model
from firstpage.scorers.scorer import Contributions
from firstpage.serving.forests import Flat, flat_of
from firstpage.serving.json_body import dumps
from firstpage.types import Array, Floats, Ints

Mark = tuple[int, int, int, int, int]
LARGEST = 1 << 30  # bytes of a model file
WIDE = 256  # hidden units up to which a network scores at once
STEPS = 20_000  # of one row through all trees, up to which they do


@dataclass(frozen=True, eq=False)
class Served:
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

    def described(self) -> dict[str, Any]:
        """What `GET /model` tells."""
        model = self.model
        return {
            "ranker": model.ranker,
            "digest": self.digest,
            "parameters": model.parameters,
            "features": {"count": model.n_features, "names": self.names},
            "normalize": None if model.transform is None else model.transform.to_dict(),
            "by_query": self.by_query,
            "training": {k: v for k, v in model.training.items() if k != "curve"},
        }

    def _scaled(self, X: Array, offsets: Ints) -> Array:
        transform = self.model.transform
        return X if transform is None else transform.transform(X, offsets)


def load(path: str | os.PathLike[str]) -> Served:
    """Read a model file and score with it once; what cannot score is not served."""
    mark, before = mark_of(path), digest(path)
    model = read_model(path)
    if digest(path) != before or mark_of(path) != mark:
        raise DataError(f"{os.fspath(path)}: changed while it was read.")
    found = Served(model, before)
    _check_told(found, os.fspath(path))
    rows = LIGHT // model.n_features + 2  # enough that kernels are compiled now, not in a request
    for kind in (np.float32, np.float64):
        X = np.zeros((rows, model.n_features), kind)
        if not np.isfinite(found.scores(X, np.array([0, rows]))).all():
            raise DataError(f"{os.fspath(path)}: gives scores that are not finite.")
    return found


def _check_told(found: Served, name: str) -> None:
    """Half a letter in a name, or a number without end, could be told to nobody."""
    try:
        dumps(found.described())
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: what it says of itself is no JSON ({error}).") from None


def mark_of(path: str | os.PathLike[str]) -> Mark | None:
    """What changes when another file comes to lie there, or the same one is written to."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def digest(path: str | os.PathLike[str]) -> str:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):  # a pipe would keep us waiting for ever
            raise DataError(f"{os.fspath(path)}: is no file.")
        if found.st_size > LARGEST:
            raise DataError(f"{os.fspath(path)}: is larger than {LARGEST >> 30} GiB.")
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read ({error.strerror}).") from None
