"""Estimates of propensities: against plain references, and where the truth is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import minimize

import firstpage as fp

CURVE = np.array(fp.clicks.SimulatedUsers.named("pbm").examination)


def simulated(
    queries: int = 60, n_sessions: int = 3000, seed: int = 0, **options: Any
) -> fp.Sessions:
    """Return sessions of random grades, ranked by noisy grades."""
    rng = np.random.default_rng(seed)
    grades = rng.choice(5, (queries, 14), p=[0.4, 0.2, 0.2, 0.1, 0.1])
    grades[0, 0] = 4
    names = [[f"d{q}-{i}" for i in range(14)] for q in range(queries)]
    noisy = grades + rng.normal(size=grades.shape)
    run = {f"q{q}": dict(zip(names[q], noisy[q].tolist(), strict=True)) for q in range(queries)}
    qrels = {f"q{q}": dict(zip(names[q], grades[q].tolist(), strict=True)) for q in range(queries)}
    return fp.clicks.simulate(run, qrels, n_sessions=n_sessions, seed=seed, **options)


def cells(sessions: fp.Sessions, ranks: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return impressions and clicks by pair and rank."""
    shown = np.zeros((len(sessions.pairs.query), ranks))
    clicked = shown.copy()
    np.add.at(shown, (sessions.pairs.pair, sessions.rank - 1), 1)
    np.add.at(clicked, (sessions.pairs.pair, sessions.rank - 1), sessions.clicked)
    return shown, clicked


def test_all_pairs_maximizes_the_likelihood_given_the_clicks_of_each_document() -> None:
    sessions = simulated(queries=20, n_sessions=800, noise=2.0)
    shown, clicked = cells(sessions)
    total = clicked.sum(axis=1)

    def loss(logs: np.ndarray) -> float:
        weight = shown * np.exp([0.0, *logs])
        share = weight / weight.sum(axis=1, keepdims=True)
        return -float(
            (clicked[total > 0] * np.log(share[total > 0] + (clicked == 0)[total > 0])).sum()
        )

    expected = np.exp(minimize(loss, np.zeros(9)).x)
    result = fp.clicks.estimate_propensities(sessions)
    assert result.propensity[0] == 1.0
    np.testing.assert_allclose(result.propensity[1:], expected, rtol=2e-3)


@pytest.mark.parametrize("method", ["adjacent", "pivot"])
def test_steps_are_ratios_of_weighted_click_through_rates(method: Any) -> None:
    sessions = simulated(noise=2.0)
    shown, clicked = cells(sessions)
    values = [1.0]
    for rank in range(1, 4):
        base = 0 if method == "pivot" else rank - 1
        ratio = [0.0, 0.0]
        for n, m, c, d in zip(
            shown[:, rank], shown[:, base], clicked[:, rank], clicked[:, base], strict=True
        ):
            if n and m:
                ratio[0] += n * m / (n + m) * c / n
                ratio[1] += n * m / (n + m) * d / m
        values.append(values[base] * ratio[0] / ratio[1])
    result = fp.clicks.estimate_propensities(sessions, method)
    np.testing.assert_allclose(result.propensity[:4], values)


