"""The interface that all rankers share."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.learning.losses.listwise import SoftmaxCrossEntropy

RNG = np.random.default_rng(0)


X = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


Y = np.clip(np.round(X @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


LINEAR = [fp.RankNet, fp.ListNet, fp.ListMLE, fp.RankCosine, fp.FocusedNet, fp.Regression]


def test_a_failed_fit_keeps_the_previous_model() -> None:
    ranker = fp.ListNet().fit(X, Y, qid=QID)
    before = ranker.predict(X)
    with pytest.raises(DataError):
        ranker.fit(np.c_[X, X], np.full(300, np.nan), qid=QID)
    assert ranker.n_features_in_ == 5
    assert ranker.predict(X).tolist() == before.tolist()


@pytest.mark.parametrize("cls", LINEAR[:-1])
def test_queries_with_equal_labels_do_not_change_the_model(cls) -> None:
    expected = cls().fit(X, Y, qid=QID).coef_
    more = np.r_[X, RNG.normal(size=(40, 5))]
    labels = np.r_[Y, np.ones(20), np.arange(20) % 3]
    qid = np.r_[QID, np.repeat([100, 101], 10), np.arange(200, 220)]  # tied, and alone
    assert cls().fit(more, labels, qid=qid).coef_ == pytest.approx(expected, rel=1e-4, abs=1e-5)
    data = fp.Dataset.from_arrays(X, Y, QID)
    empty = fp.Dataset(
        data.X,
        data.y,
        np.insert(data.offsets, [0, 7, 30], data.offsets[[0, 7, 30]]),
        type(data.queries).from_values([str(i) for i in range(33)]),
    )
    assert cls().fit(empty).coef_ == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_empty_queries_do_not_change_trees_or_regression() -> None:
    data = fp.Dataset.from_arrays(X, Y, QID)
    empty = fp.Dataset(
        data.X,
        data.y,
        np.append(data.offsets, 300),
        type(data.queries).from_values([str(i) for i in range(31)]),
    )
    for unfitted in (
        fp.LambdaMART(scorer="trees(count=3)"),
        fp.Regression(),
        fp.ListNet(scorer="trees(count=3)"),
    ):
        assert np.isfinite(unfitted.fit(empty).predict(X)).all()


def test_missing_scores_are_visible() -> None:
    values, _ = SoftmaxCrossEntropy().value_grad(
        np.array([1.0, np.nan]), fp.Truth.from_labels([1, 0], [1, 1])
    )
    assert np.isnan(values[0])


def test_weights_of_documents_are_those_of_the_rows_of_a_dataset() -> None:
    order = np.random.default_rng(1).permutation(len(Y))
    with pytest.warns(fp.FirstpageWarning, match="not adjacent|regrouped|not together"):
        data = fp.Dataset.from_arrays(X[order], Y[order], QID[order])
    weight = np.where(data.y > 0, 3.0, 1.0)
    expected = fp.RankNet().fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    np.testing.assert_allclose(fp.RankNet().fit(data, sample_weight=weight).coef_, expected.coef_)
    assert expected.score(data, sample_weight=weight) == pytest.approx(
        expected.score(data.X, data.y, qid=data.qid, sample_weight=weight)
    )
