"""Training data that nothing can be learned from: no features, or none that varies."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import firstpage as fp
from firstpage.errors import DataError, FirstpageWarning
from firstpage.rankers.fit.checks import CHUNK, varies
from firstpage.rankers.registry import RANKERS

Y = np.array([2, 1, 0, 0, 1, 0, 2, 0, 0, 1, 0, 1.0])
Q = np.repeat([1, 2, 3], 4)
EMPTY = fp.Dataset.from_arrays(np.empty((12, 0)), Y, Q)
GOOD = fp.Dataset.from_arrays(np.random.default_rng(0).normal(size=(12, 3)), Y, Q)
LINE = "has no features to learn from"
MADE = [
    *(cls() for cls in RANKERS.values()),
    fp.ListNet(scorer="mlp"),
    fp.ListMLE(scorer="trees(count=3)"),
    fp.ListMLE(scorer="trees(count=3, library=xgboost)"),
    fp.ListNet(solver="sgd(max_iter=5)"),
    fp.RankSVM(solver="n-slack"),
    fp.RankBoost(weak="features"),
    fp.RankNet(device="cuda"),  # refused before a device is looked for
    fp.ListNet(normalize="minmax"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("made", MADE, ids=str)
def test_no_features_is_one_line_by_every_door(made, tmp_path) -> None:
    fp.write_shards(EMPTY, tmp_path, 4)
    fits = [
        lambda r: r.fit(EMPTY),
        lambda r: r.fit(EMPTY, valid=EMPTY),
        lambda r: r.fit(np.empty((12, 0)), Y, qid=Q),
        lambda r: r.fit(csr_array((12, 0)), Y, qid=Q),
        lambda r: fp.tune(r, EMPTY, EMPTY),
    ]
    if type(made)._supports_shards:
        fits.append(lambda r: r.fit(fp.read_shards(tmp_path)))
        fits.append(lambda r: r.fit(fp.read_shards(tmp_path), engine="dask://127.0.0.1:1"))
    for fit in fits:
        ranker = clone(made)
        with pytest.raises(DataError, match=LINE) as caught:
            fit(ranker)
        assert "\n" not in str(caught.value)
        assert not [name for name in vars(ranker) if name.endswith("_")]


def test_a_fit_without_features_leaves_the_model_as_it_was() -> None:
    ranker = fp.ListNet().fit(GOOD)
    before = ranker.predict(GOOD).tolist()
    with pytest.raises(DataError, match=LINE):
        ranker.fit(EMPTY)
    assert ranker.predict(GOOD).tolist() == before
    with pytest.raises(ValueError, match="0 features"):
        ranker.fit(GOOD, valid=EMPTY)
    with pytest.raises(ValueError, match="0 feature"):
        ranker.predict(np.empty((12, 0)))


def test_files_without_features(tmp_path) -> None:
    """Labels and queries alone, by the readers of files."""
    text = "".join(f"{y:.0f} qid:{q}\n" for y, q in zip(Y, Q, strict=True))
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        for part in ("train", "vali", "test"):
            (tmp_path / fold / f"{part}.txt").write_text(text)
    with pytest.raises(DataError, match=LINE):
        fp.ListNet().fit(fp.read_letor(tmp_path / "Fold1" / "train.txt"))
    with pytest.raises(DataError, match=LINE):
        fp.cross_validate([fp.ListNet()], fp.read_folds(tmp_path), ["NDCG@5"])


NOTHING = "all scores are alike|nothing was learned"
CONSTANT = [np.ones((12, 3)), np.repeat(np.arange(3.0), 4)[:, None]]  # everywhere, in each query


@pytest.mark.parametrize("made", [m for m in MADE if "cuda" not in str(m)], ids=str)
def test_features_that_vary_in_no_query_are_said(made) -> None:
    """LightGBM refuses some after the warning: see below."""
    for X in CONSTANT:
        with pytest.warns(FirstpageWarning, match=NOTHING), suppress(DataError):
            clone(made).fit(X, Y, qid=Q)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [fp.Regression, fp.ListNet, fp.RankSVM, fp.RankBoost])
def test_shards_whose_features_vary_in_no_query_are_said(cls, tmp_path) -> None:
    for number, X in enumerate(CONSTANT):
        shards = fp.write_shards(fp.Dataset.from_arrays(X, Y, Q), tmp_path / str(number), 4)
        with pytest.warns(FirstpageWarning, match=NOTHING):
            cls().fit(shards)


def test_trees_that_cannot_split_are_said() -> None:
    with pytest.warns(FirstpageWarning, match=r"the trees have no split.*lower min_docs"):
        fp.LambdaMART(scorer="trees(count=3)").fit(GOOD)
    with pytest.raises(DataError, match=r"the trees have no split.*lower min_docs"):
        fp.ListMLE(scorer="trees(count=3)").fit(GOOD)


def test_what_varies_inside_a_query() -> None:
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
