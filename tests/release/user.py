"""A program of a user, which type checkers must accept with the installed package alone."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import firstpage as fp


def evaluated(version: str) -> list[str]:
    """Return the measures of a ranker that was trained on synthetic data."""
    data: fp.Dataset = fp.Synthetic(queries=20, docs=10, features=4, seed=0).dataset()
    ranker = fp.ListMLE(k=5, normalize="standard").fit(data)
    assert_type(ranker, fp.ListMLE)
    scores = ranker.predict(data)
    result = fp.evaluate(scores, data, measures=["NDCG@5", fp.measure("P@5")])
    values: NDArray[np.float64] = result.per_query("NDCG@5")
    comparison = fp.compare({"a": scores, "b": -scores}, data, measures="NDCG@5", baseline="a")
    return [version, str(comparison), *result.texts, f"{values.mean():.3f}"]


if __name__ == "__main__":
    print(*evaluated(fp.__version__), sep="\n")
