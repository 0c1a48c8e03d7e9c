"""Uninformative training data: no features, or constant ones."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.learning.rankers.fit.checks import CHUNK, varies
from firstpage.learning.rankers.registry import RANKERS

Y = np.array([2, 1, 0, 0, 1, 0, 2, 0, 0, 1, 0, 1.0])
Q = np.repeat([1, 2, 3], 4)
EMPTY = fp.Dataset.from_arrays(np.empty((12, 0)), Y, Q)
GOOD = fp.Dataset.from_arrays(np.random.default_rng(0).normal(size=(12, 3)), Y, Q)
LINE = "has no features to learn from"
ON_CPU = [
    *(cls() for cls in RANKERS.values()),
    fp.ListMLE(scorer="trees(count=3)"),
    fp.ListMLE(scorer="trees(count=3, library=xgboost)"),
    fp.ListNet(solver="sgd(max_iter=5)"),
    fp.RankBoost(weak="features"),
    fp.ListNet(normalize="minmax"),
]
NETWORK = fp.ListNet(scorer="mlp")
# All are refused before a device or PyTorch is looked for.
UNFITTED = [*ON_CPU, NETWORK, fp.RankNet(device="cuda")]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unfitted", UNFITTED, ids=str)
def test_data_without_features_are_rejected_in_every_form(unfitted, tmp_path) -> None:
    fp.write_shards(EMPTY, tmp_path, 4)
    fits = [
        lambda r: r.fit(EMPTY),
        lambda r: r.fit(EMPTY, valid=EMPTY),
        lambda r: r.fit(np.empty((12, 0)), Y, qid=Q),
        lambda r: r.fit(csr_array((12, 0)), Y, qid=Q),
        lambda r: fp.tune(r, EMPTY, EMPTY),
    ]
    if type(unfitted)._supports_shards:
        fits.append(lambda r: r.fit(fp.read_shards(tmp_path)))
        fits.append(lambda r: r.fit(fp.read_shards(tmp_path), engine="dask://127.0.0.1:1"))
    for fit in fits:
        ranker = clone(unfitted)
        with pytest.raises(DataError, match=LINE) as caught:
            fit(ranker)
        assert "\n" not in str(caught.value)
        assert not [name for name in vars(ranker) if name.endswith("_")]


def test_a_failed_fit_without_features_keeps_the_model() -> None:
    ranker = fp.ListNet().fit(GOOD)
    before = ranker.predict(GOOD).tolist()
    with pytest.raises(DataError, match=LINE):
        ranker.fit(EMPTY)
    assert ranker.predict(GOOD).tolist() == before
    with pytest.raises(ValueError, match="0 features"):
        ranker.fit(GOOD, valid=EMPTY)
    with pytest.raises(ValueError, match="0 feature"):
        ranker.predict(np.empty((12, 0)))


def test_files_without_features_are_rejected(tmp_path) -> None:
    """Files with labels and queries only."""
    text = "".join(f"{y:.0f} qid:{q}\n" for y, q in zip(Y, Q, strict=True))
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        for part in ("train", "vali", "test"):
            (tmp_path / fold / f"{part}.txt").write_text(text)
    with pytest.raises(DataError, match=LINE):
        fp.ListNet().fit(fp.read_letor(tmp_path / "Fold1" / "train.txt"))
    with pytest.raises(DataError, match=LINE):
        fp.cross_validate([fp.ListNet()], fp.read_folds(tmp_path), ["NDCG@5"])


NOTHING = "all scores are equal|nothing was learned"
CONSTANT = [np.ones((12, 3)), np.repeat(np.arange(3.0), 4)[:, None]]  # everywhere, in each query


@pytest.mark.parametrize(
    "unfitted", [*ON_CPU, pytest.param(NETWORK, marks=pytest.mark.torch)], ids=str
)
def test_constant_features_cause_a_warning(unfitted) -> None:
    """LightGBM rejects some after the warning."""
    for X in CONSTANT:
        with pytest.warns(FirstpageWarning, match=NOTHING), suppress(DataError):
            clone(unfitted).fit(X, Y, qid=Q)


@pytest.mark.parametrize("cls", [fp.Regression, fp.ListNet, fp.RankSVM, fp.RankBoost])
def test_constant_features_in_shards_cause_a_warning(cls, tmp_path) -> None:
    for number, X in enumerate(CONSTANT):
        shards = fp.write_shards(fp.Dataset.from_arrays(X, Y, Q), tmp_path / str(number), 4)
        with pytest.warns(FirstpageWarning, match=NOTHING):
            cls().fit(shards)


def test_trees_without_splits_cause_a_warning() -> None:
    with pytest.warns(FirstpageWarning, match=r"the trees have no split.*lower min_docs"):
        fp.LambdaMART(scorer="trees(count=3)").fit(GOOD)
    with pytest.raises(DataError, match=r"the trees have no split.*lower min_docs"):
        fp.ListMLE(scorer="trees(count=3)").fit(GOOD)


def test_varies_compares_documents_of_a_query() -> None:
    rows = 3 * CHUNK
    qid = np.arange(rows) // 2  # pairs of documents
    constant = np.repeat(np.arange(rows // 2, dtype=float), 2)[:, None]
    for make in (np.asarray, csr_array):
        assert not varies(fp.Dataset.from_arrays(make(constant), np.zeros(rows), qid))
        for row in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, rows - 1):
            X = np.hstack([constant, np.zeros_like(constant)])
            X[row, 1] = 1.0
            assert varies(fp.Dataset.from_arrays(make(X), np.zeros(rows), qid)), row
    assert not varies(fp.Dataset.from_arrays(np.array([[1.0], [2.0]]), np.zeros(2), [1, 2]))


@pytest.mark.torch
def test_a_network_without_preferences_causes_a_warning() -> None:
    """Its weights start at random, so that its scores differ although nothing was learned."""
    X, qid = np.random.default_rng(0).normal(size=(12, 2)), np.repeat([1, 2, 3], 4)
    ranker = fp.ListNet(scorer="mlp(hidden=4)", solver="adam(max_iter=3)")
    with pytest.warns(FirstpageWarning, match="the scores are arbitrary"):
        ranker.fit(X, np.zeros(12), qid=qid)
