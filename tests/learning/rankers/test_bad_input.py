"""Invalid input and its one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError, FirstpageWarning
from firstpage.learning.rankers.methods import METHODS

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([2, 1, 0, 0, 1, 0, 2, 0, 0, 1, 0, 1])
Q = np.repeat([1, 2, 3], 4)
GROUPED = fp.Dataset.from_arrays(X, Y, Q)


def bad(value: float) -> np.ndarray:
    out = X.copy()
    out[5, 1] = value
    return out


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: fp.ListNet().fit(bad(np.nan), Y, qid=Q), r"feature 2 of row 6 \(query '2'\) is nan"),
        (lambda: fp.ListNet().fit(bad(np.inf), Y, qid=Q), "is inf. Fill or drop"),
        (lambda: fp.ListNet().fit(X, np.where(Y > 1, np.nan, Y), qid=Q), "label of row 0 is nan"),
        (lambda: fp.ListNet().fit(X, [2**63 - 1] * 12, qid=Q), "beyond 2\\^53"),
        (lambda: fp.ListNet().fit(X, ["a"] * 12, qid=Q), "labels must be numbers"),
        (lambda: fp.ListNet().fit(X, Y[:5], qid=Q), "5 labels for 12 documents"),
        (lambda: fp.ListNet().fit(X, Y, qid=Q[:5]), "qid has 5 entries for 12"),
        (lambda: fp.ListNet().fit(X, Y, qid=[None] * 12), "qid of row 0 is missing"),
        (lambda: fp.ListNet().fit(X, Y, qid=Q, sample_weight=[1.0] * 7), "7 weights; give one per document"),
        (lambda: fp.ListNet().fit(X, Y, qid=Q, sample_weight=-np.ones(12)), "finite and not negative"),
        (lambda: fp.ListNet(k=0).fit(X, Y, qid=Q), "k of ListNet must be an integer of at least 1"),
        (lambda: fp.ListNet(k=2.5).fit(X, Y, qid=Q), "k of ListNet must be an integer"),  # type: ignore[arg-type]
        (lambda: fp.ListNet(l2=-1).fit(X, Y, qid=Q), "l2 of ListNet must be a number of at least 0"),
        (lambda: fp.ListNet(ties="no").fit(X, Y, qid=Q), "'share', 'random' or 'resample'"),  # type: ignore[arg-type]
        (lambda: fp.ListNet(form="x").fit(X, Y, qid=Q), "'top-one' or 'permutation'"),  # type: ignore[arg-type]
        (lambda: fp.ListNet(measure="NDCG@x").fit(X, Y, qid=Q), "cut-off must be an integer"),
        (lambda: fp.ListNet(normalize="max").fit(X, Y, qid=Q), "no normalization 'max'"),
        (lambda: fp.ListNet(solver="newton").fit(X, Y, qid=Q), "no solver 'newton'"),
        (lambda: fp.ListNet(scorer="forest").fit(X, Y, qid=Q), "no scorer 'forest'"),
        (lambda: fp.ListNet(threads=0).fit(np.tile(X, (30000, 1)), np.tile(Y, 30000), qid=np.tile(Q, 30000)), "threads of ListNet must be"),
        (lambda: fp.ListNet(patience=0).fit(X, Y, qid=Q), "patience of ListNet must be"),
        (lambda: fp.FocusedNet(beta=2).fit(X, Y, qid=Q), "beta must be from 0 to 1"),
        (lambda: fp.FocusedNet(k=None).fit(X, Y, qid=Q), "FocusedNet needs k"),
        (lambda: fp.ListNet(scorer="trees(library=catboost)").fit(X, Y, qid=Q), "library must be one of"),
        (lambda: fp.ListNet().fit(X, Y, qid=Q, valid=X), "valid must be a Dataset"),  # type: ignore[arg-type]
        (lambda: fp.ListNet().fit(X, Y, qid=Q, valid=(X[:, :2], Y, Q)), "expecting 3 features"),
        (lambda: fp.ListNet().fit(X, Y, qid=Q).predict(X[:, :2]), "expecting 3 features"),
        (lambda: fp.ListNet(normalize="minmax").fit(X, Y, qid=Q).predict(X), "call predict\\(X, qid"),
        (lambda: fp.ListNet().fit(fp.Dataset.from_arrays(X, Y, Q), Y), "labels and query ids of its own"),
        (lambda: fp.ListNet().fit(GROUPED).score(GROUPED, Y), "a Dataset has labels of its own; drop y"),
        (lambda: fp.ListNet().fit(GROUPED).score(GROUPED, qid=Q), "a Dataset has query ids of its own; drop qid"),
        (lambda: fp.ListNet().fit(GROUPED).predict(X, qid=[1]), "qid has 1 entries for 12 documents"),
        (lambda: fp.ListNet().fit(GROUPED).predict(X, engine="dask://nohost:1"), "engine requires Shards"),
        (lambda: fp.ListNet(scorer="trees", l2=5.0).fit(GROUPED), "trees do not use l2; leave it out"),
        (lambda: fp.RankSVM(scorer="trees", C=5.0).fit(GROUPED), "trees do not use C; leave it out"),
        (lambda: fp.ListNet(scorer="trees", solver="sgd").fit(GROUPED), "trees do not use solver"),
        (lambda: fp.RankBoost().fit(bad(np.nan), Y, qid=Q), r"feature 2 of row 6 \(query '2'\) is nan"),
        (lambda: fp.AdaRank().fit(X, Y, qid=Q, sample_weight=np.arange(12) / 2), "AdaRank weights documents by copying them"),
        (lambda: fp.FocusedBoost().fit(X, Y, qid=Q, sample_weight=np.arange(12) / 2), "must be integers, and one is 0.5"),
        (lambda: fp.RankBoost().fit(X, Y, qid=Q).predict(X[:, :2]), "expecting 3 features"),
        (lambda: fp.AdaRank(maximize="kNDCG@3").fit(X, Y, qid=Q), "needs a truth with a strict order of the top"),
        (lambda: fp.ListNet(scorer="trees", warm_start=True).fit(X, Y, qid=Q), "trees cannot continue an earlier fit"),
        (lambda: fp.LambdaMART(warm_start=True).fit(X, Y, qid=Q), "trees cannot continue an earlier fit"),
        (lambda: fp.ListNet(seed=2**63).fit(X, Y, qid=Q), f"seed of ListNet must be an integer of at most {2**62}"),
        (lambda: fp.Regression().fit(X * 1e300, Y, qid=Q), "the squares of the features overflow; scale them"),
        (lambda: fp.TopRank(first="Regression").fit(X * 1e300, Y, qid=Q), "the squares of the features overflow"),
        (lambda: fp.ListNet().fit(X * 1e300, Y, qid=Q), "training diverged: scale the features"),
        (lambda: fp.RankSVM().fit(X * 1e300, Y, qid=Q), "training diverged: scale the features"),
        (lambda: fp.RankCosine(solver="gd(rate=1e300)", l2=1.0).fit(X, Y, qid=Q), "lower the rate"),
    ],
)  # fmt: skip
def test_invalid_arguments_cause_one_line_errors(fit, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught, np.errstate(all="ignore"):
        fit()
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:the validation data are the training data")
def test_training_that_diverges_after_its_best_iteration_is_reported() -> None:
    ranker = fp.Regression(solver="gd(rate=1e60, max_iter=6)", l2=1.0)
    with (
        pytest.warns(
            FirstpageWarning, match=r"diverged in iteration .; .* of iteration 1,.* lower the"
        ),
        np.errstate(all="ignore"),
    ):
        ranker.fit(GROUPED, valid=GROUPED)
    assert (ranker.n_iter_, ranker.best_iteration_) == (3, 1)
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("name", [*METHODS, "TopRank"])
def test_random_ties_without_k_are_used_or_refused(name: str) -> None:
    """ListMLE orders complete lists; all others order the top k only."""
    ranker = fp.ranker(name, k=None, ties="random")
    if name == "ListMLE":
        assert not np.array_equal(
            ranker.fit(X, Y, qid=Q).coef_, fp.ListMLE(ties="share").fit(X, Y, qid=Q).coef_
        )
        return
    if name == "LambdaMART":
        with pytest.raises(FirstpageError, match="ties='random' has no effect on it"):
            ranker.set_params(k=2).fit(X, Y, qid=Q)
        return
    with pytest.raises(FirstpageError, match=f"ties='random' .* the top k; give {name} k, or"):
        ranker.fit(X, Y, qid=Q)
    ranker.set_params(k=2).check_parameters()


def test_missing_features_at_prediction_are_rejected() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ranker = fp.ListNet().fit(frame, Y, qid=Q)
    with pytest.raises(ValueError, match="missing"):
        ranker.predict(frame[["a", "b"]])
    data = fp.Dataset.from_arrays(X, Y, Q, feature_names=["a", "b", "d"])
    with pytest.raises(ValueError, match="lacks the feature 'c', which this ListNet uses"):
        ranker.predict(data)
    with pytest.raises(ValueError, match="has 2 features, and this ListNet was trained on 3"):
        ranker.predict(fp.Dataset.from_arrays(X[:, :2], Y, Q))


def test_features_are_matched_by_name() -> None:
    names = ["a", "b", "c"]
    data = fp.Dataset.from_arrays(X, Y, Q, feature_names=names)
    ranker = fp.ListNet().fit(data)
    expected = ranker.predict(data)
    turned = fp.Dataset.from_arrays(X[:, [1, 0, 2]], Y, Q, feature_names=["b", "a", "c"])
    assert ranker.predict(turned).tolist() == expected.tolist()
    assert ranker.score(turned) == ranker.score(data)
    wide = np.column_stack([np.arange(len(X)), X[:, [2, 1, 0]]])
    more = fp.Dataset.from_arrays(wide, Y, Q, feature_names=["row", "c", "b", "a"])
    with pytest.warns(fp.FirstpageWarning, match="does not use the feature 'row'; ignored"):
        assert ranker.predict(more).tolist() == expected.tolist()
    with pytest.warns(
        fp.FirstpageWarning, match="ignored|are the training data|are also in the training data"
    ):
        fitted = fp.ListNet().fit(data, valid=more)
    assert fitted.best_score_ == pytest.approx(ranker.score(data))


def test_unlabeled_data_can_be_ranked_but_not_trained_on() -> None:
    blank = fp.Dataset.from_arrays(X, np.full(len(X), np.nan), Q)
    data = fp.Dataset.from_arrays(X, Y, Q)
    ranker = fp.ListNet().fit(data)
    assert ranker.predict(blank).tolist() == ranker.predict(data).tolist()
    for fit in (lambda: fp.ListNet().fit(blank), lambda: fp.ListNet().fit(data, valid=blank)):
        with pytest.raises(fp.DataError, match="without a label"):
            fit()
    with pytest.raises(fp.DataError, match="labels must be finite"):
        ranker.score(blank)


EVERY = [
    fp.Regression, fp.RankNet, fp.ListNet, fp.ListMLE, fp.RankCosine, fp.FocusedNet,
    fp.RankSVM, fp.SVMMAP, fp.FocusedSVM, fp.TopMargin, fp.TopSlack,
]  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore:all scores are equal",
    "ignore:the optimum is w = 0",
    "ignore:with features of this size",
)
@pytest.mark.parametrize("cls", EVERY)
def test_degenerate_data_give_a_finite_model(cls) -> None:
    """Equal labels, one query, one document, k beyond every list, constant features."""
    for x, y, qid in [
        (X, np.ones(12), Q),
        (X, np.zeros(12), Q),
        (X, Y, np.zeros(len(X))),
        (X, Y, np.arange(12)),
        (X[:1], Y[:1], [1]),
        (np.ones((12, 3)), Y, Q),
        (X * 1e8, Y, Q),
        (X * 1e-8, Y, Q),
        (X, Y * 1e6, Q),
    ]:
        ranker = cls(k=100).fit(x, y, qid=qid)
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.predict(x)).all()


def test_rows_without_qid_are_one_query_with_a_warning() -> None:
    for valid, count in (None, 1), ((2 * X, Y), 2):
        with pytest.warns(
            FirstpageWarning, match=r"all 12 documents are .* one query; pass qid"
        ) as w:
            ranker = fp.ListNet().fit(X, Y, valid=valid)
        assert len([each for each in w if "pass qid" in str(each.message)]) == count
    assert ranker.score(X, Y) == ranker.score(X, Y, qid=np.zeros(12))


def test_score_refuses_rows_of_several_queries_without_qid(tmp_path: Path) -> None:
    """It would take them for one query, whose NDCG is another."""
    ranker = fp.ListNet().fit(X, Y, qid=Q)
    ranker.save(tmp_path / "model.json")
    pipeline = make_pipeline(FunctionTransformer(), ranker)
    for scored in (ranker, fp.load(tmp_path / "model.json"), pipeline):
        with pytest.raises(DataError, match=r"all 12 rows.*enable_metadata_routing=True"):
            scored.score(X, Y)
    assert ranker.score(X, Y, qid=Q) == ranker.score(GROUPED)


def test_a_search_without_routing_has_no_scores() -> None:
    search = GridSearchCV(fp.ListNet(), {"l2": [1e-3]}, cv=GroupKFold(2))
    with (
        pytest.warns(UserWarning, match="test scores are non-finite"),
        pytest.warns(UserWarning, match="score needs the query id"),
    ):
        search.fit(X, Y, qid=Q, groups=Q)
    assert np.isnan(search.best_score_)
    with pytest.raises(DataError, match="score needs the query id"):
        GridSearchCV(fp.ListNet(), {"l2": [1e-3]}, cv=GroupKFold(2), error_score="raise").fit(
            X, Y, qid=Q, groups=Q
        )


def test_group_is_the_sizes_of_consecutive_queries() -> None:
    sizes = np.unique(np.sort(Q), return_counts=True)[1]
    order = np.argsort(Q, kind="stable")
    expected = fp.ListNet().fit(X[order], Y[order], qid=np.sort(Q)).coef_
    np.testing.assert_array_equal(fp.ListNet().fit(X[order], Y[order], group=sizes).coef_, expected)
    for options, message in (
        ({"group": sizes, "qid": Q}, "give the ids of the rows, or the sizes"),
        ({"group": sizes[:-1]}, rf"sum to {sizes[:-1].sum()}, and X has {len(X)} rows\.$"),
        ({"group": Q + 5}, "pass qid"),
        ({"group": [0, len(X)]}, "each at least 1"),
        ({"group": ["a"]}, "numbers of rows"),
        ({"group": [[len(X)]]}, "numbers of rows"),
    ):
        with pytest.raises(fp.DataError, match=message):
            fp.ListNet().fit(X, Y, **options)
    with pytest.raises(fp.DataError, match="a Dataset has query ids of its own; drop group"):
        fp.ListNet().fit(fp.Dataset.from_arrays(X, Y, Q), group=sizes)


def test_too_few_iterations_cause_a_warning() -> None:
    with pytest.warns(FirstpageWarning, match="raise max_iter"):
        fp.RankNet(solver="lbfgs(max_iter=2)").fit(X, Y, qid=Q)


def damaged(path, change) -> str:
    contents = json.loads(path.read_text())
    change(contents)
    path.write_text(json.dumps(contents))
    return str(path)


def _signed(section: dict, contents: dict, **changes) -> None:
    """Change the contents and update the checksum."""
    from firstpage.data.io.json_files import json_digest
    from firstpage.learning.models.model_files import FIELDS

    section.update(changes)
    contents["sha256"] = json_digest({name: contents[name] for name in FIELDS})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(version=99), "newer Firstpage .*Upgrade"),
        (lambda h: h.update(format="other"), "not a model of Firstpage"),
        (lambda h: h["scorer"]["weights"].__setitem__(0, 0.5), "damaged: its contents"),
        (lambda h: h.pop("scorer"), "damaged"),
        (lambda h: h.update(version="x"), "its version is 'x'"),
        (lambda h: h.update(version=0), "its version is 0"),
        (lambda h: h.update(ranker=5), "'ranker' is missing or of a wrong type"),
        (lambda h: h.update(parameters=[]), "'parameters' is missing"),
        (lambda h: h.update(training=None), "'training' is missing"),
        (lambda h: _signed(h["scorer"], h, weights=5), "not one finite number"),
        (lambda h: _signed(h["scorer"], h, weights=[1.0]), "number of weights"),
        (lambda h: _signed(h["scorer"], h, weights=[1.0, 2.0, float("nan")]), "not one finite"),
        (lambda h: _signed(h["scorer"], h, kind="rocket"), "damaged"),
        (lambda h: _signed(h["features"], h, names=["a"]), "names of the features"),
        (lambda h: _signed(h, h, normalize={"transform": "x"}), "no transform"),
        (
            lambda h: _signed(
                h,
                h,
                scorer={"kind": "trees", "library": "lightgbm", "text": "tree", "n_features": 3},
            ),
            "not a complete model of lightgbm",
        ),
        (
            lambda h: _signed(
                h,
                h,
                scorer={
                    "kind": "stumps",
                    "n_features": 3,
                    "feature": [3],
                    "threshold": [0.0],
                    "step": [1.0],
                },
            ),
            "a feature of the stumps is not the number of a feature",
        ),
        (
            lambda h: _signed(
                h, h, scorer={"kind": "trees", "library": "xgboost", "text": "", "n_features": 3}
            ),
            "not a complete model of xgboost",
        ),
    ],
)
def test_foreign_newer_and_damaged_files_are_rejected(change, message: str, tmp_path) -> None:
    path = tmp_path / "m.json"
    fp.ListNet().fit(X, Y, qid=Q).save(path)
    with pytest.raises(fp.DataError, match=message) as caught:
        fp.load(damaged(path, change))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_truncated_and_missing_files_are_rejected(tmp_path) -> None:
    path = tmp_path / "m.json"
    fp.ListNet().fit(X, Y, qid=Q).save(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(fp.DataError, match=r"m\.json:\d+: not a model file, or a damaged one"):
        fp.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(fp.DataError, match=r"m\.json"):
        fp.load(path)
    with pytest.raises(fp.DataError, match="no such file"):
        fp.load(tmp_path / "absent.json")
    with pytest.raises(fp.DataError):
        fp.load(tmp_path)
    path.write_text("[" * 100_000)
    with pytest.raises(fp.DataError, match="not a model file"):
        fp.load(path)
    fp.ListNet().fit(X, Y, qid=Q).save(tmp_path / "m.json.gz")
    assert fp.load(tmp_path / "m.json.gz").predict(X).shape == (12,)


def test_errors_for_missing_packages_name_the_extra(monkeypatch) -> None:
    import sys

    for name, scorer, extra in [
        ("lightgbm", "trees", "trees"),
        ("torch", "mlp", "torch"),
        ("xgboost", "trees(library=xgboost)", "trees"),
    ]:
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(fp.FirstpageError, match=rf"\[{extra}\]"):
            fp.ListNet(scorer=scorer).fit(X, Y, qid=Q)


RNG = np.random.default_rng(0)


FIVE_FEATURES = RNG.normal(size=(300, 5))


QID = np.repeat(np.arange(30), 10)


THREE_GRADES = np.clip(np.round(FIVE_FEATURES @ [1.0, -1, 0.5, 0, 0] + 1), 0, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"l2": "abc"}, {"seed": "abc"}, {"seed": -5}, {"patience": "x"}, {"solver": 5}, {"scorer": 5},
        {"k": True}, {"threads": "x"}, {"solver": "sgd(rate=x)"}, {"solver": "sgd(batch=0)"},
        {"solver": "gd(rate=-1)"}, {"solver": "lbfgs(max_iter=x)"}, {"scorer": "trees(count=x)"},
        {"scorer": "trees(rate=inf)"}, {"scorer": "trees(options=3)"}, {"verbose": "maybe"},
        {"scorer": "trees(options={'num_leaves': -3})"},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_parameters_are_rejected(settings) -> None:
    with pytest.raises(FirstpageError) as caught:
        fp.ListNet(**settings).fit(FIVE_FEATURES, THREE_GRADES, qid=QID)
    assert "\n" not in str(caught.value)


DATA = fp.Synthetic(queries=30, docs=12, features=6, grades=3).dataset()


TRAIN, VALID = DATA[:20], DATA[20:]


@pytest.mark.parametrize(
    "unfitted",
    [
        fp.FocusedSVM(beta="x"),  # type: ignore[arg-type]
        fp.FocusedSVM(beta=None),  # type: ignore[arg-type]
        fp.FocusedSVM(beta=[0.5]),  # type: ignore[arg-type]
        fp.FocusedNet(beta="x"),  # type: ignore[arg-type]
        fp.TopMargin(delta=5),  # type: ignore[arg-type]
        fp.TopSlack(delta=None),  # type: ignore[arg-type]
        fp.TopSlack(delta="NDCG@99999999999"),
        fp.RankSVM(k=10**30),
        fp.RankSVM(seed=10**30),
        fp.RankSVM(C=float("nan")),
        fp.RankSVM(C=10**400),
        fp.AdaRank(halvings=10**9),
        fp.TopRank(depth=10**30),
        fp.TopRank(depth=20_000),
        fp.TopRank(warm_start=True),
    ],
    ids=str,
)
def test_errors_for_parameters_are_one_line(unfitted) -> None:
    with pytest.raises(FirstpageError) as error:
        unfitted.fit(TRAIN)
    assert "\n" not in str(error.value)
