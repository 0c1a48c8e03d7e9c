"""Single steps: simulated people, folds without leaks, votes, held-out preferences."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import firstpage as fp
from firstpage.demo.labeling import sorting_comparisons
from firstpage.demo.measuring import held_out_accuracy
from firstpage.demo.project import (
    EDITOR_UTILITY,
    TEAM,
    SimulatedAssessor,
    SimulatedEditor,
    assign_team,
    page_utility,
)
from firstpage.demo.rankings import combine_rankings, cross_validated_scores, folds
from firstpage.labeling.assessors import DocumentText


@pytest.fixture(scope="module")
def data() -> fp.Dataset:
    return fp.Synthetic(queries=18, docs=8, features=4, grades=4).dataset()


@pytest.mark.slow
def test_assessor_errors_have_the_stated_standard_deviation() -> None:
    relevance = {("q", f"d{i}"): 2.0 * (i % 2) for i in range(4000)}
    person = SimulatedAssessor(1, "pairs", relevance)
    errors = []
    for i in range(0, 4000, 2):
        answer = person.judge("q", DocumentText(f"d{i}", ""), DocumentText(f"d{i + 1}", ""))
        assert (
            answer.outcome
            == (-1 if person.perceived["q", f"d{i}"] < person.perceived["q", f"d{i + 1}"] else 1)
            or len(answer.bad) == 2
        )
        errors += [person.perceived["q", f"d{i}"], person.perceived["q", f"d{i + 1}"] - 2]
    assert np.std(errors) == pytest.approx(0.5, abs=0.02)
    assert np.mean(errors) == pytest.approx(0.0, abs=0.03)


def test_assessors_perceive_a_document_always_alike() -> None:
    relevance = {("q", key): 1.0 for key in "abc"}
    first, second = (SimulatedAssessor(7, "pairs", relevance) for _ in range(2))
    first.judge("q", DocumentText("a", ""), DocumentText("b", ""))
    second.judge("q", DocumentText("c", ""), DocumentText("a", ""))  # another order of questions
    second.judge("q", DocumentText("b", ""), DocumentText("a", ""))
    assert first.perceived["q", "a"] == second.perceived["q", "a"]
    other = SimulatedAssessor(8, "pairs", relevance)
    other.judge("q", DocumentText("a", ""), DocumentText("b", ""))
    assert other.perceived["q", "a"] != first.perceived["q", "a"]


def test_mean_time_per_answer_is_the_published_one() -> None:
    person = SimulatedAssessor(1, "pairs", {})
    assert np.mean([person.seconds() for _ in range(20000)]) == pytest.approx(5.51, rel=0.02)


def test_editors_prefer_the_page_of_greater_utility() -> None:
    grades = {("q", "good"): [3, 0, 0, 0, 0], ("q", "poor"): [0, 0, 0, 0, 1]}
    editor = SimulatedEditor(1, "lists", grades)
    outcomes = [
        editor.judge("q", DocumentText("good", ""), DocumentText("poor", "")).outcome
        for _ in range(50)
    ]
    assert set(outcomes) == {1}
    same = [
        editor.judge("q", DocumentText("good", ""), DocumentText("good", "")).outcome
        for _ in range(200)
    ]
    assert set(same) == {-1, 0, 1}
    assert page_utility([3, 0, 0, 0, 0]) == 1.0


def test_tasks_are_assigned_evenly() -> None:
    assigned = assign_team(map(str, range(48)), 6)
    assert sum(len(people) == 2 for people in assigned.values()) == 8
    assert all(len(set(people)) == len(people) for people in assigned.values())
    load = Counter(login for people in assigned.values() for login in people)
    assert set(load) == set(TEAM)
    assert max(load.values()) - min(load.values()) <= 4


def test_sorting_comparisons_are_the_log_of_the_number_of_orders() -> None:
    assert sorting_comparisons(1) == 0
    assert sorting_comparisons(5) == pytest.approx(np.log2(120))


@pytest.mark.slow
def test_no_question_is_ranked_by_a_model_trained_on_it(data: fp.Dataset) -> None:
    from dataclasses import replace

    _, test = next(folds(len(data)))
    rows = np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in test])
    y = data.y.copy()
    y[rows] = 3 - y[rows]
    changed = replace(data, y=y)
    scores, other_scores = cross_validated_scores(data), cross_validated_scores(changed)
    for name in scores:
        assert np.array_equal(scores[name][rows], other_scores[name][rows]), name
        assert not np.array_equal(scores[name], other_scores[name]), name
    combined, other = combine_rankings(scores, data), combine_rankings(scores, changed)
    assert np.array_equal(combined.scores[rows], other.scores[rows])


def test_every_question_is_ranked_once() -> None:
    splits = list(folds(48))
    assert sorted(np.concatenate([test for _, test in splits]).tolist()) == list(range(48))
    assert all(not set(train) & set(test) for train, test in splits)


def test_combined_ranking_gives_better_rankers_more_weight(data: fp.Dataset) -> None:
    good, bad = data.y + 0.0, np.random.default_rng(0).standard_normal(data.n_docs)
    combined = combine_rankings({"good": good, "bad": bad}, data)
    assert combined.weights["good"] > combined.weights["bad"]
    means = [fp.evaluate(s, data, measures="NDCG@5")["NDCG@5"] for s in (combined.scores, bad)]
    assert means[0] > means[1]


@pytest.mark.slow
def test_learned_measure_is_more_accurate_on_held_out_questions() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, (2, 400, 5))
    difference = np.array(
        [page_utility(a) - page_utility(b) for a, b in zip(left, right, strict=True)]
    )
    pairs = fp.dcglearn.Preferences.from_grades(
        left, right, np.sign(np.round(difference, 9)), query=np.arange(400) // 4
    )
    accuracy, standard, p = held_out_accuracy(pairs, 5)
    assert accuracy > 0.93 > standard
    assert p < 0.05
    assert EDITOR_UTILITY.n_positions == 5
