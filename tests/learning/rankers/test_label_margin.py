"""The factor y_u - y_v of the pairs, as printed for FocusedSVM and FocusedBoost."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from tests.learning.losses import reference as plain

ALL = fp.Synthetic(queries=25, docs=12, features=4, grades=4, seed=3).dataset()
GRADED = ALL[[q for q in range(25) if np.ptp(ALL.y[ALL.offsets[q] : ALL.offsets[q + 1]]) > 0]]
BINARY = fp.Synthetic(queries=25, docs=12, features=4, grades=2, seed=3).dataset()
RANKERS = [
    fp.RankSVM(label_margin=True),
    fp.RankSVM(k=5, average=True, label_margin=True),
    fp.FocusedSVM(k=5, beta=0.0, label_margin=True),
]


def _mean_loss(ranker, data: fp.Dataset, scores: np.ndarray, **options) -> float:
    """The mean loss per query by a plain reference."""
    values = [
        plain.pairwise(
            scores[a:b],
            data.y[a:b],
            np.ones(b - a),
            lambda t: max(0.0, 1 - t),
            k=ranker.k,
            label_margin=True,
            **options,
        )
        for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]
    return float(np.mean(values))


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_hinges_reach_the_optimum_of_the_printed_objective(ranker) -> None:
    focused = isinstance(ranker, fp.FocusedSVM)
    options = {"which": "cross" if focused else "all", "average": focused or ranker.average}
    ranker.fit(GRADED)

    def objective(weights: np.ndarray) -> float:
        loss = _mean_loss(ranker, GRADED, np.asarray(GRADED.X) @ weights, **options)
        return float(weights @ weights / 2 + ranker.C * loss)

    optimum = objective(ranker.coef_)
    assert ranker.objective_ * ranker.C == pytest.approx(optimum, rel=1e-6)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.1, 1.0):
        moved = ranker.coef_ + scale * rng.normal(size=4)
        assert objective(moved) >= optimum - ranker.gap_ * ranker.C
    without = type(ranker)(**{**ranker.get_params(), "label_margin": False}).fit(GRADED)
    assert without.coef_.tolist() != ranker.coef_.tolist()


@pytest.mark.parametrize("name", ["RankSVM", "RankBoost(rounds=20)"])
def test_with_two_grades_the_factor_is_1(name: str) -> None:
    with_factor = fp.ranker(name, label_margin=True).fit(BINARY)
    without = fp.ranker(name).fit(BINARY)
    assert with_factor.predict(BINARY) == pytest.approx(without.predict(BINARY), rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("data", [GRADED, GRADED.with_labels(GRADED.truth.top_k(5))], ids=str)
@pytest.mark.parametrize("k", [None, 5])
def test_rankboost_decreases_the_printed_loss(data: fp.Dataset, k: int | None) -> None:
    def loss(rounds: int) -> float:
        ranker = fp.RankBoost(k=k, rounds=rounds, label_margin=True).fit(data)
        largest = k or float(np.ptp(data.y))
        scores = ranker.predict(data) / largest
        values = [
            plain.pairwise(
                scores[a:b],
                data.y[a:b],
                np.ones(b - a),
                lambda t: np.exp(-t),
                k=k,
                average=True,
                label_margin=True,
            )
            for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
        ]
        assert ranker.objective_ == pytest.approx(np.mean(values), rel=1e-9)
        return float(np.mean(values))

    losses = [loss(rounds) for rounds in (1, 5, 20)]
    assert 1 > losses[0] > losses[1] > losses[2]


def test_focusedboost_takes_the_factor() -> None:
    fitted = [
        fp.FocusedBoost(k=5, beta=0.3, rounds=10, label_margin=margin).fit(GRADED)
        for margin in (False, True)
    ]
    assert fitted[0].predict(GRADED).tolist() != fitted[1].predict(GRADED).tolist()


def test_the_factor_is_read_from_text_and_stored(tmp_path) -> None:
    ranker = fp.ranker("FocusedSVM(k=3, label_margin=true)").fit(GRADED)
    ranker.save(tmp_path / "m.json")
    again = fp.load(tmp_path / "m.json")
    assert again.label_margin
    assert again.predict(GRADED).tolist() == ranker.predict(GRADED).tolist()


@pytest.mark.parametrize("name", ["RankNet", "ListMLE", "AdaRank", "FocusedNet"])
def test_rankers_without_the_factor_say_so(name: str) -> None:
    with pytest.raises(DataError, match="label_margin"):
        fp.ranker(f"{name}(label_margin=True)")
