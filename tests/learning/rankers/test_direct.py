"""The rankers that maximize a measure directly."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import FirstpageError
from firstpage.learning.losses.base import IncompatibleComponents
from firstpage.learning.solvers.descent import Adam
from firstpage.learning.solvers.registry import solver_for

RECIPE = fp.Synthetic(queries=40, docs="uniform(2, 20)", features=4, grades=3, seed=3)
DATA = RECIPE.dataset()
TRAIN, TEST = DATA[:30], DATA[30:]
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([2, 1, 0, 0, 1, 0, 2, 0, 0, 1, 0, 1])
Q = np.repeat([1, 2, 3], 4)


def small(cls, **parameters):
    """Return a ranker with few iterations."""
    if cls is fp.CoordinateAscent:
        return cls(restarts=0, max_iter=3, **parameters)
    return cls(solver="adam(rate=0.05, max_iter=10, whiten=true)", **parameters)


def test_losses_of_random_samples_are_not_fitted_by_lbfgs() -> None:
    with pytest.raises(IncompatibleComponents, match="LBFGS needs a deterministic loss, and Expec"):
        fp.PLRank(solver="lbfgs").fit(TRAIN)
    from firstpage.learning.scorers.linear import BoundLinear

    chosen = solver_for("auto", fp.PLRank().compose().loss, BoundLinear(X), 7)
    assert isinstance(chosen, Adam)
    assert chosen.whiten
    assert chosen.seed == 7


def test_whitened_descents_do_not_depend_on_the_scale_of_the_features() -> None:
    factor = np.array([1e-3, 1.0, 50.0, 1e4])
    plain = fp.ListNet(solver="adam(rate=0.05, max_iter=5, whiten=true)", l2=0.0)
    expected = clone(plain).fit(TRAIN)
    scaled = clone(plain).fit(TRAIN.with_features(np.asarray(TRAIN.X, float) * factor))
    assert scaled.coef_ * factor == pytest.approx(expected.coef_, rel=1e-2, abs=1e-3)
    assert scaled.objective_ == pytest.approx(expected.objective_, rel=1e-4)


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
@pytest.mark.parametrize("measure", ["NDCG@5", "P@3", "RBP", "ERR@4", "RR", "AP", "Recall@2"])
def test_any_of_the_measures_is_maximized(cls, measure: str) -> None:
    ranker = small(cls, measure=measure).fit(TRAIN)
    random = fp.evaluate(np.random.default_rng(0).random(TRAIN.n_docs), TRAIN, measures=measure)
    assert ranker.score(TRAIN) > random[measure] + 0.05


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
def test_a_measure_file_is_maximized(cls, tmp_path) -> None:
    path = tmp_path / "measure.json"
    utility = fp.dcglearn.Utility.from_gains(gains=[0, 1, 5], discounts=[1.0, 0.9, 0.1])
    utility.save(path)
    by_file = small(cls, measure=f"NDCG({path})@2").fit(TRAIN)
    assert by_file.score(TRAIN) > 0.6
    by_file.save(tmp_path / "m.json")
    assert fp.load(tmp_path / "m.json").predict(TEST).tolist() == by_file.predict(TEST).tolist()


def test_fits_are_seeded_and_do_not_depend_on_threads() -> None:
    ranker = small(fp.PLRank, samples=3)
    expected = clone(ranker).fit(TRAIN).coef_.tolist()
    assert clone(ranker).set_params(threads=2).fit(TRAIN).coef_.tolist() == expected
    assert clone(ranker).set_params(seed=1).fit(TRAIN).coef_.tolist() != expected
    full = fp.PLRank(samples=3, solver="gd(rate=1.0, max_iter=5)")
    wide = fp.Synthetic(queries=300, docs=30, features=80, seed=0).dataset()  # several blocks
    one, two = (clone(full).set_params(threads=t).fit(wide).coef_.tolist() for t in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: fp.PLRank(measure="Tau").fit(X, Y, qid=Q), "PLRank cannot maximize Tau; choose"),
        (lambda: fp.PLRank(samples=0).fit(X, Y, qid=Q), "samples of PLRank must be an integer"),
        (lambda: fp.PLRank(k=0).fit(X, Y, qid=Q), "k of PLRank must be an integer"),
        (lambda: fp.PLRank(measure="kNDCG@3").fit(X, Y, qid=Q), "a strict order of the top"),
        (lambda: fp.PLRank(measure="ERR(max=1)").fit(X, Y, qid=Q), "a label 2, above max=1"),
        (lambda: fp.PLRank().fit(X, Y, qid=Q, sample_weight=np.arange(12) / 2), "be integers"),
        (lambda: fp.LambdaRank(measure="bpref").fit(X, Y, qid=Q), "LambdaRank cannot maximize bp"),
        (lambda: fp.LambdaRank(variant="x").fit(X, Y, qid=Q), "variant must be 'lambdarank'"),  # type: ignore[arg-type]
        (lambda: fp.LambdaRank(measure="AP", variant="loss2").fit(X, Y, qid=Q), "gains and disc"),
        (lambda: fp.LambdaRank(mu=-1.0).fit(X, Y, qid=Q), "mu of LambdaRank must be a number"),
        (lambda: fp.LambdaRank(solver="lbfgs").fit(X, Y, qid=Q), "LBFGS needs a smooth loss"),
        (lambda: fp.CoordinateAscent(restarts=-1).fit(X, Y, qid=Q), "restarts of CoordinateAscent"),
        (lambda: fp.CoordinateAscent(tol=-1).fit(X, Y, qid=Q), "tol of CoordinateAscent must be"),
        (lambda: fp.CoordinateAscent(k=2, measure="Tau").fit(X, Y, qid=Q), "leave k out"),
        (lambda: fp.CoordinateAscent(measure="NDCG@x").fit(X, Y, qid=Q), "cut-off must be an int"),
        pytest.param(
            lambda: fp.PLRank(device="moon").fit(X, Y, qid=Q),
            "device 'moon' cannot be used",
            marks=pytest.mark.torch,
        ),
    ],
)
def test_invalid_arguments_cause_one_line_errors(fit, message: str, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FirstpageError, match=message) as caught:
        fit()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
@pytest.mark.parametrize(
    ("y", "qid", "measure"),
    [
        (np.ones(12), Q, None),
        (np.zeros(12), Q, "AP"),
        (Y, np.arange(12), None),  # one document per query
        (-Y, Q, "P@2"),  # no document is relevant
    ],
)
def test_data_without_preferences_are_reported(cls, y, qid, measure: str | None) -> None:
    with pytest.warns(fp.FirstpageWarning, match="all scores are equal: no query of the training"):
        ranker = small(cls, measure=measure).fit(X, y, qid=qid)
    assert ranker.coef_.tolist() == [0, 0, 0]


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
def test_the_default_measure_is_ndcg_at_k(cls) -> None:
    assert cls(k=5).fit(X, Y, qid=Q).training_["measure"] == "NDCG@5"
    assert cls(k=None).fit(X, Y, qid=Q).training_["measure"] == "NDCG@10"
    named = small(cls, k=3, measure="NDCG@3").fit(TRAIN)
    assert small(cls, k=3).fit(TRAIN).coef_.tolist() == named.coef_.tolist()
    tuned = fp.tune(small(cls, k=3), TRAIN, TEST)
    assert tuned.measure == "NDCG@3"


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
def test_huge_features_give_a_model_or_one_line(cls, recwarn) -> None:
    try:
        assert np.isfinite(small(cls).fit(X * 1e300, Y, qid=Q).coef_).all()
    except fp.DataError as error:
        assert "scale the features" in str(error)
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


@pytest.mark.filterwarnings("ignore:all scores are equal")
@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
def test_degenerate_data_give_a_finite_model(cls) -> None:
    """Equal labels, one query, one document, k beyond every list, constant and huge features."""
    for x, y, qid in [
        (X, np.ones(12), Q),
        (X, np.zeros(12), Q),
        (X, Y, np.zeros(len(X))),
        (X, Y, np.arange(12)),
        (X[:1], Y[:1], [1]),
        (np.ones((12, 3)), Y, Q),
        (X * 1e8, Y, Q),
        (X * 1e-8, Y, Q),
        (X * 1e-300, Y, Q),
        (X, Y * 1e6, Q),
    ]:
        ranker = small(cls, k=100).fit(x, y, qid=qid)
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.predict(x)).all()


@pytest.mark.parametrize("cls", [fp.PLRank, fp.LambdaRank, fp.CoordinateAscent])
def test_weights_of_queries_and_copies_of_documents(cls) -> None:
    weights = np.arange(30) % 3
    ranker = small(cls).fit(TRAIN, sample_weight=weights)
    by_document = small(cls).fit(TRAIN, sample_weight=np.repeat(weights, TRAIN.lengths))
    assert ranker.coef_.tolist() == by_document.coef_.tolist()
    copies = np.arange(TRAIN.n_docs) % 3
    rows = np.repeat(np.arange(TRAIN.n_docs), copies)
    copied = small(cls).fit(TRAIN.X[rows], TRAIN.y[rows], qid=TRAIN.qid[rows])
    assert small(cls).fit(TRAIN, sample_weight=copies).coef_ == pytest.approx(copied.coef_)


def test_an_objective_of_trees_draws_other_rankings_for_each_tree() -> None:
    objective = fp.objective("PLRank", k=2, samples=2)
    groups = [4, 4, 4]
    first, second = (objective(Y, np.zeros(12), None, groups) for _ in range(2))
    assert first[0].tolist() != second[0].tolist()
    assert (first[1] >= np.abs(first[0])).all()


def test_lambdarank_checkpoints_and_interrupts(tmp_path) -> None:
    ranker = fp.LambdaRank(solver="gd(rate=5.0, max_iter=12)")
    expected = clone(ranker).fit(TRAIN).coef_.tolist()

    def stop(step) -> None:
        if step.iteration == 5:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.json"
    with pytest.warns(fp.FirstpageWarning, match="interrupted"):
        clone(ranker).fit(TRAIN, progress=stop, checkpoint=path)
    with pytest.warns(fp.FirstpageWarning, match="continuing from"):
        assert clone(ranker).fit(TRAIN, checkpoint=path).coef_.tolist() == expected


def test_trees_learn_from_tied_scores() -> None:
    """The first tree has the weights of all orders of the documents."""
    objective = fp.objective("LambdaRank", measure="NDCG@2")
    gradient, _ = objective([2, 0, 0], np.zeros(3), None, [3])
    discount = np.array([1.0, 1 / np.log2(3), 0.0])
    apart = np.abs(discount[:, None] - discount[None, :])
    mean = apart.sum() / 6
    assert gradient == pytest.approx([-mean, mean / 2, mean / 2])


def test_coordinate_ascent_improves_the_measure_with_every_restart() -> None:
    for measure in ("NDCG@5", "Tau", "bpref"):
        one = fp.CoordinateAscent(measure=measure, restarts=0).fit(TRAIN)
        many = fp.CoordinateAscent(measure=measure, restarts=2).fit(TRAIN)
        assert many.score(TRAIN) >= one.score(TRAIN)
        values = fp.evaluate(many.predict(TRAIN), TRAIN, measures=measure).per_query(measure)
        informative = np.maximum.reduceat(TRAIN.y, TRAIN.offsets[:-1]) > np.minimum.reduceat(
            TRAIN.y, TRAIN.offsets[:-1]
        )
        assert -many.objective_ == pytest.approx(values[informative].mean(), abs=1e-9)
        losses = [step.loss for step in one.history_]
        assert losses == sorted(losses, reverse=True)
        assert float(np.abs(many.coef_).sum()) == pytest.approx(1.0)


def test_coordinate_ascent_resumes_from_a_checkpoint(tmp_path) -> None:
    ranker = fp.CoordinateAscent(restarts=2, tol=1e-6)
    expected = clone(ranker).fit(TRAIN)

    def stop(step) -> None:
        if step.iteration == 3:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.json"
    with pytest.warns(fp.FirstpageWarning, match="interrupted"):
        partial = clone(ranker).fit(TRAIN, progress=stop, checkpoint=path)
    assert partial.interrupted_
    assert partial.objective_ == min(step.loss for step in expected.history_[:3])
    with pytest.warns(fp.FirstpageWarning, match="continuing from"):
        resumed = clone(ranker).fit(TRAIN, checkpoint=path)
    assert resumed.coef_.tolist() == expected.coef_.tolist()
    assert resumed.n_iter_ == expected.n_iter_


def test_coordinate_ascent_on_sparse_features_and_with_validation() -> None:
    from scipy.sparse import csr_array

    dense = fp.CoordinateAscent(restarts=0).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    sparse = fp.CoordinateAscent(restarts=0).fit(csr_array(TRAIN.X), TRAIN.y, qid=TRAIN.qid)
    assert sparse.coef_ == pytest.approx(dense.coef_)
    chosen = fp.CoordinateAscent(restarts=1).fit(TRAIN, valid=TEST)
    assert chosen.score(TEST) == pytest.approx(max(step.measure for step in chosen.history_))
