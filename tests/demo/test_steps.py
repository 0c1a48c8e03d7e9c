"""Single steps: people who are programs, folds without leaks, votes, held-out preferences."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import firstpage as fp
from firstpage.demo.labeling import sorting_takes
from firstpage.demo.measuring import held_out
from firstpage.demo.project import (
    TASTE,
    TEAM,
    SimulatedAssessor,
    SimulatedEditor,
    team_of,
    worth_of,
)
from firstpage.demo.rankings import folds, learned, together
from firstpage.labeling.assessors import Text


@pytest.fixture(scope="module")
def data() -> fp.Dataset:
    return fp.Synthetic(queries=18, docs=8, features=4, grades=4).dataset()


@pytest.mark.slow
def test_assessors_err_as_much_as_said() -> None:
    worth = {("q", f"d{i}"): 2.0 * (i % 2) for i in range(4000)}
    person = SimulatedAssessor(1, "pairs", worth)
    errors = []
    for i in range(0, 4000, 2):
        said = person.judge("q", Text(f"d{i}", ""), Text(f"d{i + 1}", ""))
        assert (
            said.outcome
            == (-1 if person.seems["q", f"d{i}"] < person.seems["q", f"d{i + 1}"] else 1)
            or len(said.bad) == 2
        )
        errors += [person.seems["q", f"d{i}"], person.seems["q", f"d{i + 1}"] - 2]
    assert np.std(errors) == pytest.approx(0.5, abs=0.02)
    assert np.mean(errors) == pytest.approx(0.0, abs=0.03)


def test_assessors_do_not_change_their_minds() -> None:
    worth = {("q", key): 1.0 for key in "abc"}
    one, two = (SimulatedAssessor(7, "pairs", worth) for _ in range(2))
    one.judge("q", Text("a", ""), Text("b", ""))
    two.judge("q", Text("c", ""), Text("a", ""))  # another order of questions
    two.judge("q", Text("b", ""), Text("a", ""))
    assert one.seems["q", "a"] == two.seems["q", "a"]
    other = SimulatedAssessor(8, "pairs", worth)
    other.judge("q", Text("a", ""), Text("b", ""))
    assert other.seems["q", "a"] != one.seems["q", "a"]


def test_answers_take_as_long_as_published() -> None:
    person = SimulatedAssessor(1, "pairs", {})
    assert np.mean([person.seconds() for _ in range(20000)]) == pytest.approx(5.51, rel=0.02)


def test_editors_have_a_taste() -> None:
    grades = {("q", "good"): [3, 0, 0, 0, 0], ("q", "poor"): [0, 0, 0, 0, 1]}
    editor = SimulatedEditor(1, "lists", grades)
    said = [editor.judge("q", Text("good", ""), Text("poor", "")).outcome for _ in range(50)]
    assert set(said) == {1}
    same = [editor.judge("q", Text("good", ""), Text("good", "")).outcome for _ in range(200)]
    assert set(same) == {-1, 0, 1}
    assert worth_of([3, 0, 0, 0, 0]) == 1.0


def test_work_is_dealt_evenly() -> None:
    dealt = team_of(map(str, range(48)), 6)
    assert sum(len(people) == 2 for people in dealt.values()) == 8
    assert all(len(set(people)) == len(people) for people in dealt.values())
    load = Counter(login for people in dealt.values() for login in people)
    assert set(load) == set(TEAM)
    assert max(load.values()) - min(load.values()) <= 4


def test_sorting_takes_as_many_as_there_are_orders() -> None:
    assert sorting_takes(1) == 0
    assert sorting_takes(5) == pytest.approx(np.log2(120))


@pytest.mark.slow
def test_no_question_teaches_its_own_ranking(data: fp.Dataset) -> None:
    from dataclasses import replace

    _, part = next(folds(len(data)))
    rows = np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in part])
    y = data.y.copy()
    y[rows] = 3 - y[rows]
    one, two = learned(data), learned(replace(data, y=y))
    for name in one:
        assert np.array_equal(one[name][rows], two[name][rows]), name
        assert not np.array_equal(one[name], two[name]), name
    votes, other = together(one, data), together(one, replace(data, y=y))
    assert np.array_equal(votes.scores[rows], other.scores[rows])


def test_every_question_is_ranked_once() -> None:
    parts = list(folds(48))
    assert sorted(np.concatenate([test for _, test in parts]).tolist()) == list(range(48))
    assert all(not set(train) & set(test) for train, test in parts)


def test_votes_follow_the_weights(data: fp.Dataset) -> None:
    good, bad = data.y + 0.0, np.random.default_rng(0).standard_normal(data.n_docs)
    found = together({"good": good, "bad": bad}, data)
    assert found.weights["good"] > found.weights["bad"]
    means = [fp.evaluate(s, data, measures="NDCG@5")["NDCG@5"] for s in (found.scores, bad)]
    assert means[0] > means[1]


@pytest.mark.slow
def test_a_taste_is_found_on_questions_held_out() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 4, (2, 400, 5))
    apart = np.array([worth_of(a) - worth_of(b) for a, b in zip(left, right, strict=True)])
    given = fp.Preferences.from_grades(
        left, right, np.sign(np.round(apart, 9)), query=np.arange(400) // 4
    )
    ours, usual, p = held_out(given, 5)
    assert ours > 0.93 > usual
    assert p < 0.05
    assert TASTE.n_positions == 5
