"""What a model file says of its making: a hash of the data, and versions."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from firstpage import __version__
from firstpage.data.dataset import Dataset

SAMPLED = 1 << 16  # bytes of features that a fingerprint looks at


def fingerprint(data: Dataset) -> dict[str, Any]:
    """What the data were, and a hash of labels, queries and (at most 64 KB of) features."""
    digest = hashlib.sha256()
    digest.update(data.y.tobytes() + data.offsets.tobytes())
    X = data.X if isinstance(data.X, np.ndarray) else data.X.data.reshape(-1, 1)
    step = max(1, -(-X.nbytes // SAMPLED))
    digest.update(X[::step].tobytes())
    return {
        "source": data.source.replace("\\", "/").rsplit("/", 1)[-1],
        "queries": len(data),
        "documents": data.n_docs,
        "features": data.n_features,
        "sha256": digest.hexdigest(),
    }


@cache
def versions() -> dict[str, str]:
    """Of what took part; looking them up is slow."""
    found = {"firstpage": __version__}
    for package in ("numpy", "scipy", "lightgbm", "xgboost-cpu", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
