"""Cross-validation over folds."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.types import Floats
from firstpage.interop.report.rankers import folds_csv
from firstpage.learning.rankers.selection.cross_validation import CrossValidation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
QID = np.repeat(np.arange(30), 10)
Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


def test_edge_cases_of_cross_validation(tmp_path: Path) -> None:
    fp.write_folds(fp.Dataset.from_arrays(X, Y, QID), tmp_path, 3)
    folds = fp.read_folds(tmp_path)
    result = fp.cross_validate(fp.ListNet(), folds, "NDCG@5")
    assert list(result.values) == ["ListNet()"]
    twice = fp.cross_validate([fp.ListNet(), fp.ListNet()], folds, fp.measure("NDCG@5"))
    assert len(twice.values) == 2
    with pytest.raises(DataError, match="at least one seed"):
        fp.cross_validate(fp.ListNet(), folds, seeds=[])


VALUES = {"A": np.array([[0.0, 0.4, 0.8, 0.9]]), "B": np.array([[0.1, 0.6, 0.7, 0.7]])}
RESULT = CrossValidation(
    ("AP",),
    "default",
    tuple("1234"),
    np.array([1.0, 2.0, 2.0, 2.0]),
    {name: {"AP": values} for name, values in VALUES.items()},
    {},
)


def test_every_fold_has_the_same_weight_in_the_mean() -> None:
    assert RESULT.mean("A", "AP") == pytest.approx((0.0 + (0.4 + 0.8 + 0.9) / 3) / 2)


def test_differences_are_differences_of_means() -> None:
    difference, p = RESULT.differences("A", "AP")["B"]
    assert difference == pytest.approx(RESULT.mean("B", "AP") - RESULT.mean("A", "AP"))
    assert 0 < p <= 1
    rows = list(csv.DictReader(folds_csv(RESULT, baseline="A").splitlines()))
    means = [float(row["mean"]) for row in rows]
    assert float(rows[1]["difference"]) == pytest.approx(means[1] - means[0])
    (contents,) = RESULT.to_dict("A")["differences"]
    assert contents["difference"] == difference


def test_seed_deviation_is_that_of_the_means() -> None:
    two = CrossValidation(
        RESULT.measures,
        RESULT.convention,
        RESULT.queries,
        RESULT.query_folds,
        {"A": {"AP": np.vstack([VALUES["A"], VALUES["B"]])}},
        {},
    )
    means = [RESULT.mean(name, "AP") for name in "AB"]
    assert two.seed_deviation("A", "AP") == pytest.approx(np.std(means, ddof=1))


def folds_with_ids(folder: Path) -> list[fp.Fold]:
    data = fp.Dataset.from_arrays(X, Y, QID, docid=[f"d{i}" for i in range(len(Y))])
    fp.write_folds(data, folder, 3)
    return fp.read_folds(folder)


def run_of(scores: Floats, last: int | None = None) -> fp.Run:
    table: dict[str, dict[str, float]] = {}
    for row, query in enumerate(QID.tolist()):
        if row != last:
            table.setdefault(str(query), {})[f"d{row}"] = float(scores[row])
    return fp.Run.from_dict(table)


def test_a_run_is_measured_on_the_test_queries(tmp_path: Path) -> None:
    folds = folds_with_ids(tmp_path)
    scores = X[:, 0]
    result = fp.cross_validate(
        fp.ListNet(), folds, "NDCG@5", seeds=[0, 1], runs={"first stage": run_of(scores)}
    )
    expected = fp.evaluate(scores, fp.Dataset.from_arrays(X, Y, QID), measures="NDCG@5")
    by_query = dict(zip(map(str, expected.queries), expected.per_query("NDCG@5"), strict=True))
    values = result.values["first stage"]["NDCG@5"]
    assert values.tolist() == [[by_query[query] for query in result.queries]] * 2
    assert result.chosen["first stage"] == []


def test_a_document_that_a_run_lacks_comes_last(tmp_path: Path) -> None:
    folds = folds_with_ids(tmp_path)
    lowest = X[:, 0].copy()
    lowest[7] = lowest.min() - 1
    with pytest.warns(fp.FirstpageWarning, match="lacks 1 of"):
        result = fp.cross_validate(fp.ListNet(), folds, "AP", runs={"run": run_of(X[:, 0], last=7)})
    expected = fp.cross_validate(fp.ListNet(), folds, "AP", runs={"run": run_of(lowest)})
    assert np.array_equal(result.values["run"]["AP"], expected.values["run"]["AP"])


def test_a_run_with_the_name_of_a_ranker_is_refused_before_any_fit(tmp_path: Path) -> None:
    fits: list[str] = []
    with pytest.raises(DataError, match="a ranker and a run are both named 'A'"):
        fp.cross_validate(
            {"A": fp.ListNet()},
            folds_with_ids(tmp_path),
            progress=lambda name, fold, seed: fits.append(name),
            runs={"A": run_of(X[:, 0])},
        )
    assert fits == []
