"""Stumps: sums of steps, against a loop over the stumps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.core.errors import DataError
from firstpage.learning.scorers import stumps
from firstpage.learning.scorers.stumps import StumpsScoring

RNG = np.random.default_rng(0)
FEATURE = RNG.integers(0, 5, 40)
THRESHOLD = RNG.choice([-1.0, -0.25, 0.0, 0.5, 2.0], 40)
STEP = RNG.integers(-8, 9, 40) / 4  # whose sums are exact
SCORING = StumpsScoring.from_stumps(6, FEATURE, THRESHOLD, STEP)
X = RNG.choice([-2.0, -1.0, -0.3, 0.0, 0.5, 0.6, 3.0], (70, 6))


def sum_of_steps(x: np.ndarray) -> float:
    return sum(s for f, t, s in zip(FEATURE, THRESHOLD, STEP, strict=True) if x[f] > t)


def test_scores_are_sums_of_steps(monkeypatch) -> None:
    expected = [sum_of_steps(x) for x in X]
    assert SCORING.predict(X).tolist() == expected
    assert SCORING.predict(csr_array(X)).tolist() == expected
    monkeypatch.setattr(stumps, "CHUNK_ROWS", 16)  # sparse rows are scored in chunks
    assert SCORING.predict(csr_array(X)).tolist() == expected


def test_a_float32_feature_is_on_the_same_side_as_in_float64() -> None:
    scoring = StumpsScoring.from_stumps(1, [0], [0.1], [1.0])
    near = np.array([[np.float32(0.1)], [np.nextafter(np.float32(0.1), np.float32(0))]])
    assert scoring.predict(near.astype(np.float32)).tolist() == [1.0, 0.0]
    assert scoring.predict(near.astype(np.float64)).tolist() == [1.0, 0.0]


def test_stumps_are_merged_by_feature_and_threshold() -> None:
    model = StumpsScoring.from_stumps(
        3, [2, 0, 2, 0, 1], [0.5, 1.0, 0.25, 1.0, 3.0], [1, 2, -4, 0.5, 0]
    )
    assert model.params.tolist() == [[0, 1.0, 2.5], [2, 0.25, -4], [2, 0.5, 1]]
    rows = np.array([[1.0, 9, 0.25], [1.5, 9, 0.3], [0, 0, 0.6]])
    assert model.predict(rows).tolist() == [0, 2.5 - 4, -3]
    assert model.explain().values.tolist() == [2.5, 0, 4]
    empty = StumpsScoring.from_stumps(3, [], [], [])
    assert empty.predict(rows).tolist() == [0, 0, 0]
    assert empty.explain().values.tolist() == [0, 0, 0]
    assert empty.forest("model").scores(rows).tolist() == [0, 0, 0]


def test_explanations_have_the_step_function_of_each_feature() -> None:
    steps = SCORING.explain().steps
    for feature, (thresholds, levels) in steps.items():
        assert len(levels) == len(thresholds) + 1
        alone = np.full((1, 6), -9.0)
        for x, level in zip([*thresholds, np.inf], levels, strict=True):
            alone[0, feature] = x  # not above the threshold
            assert SCORING.predict(alone).tolist() == [level]


def test_the_trees_of_the_forest_are_balanced() -> None:
    forest = SCORING.forest("model")
    assert forest.scores(X).tolist() == SCORING.predict(X).tolist()
    for tree in forest.trees:
        assert 2 ** tree.depth() <= 2 * (tree.feature < 0).sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": [0, 5]}, "is not the number of a feature"),
        ({"feature": [0, -1]}, "is not the number of a feature"),
        ({"feature": [0, 1.0]}, "is not the number of a feature"),
        ({"n_features": "3"}, "is not the number of a feature"),
        ({"step": [1.0]}, "do not have one feature, threshold and step each"),
        ({"threshold": [1.0, float("nan")]}, "not finite"),
        ({"feature": [1, 0]}, "not sorted"),
        ({"feature": [1, 1], "threshold": [1.0, 1.0]}, "not sorted"),
    ],
)
def test_invalid_stumps_are_refused(change: dict, message: str) -> None:
    good = {"n_features": 3, "feature": [0, 1], "threshold": [1.0, 2.0], "step": [1.0, -1.0]}
    assert StumpsScoring.from_dict(good).to_dict() == {"kind": "stumps", **good}
    with pytest.raises(DataError, match=message):
        StumpsScoring.from_dict({**good, **change})
