"""Cross-validation over folds."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import firstpage as fp
from firstpage.errors import DataError
from firstpage.rankers.selection.cross_validation import CrossValidation
from firstpage.report.rankers import folds_csv

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_edge_cases_of_cross_validation(tmp_path) -> None:
    fp.write_folds(fp.Dataset.from_arrays(X, Y, QID), tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    result = fp.cross_validate(fp.ListNet(), folds, "NDCG@5")
    assert list(result.values) == ["ListNet()"]
    twice = fp.cross_validate([fp.ListNet(), fp.ListNet()], folds, fp.measure("NDCG@5"))
    assert len(twice.values) == 2
    with pytest.raises(DataError, match="at least one seed"):
        fp.cross_validate(fp.ListNet(), folds, seeds=[])


VALUES = {"A": np.array([[0.0, 0.4, 0.8, 0.9]]), "B": np.array([[0.1, 0.6, 0.7, 0.7]])}
FOUND = CrossValidation(
    ("AP",), "default", tuple("1234"), np.array([1.0, 2.0, 2.0, 2.0]),
    {name: {"AP": values} for name, values in VALUES.items()}, {},
)  # fmt: skip


def test_every_fold_has_the_same_weight_in_the_mean() -> None:
    assert FOUND.mean("A", "AP") == pytest.approx((0.0 + (0.4 + 0.8 + 0.9) / 3) / 2)


def test_differences_are_differences_of_means() -> None:
    apart, p = FOUND.differences("A", "AP")["B"]
    assert apart == pytest.approx(FOUND.mean("B", "AP") - FOUND.mean("A", "AP"))
    assert 0 < p <= 1
    rows = list(csv.DictReader(folds_csv(FOUND, baseline="A").splitlines()))
    means = [float(row["mean"]) for row in rows]
    assert float(rows[1]["difference"]) == pytest.approx(means[1] - means[0])
    (contents,) = FOUND.to_dict("A")["differences"]
    assert contents["difference"] == apart


def test_seed_deviation_is_that_of_the_means() -> None:
    two = CrossValidation(
        FOUND.measures, FOUND.convention, FOUND.queries, FOUND.query_folds,
        {"A": {"AP": np.vstack([VALUES["A"], VALUES["B"]])}}, {},
    )  # fmt: skip
    means = [FOUND.mean(name, "AP") for name in "AB"]
    assert two.seed_deviation("A", "AP") == pytest.approx(np.std(means, ddof=1))
