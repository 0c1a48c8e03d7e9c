"""Measures of order in O(n log n), against the sums over all pairs that define them."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import firstpage as fp


def pairs_weighted_kendall(scores: np.ndarray, labels: np.ndarray, cutoff: int) -> float:
    ideal = -np.sort(-labels)
    total = 0.0
    for doc, label in enumerate(labels):
        ranks = np.flatnonzero(ideal == label)
        weight = np.sum(1 / np.log2(ranks[ranks < cutoff] + 2)) / len(ranks)
        worse = labels < label
        above = np.sum(worse & (scores > scores[doc])) + np.sum(worse & (scores == scores[doc])) / 2
        total += (2.0**label - 1) * weight * above if label > 0 else 0.0
    return total


def pairs_ppref(scores: np.ndarray, labels: np.ndarray, cutoff: int, weighted: bool) -> float:
    """Return the expectation over orders of ties, by the ranks that tied documents share."""
    correct = decided = 0.0
    order = np.argsort(-scores, kind="stable")
    s, y = scores[order], labels[order]
    weight = 1 / np.log2(np.arange(len(s)) + 2) if weighted else np.ones(len(s))
    weight[cutoff:] = 0.0
    for a in range(len(s)):
        for b in range(a + 1, len(s)):
            if y[a] == y[b]:
                continue
            tie = np.flatnonzero(s == s[a])
            if s[a] == s[b]:
                below = len(tie) - 1 - np.arange(len(tie))
                pair = np.sum(weight[tie] * below) * 2 / (len(tie) * (len(tie) - 1))
                decided += pair
                correct += pair / 2
            else:
                decided += weight[tie].mean()
                correct += weight[tie].mean() * (y[a] > y[b])
    return correct / decided if decided else 0.0


CASES = [(n, levels, ties) for n in (1, 2, 9, 40) for levels in (1, 2, 5, 50) for ties in (1, 4, 0)]


@pytest.mark.parametrize(("n", "levels", "ties"), CASES)
@pytest.mark.parametrize("cutoff", [1, 5, 100])
def test_wkt_and_ppref_are_sums_over_pairs(n: int, levels: int, ties: int, cutoff: int) -> None:
    rng = np.random.default_rng([n, levels, ties])
    labels = rng.integers(0, levels, n).astype(float)
    labels[labels > 9] /= 7  # labels that are no integers
    scores = rng.integers(0, max(n // ties, 1), n).astype(float) if ties else rng.normal(size=n)
    values = fp.evaluate(
        scores,
        labels,
        qid=[1] * n,
        measures=[f"WKT@{cutoff}", f"ppref@{cutoff}", f"nwppref@{cutoff}"],
    ).values[:, 0]
    assert values[0] == pytest.approx(pairs_weighted_kendall(scores, labels, cutoff), rel=1e-12)
    assert values[1] == pytest.approx(pairs_ppref(scores, labels, cutoff, False), rel=1e-12)
    assert values[2] == pytest.approx(pairs_ppref(scores, labels, cutoff, True), rel=1e-12)


def rbo_of_order(labels: np.ndarray, p: float) -> float:
    """Return the overlap of a ranking without ties, truth ties in its favor."""
    ideal = -np.sort(-labels[labels >= 1])
    overlap = best = 0.0
    for d in range(1, len(labels) + 1):
        size = min(d, len(ideal))
        limit = ideal[size - 1]
        room = size - np.sum(ideal > limit)
        head = labels[:d]
        shared = np.sum(head > limit) + min(np.sum(head == limit), room)
        overlap += p ** (d - 1) * shared / d
        best += p ** (d - 1) * size / d
    return overlap / best


@pytest.mark.parametrize("p", [0.5, 0.9, 0.99])
def test_rbo_sums_the_overlap_of_every_depth(p: float) -> None:
    rng = np.random.default_rng(1)
    for levels in (2, 4, 100):
        labels = np.append(rng.integers(0, levels, 60), 1).astype(float)
        value = fp.evaluate(
            -np.arange(61.0), labels, qid=[1] * 61, measures=f"RBO(p={p}, truncated=true)"
        )
        assert value.means[f"RBO(p={p}, truncated=true)"] == pytest.approx(
            rbo_of_order(labels, p), rel=1e-12
        )


@pytest.mark.parametrize("sizes", [(3, 3, 2, 2), (1, 4, 1, 3), (5, 1, 2)])
def test_rbo_of_ties_is_the_mean_over_orders(sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    n = sum(sizes)
    labels = rng.integers(0, 3, n).astype(float)
    labels[0] = 2
    scores = np.repeat(-np.arange(len(sizes)), sizes).astype(float)
    text = "RBO(truncated=true)"
    exact = fp.evaluate(scores, labels, qid=[1] * n, measures=text)[text]
    groups = [permutations(group) for group in np.split(labels, np.cumsum(sizes)[:-1])]
    values = [rbo_of_order(np.concatenate(order), 0.9) for order in product(*groups)]
    assert exact == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*unjudged:firstpage.core.errors.FirstpageWarning")
@pytest.mark.parametrize("text", ["RBO", "RBO(p=0.99)", "RBO(p=0.999)", "compatibility", "RBO@20"])
def test_unjudged_documents_below_the_list_do_not_change_the_overlap(text: str) -> None:
    qrels = {"q": {"a": 2, "b": 1, "c": 1, "d": 0}}
    run = {"q": {"x": 9.0, "b": 8.0, "a": 7.0}}
    longer = {"q": {**run["q"], **{f"u{i}": -float(i) for i in range(500)}}}
    values = [fp.evaluate(r, qrels, measures=text).values[0, 0] for r in (run, longer)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    cut = [fp.evaluate(r, qrels, measures="Compat(p=0.9)").values[0, 0] for r in (run, longer)]
    assert cut[1] > 1.2 * cut[0]  # as in ir_measures


@pytest.mark.parametrize("p", [0.9905, 0.999, 0.9999999])
def test_depths_beyond_the_lists_are_summed_in_closed_form(p: float) -> None:
    """A query of three documents takes no longer if almost all weight is below the list."""
    qrels = {"q": {"a": 2, "b": 1, "c": 1, "x": 0}}
    run = {"q": {"x": 9.0, "b": 8.0, "a": 7.0}}
    value = fp.evaluate(run, qrels, measures=f"RBO(p={p})").values[0, 0]
    depths = np.arange(1, min(int(60 / (1 - p)), 3_000_000))
    weights = p ** (depths - 1.0) / depths
    shared = np.where(depths < 2, 0, np.where(depths < 3, 1, 2))  # x, b, a against a, b, c
    expected = (weights @ shared) / (weights @ np.minimum(depths, 3))
    assert value == pytest.approx(expected, rel=1e-9 if p < 0.9999 else 0.01)
