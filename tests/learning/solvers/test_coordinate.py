"""Coordinate ascent: exact line searches over the steps where a measure changes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.measures.base import Convention, rank_lists
from firstpage.learning.solvers import coordinate
from firstpage.learning.solvers.coordinate import MeasuredLines
from tests.learning.losses.test_plrank import MEASURES, learned_measures, sample

DEFAULT = Convention()


def mean_measure(measure, scores, truth, weights) -> float:
    lists = rank_lists(scores, truth, DEFAULT)
    return float(measure.values(lists, DEFAULT) @ weights / weights.sum())


def crossings(scores, direction, truth) -> np.ndarray:
    """Return all steps at which two documents of a query have equal scores."""
    steps = []
    for lo, hi in zip(truth.offsets[:-1], truth.offsets[1:], strict=True):
        for u, v in combinations(range(lo, hi), 2):
            if direction[u] != direction[v]:
                steps.append((scores[v] - scores[u]) / (direction[u] - direction[v]))
    return np.unique(steps)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("measure", [*MEASURES, *learned_measures()], ids=str)
def test_line_searches_find_the_best_interval(measure, ties: bool) -> None:
    parsed = fp.measure(measure)
    truth, scores = sample(1)
    rng = np.random.default_rng(2)
    direction = rng.normal(size=len(scores))
    if ties:  # also documents that are tied along the whole line
        scores, direction = np.round(scores), np.round(direction)
    weights = np.arange(1.0, len(truth) + 1)
    lines = MeasuredLines(direction[:, None], truth, parsed, None, weights)
    assert lines.value(scores) == pytest.approx(mean_measure(parsed, scores, truth, weights))
    steps = crossings(scores, direction, truth)
    middles = (steps[1:] + steps[:-1]) / 2
    tried = np.concatenate([[steps[0] - 1], middles, [steps[-1] + 1]])
    best = max(mean_measure(parsed, scores + t * direction, truth, weights) for t in tried)
    step = lines.best_step(scores, direction)
    assert mean_measure(parsed, scores + step * direction, truth, weights) == pytest.approx(best)


@pytest.mark.slow
def test_results_depend_on_neither_threads_nor_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = fp.Synthetic(queries=12, docs="uniform(2, 9)", features=3, seed=4).dataset()
    fitted = []
    for threads, pairs in ((1, 1 << 16), (1, 30), (3, 30), (20, 1)):
        monkeypatch.setattr(coordinate, "BLOCK_PAIRS", pairs)
        ranker = fp.CoordinateAscent(measure="NDCG@3", restarts=1, threads=threads).fit(data)
        fitted.append([*ranker.coef_.tolist(), ranker.objective_])
    assert all(each == fitted[0] for each in fitted)


@pytest.mark.parametrize("measure", ["Tau", "nERR@5", "GMAP", "RBP(gain=exp)"])
def test_other_measures_are_searched_on_a_grid(measure: str) -> None:
    truth, scores = sample(1)
    direction = np.random.default_rng(2).normal(size=len(scores))
    parsed, weights = fp.measure(measure), np.ones(len(truth))
    lines = MeasuredLines(direction[:, None], truth, parsed, None, weights)
    assert lines.value(scores) == pytest.approx(mean_measure(parsed, scores, truth, weights))
    step = lines.best_step(scores, direction)
    assert lines.value(scores + step * direction) >= lines.value(scores)
    with pytest.raises(fp.DataError, match="has no top-k form; leave k out"):
        MeasuredLines(direction[:, None], truth, parsed, 3, weights)
