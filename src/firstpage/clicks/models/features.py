"""Priors of attractiveness by features of documents: a logistic function of the features.

The attractiveness of a pair has a Beta prior, whose mean is 1 / (1 + exp(-w x)) and whose strength
all pairs share.  The weights and the strength maximize the marginal likelihood of the clicks.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from firstpage.clicks.models.priors import maximize_marginal
from firstpage.clicks.sessions import Sessions, rows_of_pairs
from firstpage.core import DataError, Floats
from firstpage.data import Dataset, Documents


def feature_design(features: Dataset | None, sessions: Sessions) -> Floats:
    """Return 1, whether it has features, and these, of each pair of a log: 0 where it has none."""
    pairs, count = sessions.pairs, 0 if features is None else features.n_features
    design = np.zeros((len(pairs.query), 2 + count))
    design[:, 0] = 1.0
    if features is None:
        return design
    rows = rows_of_pairs(sessions, cast(Documents, features))
    values: Any = features.X[rows[rows >= 0]]
    dense = values if isinstance(values, np.ndarray) else values.toarray()
    if not np.isfinite(dense).all():
        raise DataError(f"{features.source}: has missing features; impute them before.")
    design[rows >= 0, 1], design[rows >= 0, 2:] = 1.0, dense
    return design


def estimate_weights(design: Floats, hits: Floats, trials: Floats) -> tuple[Floats, float]:
    """Return the weights of the features and the strength of the prior of pairs with counts."""
    has = design[:, 1] > 0
    center, scale = design[has, 2:].mean(axis=0), design[has, 2:].std(axis=0)
    scale[scale == 0] = 1.0
    z = design.copy()
    z[has, 2:] = (z[has, 2:] - center) / scale
    x, strength = maximize_marginal(z, hits, trials)
    weights = np.r_[x[:2], x[2:] / scale]
    weights[1] -= center @ weights[2:]
    return weights, strength