@pytest.mark.parametrize(("method", "tolerance"), [("regression-em", 0.06), ("dual", 0.1)])
def test_features_identify_propensities_where_no_document_moves(
    method: Any, tolerance: float
) -> None:
    """The ranking varies by what has nothing to do with relevance, and is then always the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    relevance = X @ [1.0, 0.5, -0.5]
    grades = np.clip(np.round(relevance / 1.5 + 1), 0, 4)
    qid, ids = np.repeat(np.arange(400), 10), [f"d{n}" for n in range(4000)]
    data = fp.Dataset.from_arrays(X, np.zeros(4000), qid, docid=ids)
    run = fp.Run.from_arrays(qid, ids, relevance + 2 * rng.normal(size=4000))
    sessions = fp.clicks.simulate(run, fp.Qrels.from_arrays(qid, ids, grades), n_sessions=8000)
    assert np.isnan(fp.clicks.estimate_propensities(sessions).propensity[1])
    progress: list[int] = []
    found = fp.clicks.estimate_propensities(
        sessions, method, features=data, progress=lambda done, total: progress.append(done)
    )
    np.testing.assert_allclose(found.propensity, CURVE / CURVE[0], atol=tolerance)
    assert progress == list(range(20))
    assert (np.array(found.error[1:]) > 0).all()
    assert any("a function of the features alone" in line for line in found.verdict)
    unknown = fp.Dataset.from_arrays(X[:1], [0], ["x"], docid=["y"])
    with pytest.raises(fp.FirstpageError, match="none of the documents of"):
        fp.clicks.estimate_propensities(sessions, method, features=unknown)


def test_random_weights_clicks_by_logged_propensities() -> None:
    arrays = {
        "query": ["a", "a", "b", "b", "c", "c"], "document": ["x", "y", "x", "z", "y", "x"],
        "rank": [1, 2, 1, 2, 1, 2], "page": [1, 1, 2, 2, 3, 3], "clicked": [1, 0, 1, 1, 0, 1],
        "propensity": [0.5, 0.25, 0.2, 0.5, 0.5, 0.5],
    }  # fmt: skip
    result = fp.clicks.estimate_propensities(fp.Sessions.from_arrays(**arrays), "random")
    assert result.propensity[1] == pytest.approx(((2 + 2) / (4 + 2 + 2)) / ((2 + 5) / (2 + 5 + 2)))
    assert "sessions, since there are few queries" in result.verdict[1]
    without = fp.Sessions.from_arrays(**{k: v for k, v in arrays.items() if k != "propensity"})
    with pytest.raises(fp.DataError, match="no logged propensities; name their column"):
        fp.clicks.estimate_propensities(without, "random")


def test_a_model_gives_its_mean_examination() -> None:
    sessions, fits = simulated(noise=1.0), []
    model = fp.clicks.UBM()
    result = fp.clicks.estimate_propensities(
        sessions, "model", model=model, progress=lambda *numbers: fits.append(numbers)
    )
    examined = model.fit(sessions).examination_probabilities(sessions)
    mean = [examined[sessions.rank == rank].mean() for rank in range(1, 11)]
    np.testing.assert_allclose(result.propensity, np.divide(mean, mean[0]), rtol=1e-6)
    assert result.method == "UBM"
    assert 0 < result.error[1] < 0.2
    assert fits[0] == (0, 20)
    wrong: tuple[dict[str, Any], ...] = ({"method": "model"}, {"model": "UBM"})
    for options in wrong:
        with pytest.raises(fp.DataError, match="a model is for method='model'"):
            fp.clicks.estimate_propensities(sessions, **options)


@pytest.mark.parametrize(
    ("method", "noise"),
    [("all-pairs", 1.0), ("adjacent", 1.0), ("pivot", 3.0), ("random", np.inf)],
)
def test_intervals_cover_the_truth(method: Any, noise: float) -> None:
    """Of 24 x 9 intervals of 95 %, 84 to 100 % cover: each repetition has errors in common."""
    truth, hits, misses = CURVE / CURVE[0], [], 0
    for seed in range(24):
        result = fp.clicks.estimate_propensities(simulated(seed=seed, noise=noise), method)
        hits.append((np.array(result.low) <= truth) & (truth <= np.array(result.high)))
        misses += result.high[3] < 0.9  # the intervals do not cover another curve
    covered = np.array(hits)[:, 1:].mean()
    assert covered > 0.84
    assert misses > 20


def test_clicks_without_propensity_to_swap_are_refused_or_named() -> None:
    sessions = simulated(noise=0.0)
    result = fp.clicks.estimate_propensities(sessions)
    assert result.verdict[0].startswith("Ranks fall into 10 components: 1; 2; 3")
    assert result.status == ("reference", *["not identified"] * 9)
    assert np.isnan(result.propensity[1:]).all()
    assert result.at([1, 1]).tolist() == [1.0, 1.0]
    with pytest.raises(
        fp.DataError, match=r"the propensity of rank 2 is not identified; .* ranks 1 "
    ):
        result.at([1, 2])


def test_the_reference_is_the_first_connected_rank_or_the_one_of_the_caller() -> None:
    arrays = {
        "query": ["q"] * 6, "document": ["t", "a", "b", "t", "b", "a"], "rank": [1, 2, 3] * 2,
        "page": [1, 1, 1, 2, 2, 2], "clicked": [1, 1, 0, 1, 1, 1],
    }  # fmt: skip
    sessions = fp.Sessions.from_arrays(**arrays)
    result = fp.clicks.estimate_propensities(sessions)
    assert result.reference == 2
    assert np.isnan(result.propensity[0])
    assert result.propensity[2] == pytest.approx(0.5)
    assert np.isnan(result.low[2])  # one query gives no interval
    three = fp.clicks.estimate_propensities(sessions, reference=3)
    assert three.propensity[1] == pytest.approx(2.0)
    with pytest.raises(fp.DataError, match=r"reference=7 has no impressions; .* are 1-3"):
        fp.clicks.estimate_propensities(sessions, reference=7)


def test_what_cannot_be_estimated_is_one_line() -> None:
    sessions, unknown = simulated(n_sessions=50), cast(Any, "EM")
    nothing = fp.Sessions.from_arrays(query=["q"], document=["d"], rank=[1], clicked=[0])
    for call, message in (
        (lambda: fp.clicks.estimate_propensities(sessions, unknown), "one of all-pairs, adjacent"),
        (lambda: fp.clicks.estimate_propensities(sessions, level=1.0), "between 0 and 1"),
        (lambda: fp.clicks.estimate_propensities(sessions, max_rank=1), "two ranks or more"),
        (lambda: fp.clicks.estimate_propensities(nothing), "has no clicks"),
    ):
        with pytest.raises(fp.DataError, match=message):
            call()


def test_a_saved_file_is_read_again(tmp_path: Path) -> None:
    result = fp.clicks.estimate_propensities(simulated(noise=0.2), max_rank=4)
    assert "impressions at lower ranks are left out" in result.verdict[-1]
    path = tmp_path / "p.json"
    result.save(path)
    again = fp.clicks.Propensities.load(path)
    assert str(again) == str(result)
    assert again.at([2]) == result.at([2])
    assert result.plot().svg.count("<circle") == 4
    content = json.loads(path.read_text())
    content["low"] = content["low"][:2]
    path.write_text(json.dumps(content))
    with pytest.raises(fp.DataError, match=r"p.json: damaged: its columns differ in length"):
        fp.clicks.Propensities.load(path)
    with pytest.raises(fp.DataError, match="not a swap graph of Firstpage"):
        fp.clicks.SwapGraph.load(path)


def test_several_layouts_are_named_first() -> None:
    sessions = fp.Sessions.from_arrays(
        query=["q", "q"], document=["a", "a"], rank=[1, 2], clicked=[1, 1], page=[1, 2],
        layout=["list", "grid"],
    )  # fmt: skip
    assert (
        fp.clicks.estimate_propensities(sessions).verdict[0].startswith("The log mixes 2 layouts")
    )
