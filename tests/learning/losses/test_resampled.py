"""Equal labels in another random order in every epoch."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.data.truth import Truth
from firstpage.learning.losses.listwise import PlackettLuce
from firstpage.learning.losses.pairwise import PairwiseHinge
from firstpage.learning.losses.resampled import ResampledTies

DATA = fp.Synthetic(queries=30, docs="uniform(3, 12)", features=5, grades=3, seed=4).dataset()


@pytest.mark.parametrize(
    ("loss", "k"),
    [(PlackettLuce(k=3), 3), (PlackettLuce(), None), (PairwiseHinge(k=2), 2)],
    ids=str,
)
def test_every_pass_has_the_value_of_one_order(loss, k: int | None) -> None:
    resampled, truth = ResampledTies(loss, k, seed=7), DATA.truth
    scores = np.random.default_rng(0).normal(size=DATA.n_docs)
    values, grad = np.empty(len(truth)), np.empty(len(scores))
    run = resampled.target(truth).bind_slice(0, len(truth), scores, values, grad)
    seen = set()
    for epoch in (1, 2, 3):
        run()
        order = resampled.order(truth, epoch)
        for q in range(len(truth)):  # strict orders that agree with the grades
            rows = slice(truth.offsets[q], truth.offsets[q + 1])
            best = np.argsort(-order.labels[rows], kind="stable")[: k or 99]
            assert (np.diff(truth.labels[rows][best]) <= 0).all()
        expected, gradient = loss.value_grad(scores, order)
        assert values.tolist() == expected.tolist()
        assert grad.tolist() == gradient.tolist()
        seen.add(tuple(order.labels))
    assert len(seen) == 3


def test_the_mean_over_passes_is_the_mean_over_orders() -> None:
    truth = Truth.from_labels([1, 0, 0, 0])
    scores = np.array([0.3, 1.0, -1.0, 0.0])
    resampled = ResampledTies(PlackettLuce(k=2), 2)
    target = resampled.target(truth)
    values, grad = np.empty(1), np.empty(4)
    run, total = target.bind_slice(0, 1, scores, values, grad), 0.0
    for _ in range(3000):
        run()
        total += values[0]
    orders = ([2, 1, 0, 0], [2, 0, 1, 0], [2, 0, 0, 1])
    strict = [PlackettLuce(k=2).value_grad(scores, Truth.from_labels(y))[0][0] for y in orders]
    assert total / 3000 == pytest.approx(np.mean(strict), abs=0.05)


def test_slices_draw_the_orders_of_the_full_data() -> None:
    resampled, truth = ResampledTies(PlackettLuce(k=3), 3), DATA.truth
    scores = np.random.default_rng(1).normal(size=DATA.n_docs)
    values, grad = resampled.value_grad(scores, truth)
    a, b = int(truth.offsets[10]), int(truth.offsets[20])
    part, gradient = np.empty(10), np.empty(b - a)
    resampled.target(truth).bind_slice(10, 20, scores[a:b].copy(), part, gradient)()
    assert part.tolist() == values[10:20].tolist()
    assert gradient.tolist() == grad[a:b].tolist()


@pytest.mark.parametrize("name", ["ListMLE(k=3)", "ListMLE", "RankSVM(k=3)", "FocusedNet(k=3)"])
def test_fits_are_seeded_and_equal_for_any_number_of_threads(name: str) -> None:
    def fit(**params) -> np.ndarray:
        solver = {"solver": "sgd(rate=0.01, max_iter=5, batch=4)", "ties": "resample"}
        return fp.ranker(name, **{**solver, **params}).fit(DATA).coef_

    first = fit(seed=3, threads=1)
    assert first.tolist() == fit(seed=3, threads=2).tolist()
    assert (
        first.tolist() != fit(seed=4, solver="sgd(rate=0.01, max_iter=5, batch=4, seed=3)").tolist()
    )
    assert first.tolist() != fit(seed=3, ties="random").tolist()
    assert np.isfinite(first).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ListMLE(k=3)", "needs a stochastic solver; set solver='sgd' or solver='adam'"),
        ("ListMLE(k=3, solver=lbfgs)", "needs a stochastic solver"),
        ("RankSVM(k=3, solver=cutting plane)", "needs a stochastic solver"),
        ("RankNet(solver=sgd)", "orders equal labels of the top k; give RankNet k"),
        ("ListMLE(k=3, scorer=trees)", "needs linear scores or a network"),
        ("ListMLE(k=3, solver=sgd, device=cuda)", "needs linear scores or a network"),
        ("RankBoost(k=3)", "and RankBoost has none; use ties='random'"),
        ("LambdaMART", "and LambdaMART has none; use ties='random'"),
        ("TopRank(k=3)", "and TopRank has none; use ties='random'"),
    ],
)
def test_rankers_that_cannot_resample_say_so(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.ranker(text, ties="resample").fit(DATA)


def test_an_interrupted_fit_resumes_with_the_orders_of_the_next_epoch(tmp_path) -> None:
    ranker = fp.ListMLE(k=3, ties="resample", solver="sgd(rate=0.01, max_iter=6)")
    expected = clone(ranker).fit(DATA).coef_.tolist()

    def stop(step: fp.extend.Step) -> None:
        if step.iteration == 3:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.json"
    with pytest.warns(fp.FirstpageWarning, match="interrupted"):
        clone(ranker).fit(DATA, progress=stop, checkpoint=path)
    with pytest.warns(fp.FirstpageWarning, match="continuing from"):
        assert clone(ranker).fit(DATA, checkpoint=path).coef_.tolist() == expected
