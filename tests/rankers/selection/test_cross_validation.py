"""Cross-validation over folds."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_cross_validation_s_edges(tmp_path) -> None:
    fp.write_folds(fp.Dataset.from_arrays(X, Y, QID), tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    found = fp.cross_validate(fp.ListNet(), folds, "NDCG@5")
    assert list(found.values) == ["ListNet()"]
    twice = fp.cross_validate([fp.ListNet(), fp.ListNet()], folds, fp.measure("NDCG@5"))
    assert len(twice.values) == 2
    with pytest.raises(DataError, match="at least one seed"):
        fp.cross_validate(fp.ListNet(), folds, seeds=[])
