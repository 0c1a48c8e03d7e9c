"""User models: ties, limits and bad parameters; values of cwl_eval are in test_peers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.measures.user_models import RANKS, tie_arrangements

TEXTS = ["INST", "INST(T=3)", "INSQ", "BPM@4", "BPM(T=2)", "SDCG@3", "NERR8@4", "NERR9@3",
         "NERR10(p=0.5)", "NERR11"]  # fmt: skip


def value(text: str, labels: Sequence[float], scores: Sequence[float]) -> float:
    return fp.evaluate(scores, labels, qid=[1] * len(labels), measures=text)[text]


@pytest.mark.parametrize("text", TEXTS)
def test_value_is_the_mean_over_the_orders_of_ties(text: str) -> None:
    labels = [0, 2, 1, 0, 2, 0]  # documents 1 to 3, and 4 and 5, are tied
    orders = [(0, *a, *b) for a in permutations([1, 2, 3]) for b in permutations([4, 5])]
    strict = [value(text, [labels[d] for d in order], [6, 5, 4, 3, 2, 1]) for order in orders]
    assert value(text, labels, [3, 2, 2, 2, 1, 1]) == pytest.approx(np.mean(strict))


def test_long_ties_are_exact_where_few_sequences_differ_and_sampled_otherwise() -> None:
    one_relevant = np.array([1.0] + [0.0] * 300)
    ties = np.full(301, 301)
    assert len(list(tie_arrangements(one_relevant, ties, 0))) == 301
    many = np.arange(301.0)
    samples = list(tie_arrangements(many, ties, 0))
    assert len(samples) == 1000
    np.testing.assert_array_equal(np.sort(samples[0]), many)


def test_lists_are_read_to_rank_1000() -> None:
    labels = [0.0] * RANKS + [1.0]
    scores = list(range(len(labels), 0, -1))
    assert value("INSQ(max=1)", labels, scores) == 0
    assert value("INSQ(max=1)", [1.0] * 5, [5, 4, 3, 2, 1]) < 1
    assert value("INSQ(max=1)", [1.0] * RANKS, scores[1:]) == pytest.approx(1)


def test_labels_are_scaled_between_min_and_max() -> None:
    scores = [3, 2, 1]
    assert value("SDCG(max=4, min=2)@3", [3, 1, 4], scores) == pytest.approx(
        (0.5 + 0.5) / (1 + 1 / np.log2(3) + 0.5)
    )
    run, qrels = {"q": {"x": 2, "a": 1}}, {"q": {"a": 1}}
    with pytest.warns(fp.FirstpageWarning, match="unjudged"):
        assert fp.evaluate(run, qrels, measures="BPM")["BPM"] == 0.5
    assert value("INST", [0, 0, 0], scores) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INST(T=0)", "T of INST must be a positive number"),
        ("INST(max=1, min=1)", "max of INST must be above min"),
        ("NERR8", "NERR8 needs a cut-off, such as NERR8@10"),
        ("NERR10(p=1)", "must lie between 0 and 1"),
        ("INST@10", "INST takes no cut-off"),
        ("SDCG", "SDCG needs a cut-off"),
    ],
)
def test_bad_parameters_are_refused(text: str, message: str) -> None:
    with pytest.raises(fp.MeasureError, match=message):
        fp.measure(text)
