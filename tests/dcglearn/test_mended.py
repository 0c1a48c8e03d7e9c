"""What an attack found, kept so that it stays mended."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.files import write_rows
from firstpage.data.preferences.utility import normalized
from firstpage.dcglearn.intervals import intervals
from firstpage.dcglearn.simulation import world
from firstpage.errors import DataError, FirstpageWarning, MeasureError
from tests.dcglearn.test_learn import varied


def quiet(learner: fp.DCGLearn, *given, **more) -> fp.DCGLearn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return learner.fit(*given, **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_first_place_that_never_differs_is_worth_nothing(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 4, (200, 4)), rng.integers(0, 4, (200, 4))
    right[:, 0] = left[:, 0]
    said = np.where((left - right) @ [3, 2, 1, 0.5] + rng.logistic(size=200) > 0, 1, -1)
    learner = quiet(fp.DCGLearn(K=4, C=1.0), left, right, said)
    assert learner.discounts_[0] == 0
    assert learner.discounts_.max() == pytest.approx(1.0)
    assert np.isfinite(intervals(learner, 20).weights).all()
    assert (intervals(learner, 20).discounts <= 2).all()


def test_the_best_grade_has_no_interval():
    """Its gain is 1 by normalization, also where draws cannot distinguish grades."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 2, (12, 2)), rng.integers(0, 2, (12, 2))
    said = rng.choice([-1, 1], 12)
    learner = quiet(fp.DCGLearn(K=2, C=0.001), left, right, said)
    found = intervals(learner, 50).gains
    assert (found[[0, -1], 0] == found[[0, -1], 1]).all()
    assert (found[[0, -1], 0] == learner.gains_[[0, -1]]).all()


def test_rounding_is_no_first_discount():
    _, discounts = normalized(np.array([0.0, 1.0]), np.array([1e-16, 2.0, 1.0]))
    assert discounts.tolist() == [0.0, 1.0, 0.5]


def test_both_forms_are_held_out():
    """Gains that depend on the place: the weights know it, gains times discounts cannot."""
    rng = np.random.default_rng(0)
    table = np.array([[0, 3, 3, 3], [0, 0, 0, 3], [0, 2, 2, 2], [0, 0, 2, 2]], float)

    def judged(count: int) -> fp.Preferences:
        left, right = rng.integers(0, 4, (2, count, 4))
        apart = (table[range(4), left] - table[range(4), right]).sum(axis=1)
        found = fp.Preferences.of(left, right, np.sign(apart))
        return found[found.outcome != 0]

    learner = fp.DCGLearn(K=4).fit(judged(600))
    path, test = learner.path_, judged(5000)
    assert path.accuracy("weights") > path.accuracy("gains") + 0.03
    for form in ("weights", "gains"):
        told = learner.agreement(test, form).accuracy
        assert path.accuracy(form) == pytest.approx(told, abs=0.04)


def test_a_fit_that_fails_leaves_the_old_one():
    learner = fp.DCGLearn(10, C=1.0).fit(varied(100))
    before = learner.about()
    with pytest.raises(DataError, match="all pairs are ties"):
        learner.fit([[1, 0]], [[0, 1]], [0])
    assert learner.about() == before
    learner.set_params(K=2, C_tie=5.0, unjudged="refuse", strong=9.0)
    assert learner.about() == before
    assert learner.along([1.0])[1.0].weights == pytest.approx(learner.weights_)


def test_what_is_not_fitted_says_so():
    with pytest.raises(AttributeError, match="no weights_ before it is fitted; call fit first"):
        _ = fp.DCGLearn().weights_
    with pytest.raises(AttributeError, match="has no 'nonsense'"):
        _ = fp.DCGLearn().nonsense
    learner = pickle.loads(pickle.dumps(fp.DCGLearn(10, C=1.0).fit(varied(30))))
    assert learner.weights_.shape == (10, 5)


def test_validation_pairs_of_ties_are_no_validation():
    given = varied(60)
    ties = fp.Preferences.of([[1, 0]], [[0, 1]], [0], grades=range(5))
    with pytest.warns(FirstpageWarning, match="C = 1: the validation pairs hold no preference"):
        learner = fp.DCGLearn(10).fit(given, valid=ties)
    assert learner.C_ == 1.0


@pytest.mark.parametrize(
    "grades", [(0, 2, 1, 3, 4), (0, 1, 1, 2, 3, 4), (4, 3, 2, 1, 0), ("a", "b")]
)
def test_grades_that_are_not_upward(grades):
    with pytest.raises(DataError, match="grades must be"):
        fp.DCGLearn(10, C=1.0, grades=grades).fit(varied(20))


def test_one_query_has_nothing_to_resample():
    given = varied(40)
    alone = fp.Preferences.of(
        given.left, given.right, given.outcome, query=["q"] * 40, grades=range(5)
    )
    learner = fp.DCGLearn(10, C=1.0).fit(alone)
    with pytest.raises(DataError, match="all pairs are of one query"):
        intervals(learner)
    assert "queries" in str(fp.advice(learner))


def test_weights_that_no_number_can_hold():
    given = varied(40)
    with pytest.raises(DataError, match="numbers from 0 to 1e\\+100"):
        fp.Preferences.of(given.left, given.right, weight=np.full(40, 1e308))
    rng = np.random.default_rng(0)
    wild = fp.Preferences.of(
        given.left,
        given.right,
        given.outcome,
        weight=10.0 ** rng.uniform(-12, 12, 40),
        grades=range(5),
    )
    try:
        learner = quiet(fp.DCGLearn(10, C=1e8), wild)
    except DataError as error:
        assert "too large or too unequal" in str(error)
    else:
        assert np.isfinite(learner.weights_).all()


def test_an_optimum_that_is_not_certain_is_told():
    given = varied(200, noise=3.0)
    rng = np.random.default_rng(1)
    wild = fp.Preferences.of(
        given.left,
        given.right,
        given.outcome,
        weight=10.0 ** rng.uniform(-8, 8, 200),
        grades=range(5),
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", FirstpageWarning)
        learner = fp.DCGLearn(10, C=1.0).fit(wild)
    told = any("certified gap" in str(w.message) for w in said)
    assert told == (learner.gap_ > 1e-8 * learner.objective_)


def test_small_unsigned_arrays_and_lists_of_other_widths():
    left = np.array([[0, 1], [1, 2]], np.uint8)
    found = fp.Preferences.of(left, left[::-1], grades=range(-1, 3))
    assert found.left.tolist() == [[1, 2], [2, 3]]
    wide = fp.Preferences.of(left, np.array([[0, 1, 2], [2, 1, 0]]))
    assert wide.left.tolist() == [[0, 1, -1], [1, 2, -1]]


def test_names_survive_a_sum():
    named = fp.Preferences.of([[1, 0]], [[0, 1]], query=["q"], segment=["s"])
    plain = fp.Preferences.of([[1, 0]], [[0, 1]])
    both = named + plain
    assert list(both.query) == ["q", "pair 2"]
    assert list(both.segment) == ["s", ""]


def test_pairs_without_a_segment_are_of_none():
    given = varied(60)
    some = fp.Preferences.of(
        given.left, given.right, given.outcome, segment=["a"] * 30 + [""] * 30, grades=range(5)
    )
    learner = fp.DCGLearn(10, C=1.0).fit(some)
    assert list(learner.segments_) == ["a"]


def test_a_list_without_a_judged_document_comes_back(tmp_path):
    path = tmp_path / "p.jsonl"
    given = fp.Preferences.of([[None, None], [1, 0]], [[1, 0], [0, 1]], grades=[0, 1])
    fp.write_preferences(given, path)
    assert np.array_equal(fp.read_preferences(path).left[0], [-1, -1])


def test_rows_go_into_files_that_are_read_as_rows(tmp_path):
    with pytest.raises(DataError, match="pairs are written as"):
        write_rows([{"left": [1]}], tmp_path / "p.csv")
    with pytest.raises(DataError, match="is a folder"):
        fp.Utility.standard("exp", range(3), 2).save(tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"grades": np.array(3)}, {"grades": np.array(["a", "b"])}, {"grades": np.array([np.nan, 1])},
    ],
)  # fmt: skip
def test_arrays_with_odd_grades(tmp_path, arrays):
    path = tmp_path / "p.npz"
    np.savez(
        path, left=np.array([[1, 0]]), right=np.array([[0, 1]]), outcome=np.array([1]), **arrays
    )
    with pytest.raises(DataError, match="grades must be"):
        fp.read_preferences(path)


def test_one_array_is_not_three(tmp_path):
    np.save(tmp_path / "p.npy", np.arange(3))
    (tmp_path / "p.npy").rename(tmp_path / "p.npz")
    with pytest.raises(DataError, match="it is one array"):
        fp.read_preferences(tmp_path / "p.npz")


def test_a_weight_of_four_hundred_digits(tmp_path):
    row = '{"left": [1], "right": [0], "outcome": 1, "weight": 1' + "0" * 400 + "}"
    (tmp_path / "p.jsonl").write_text(row)
    with pytest.raises(DataError, match="a weight is a number from 0"):
        fp.read_preferences(tmp_path / "p.jsonl")
    with pytest.raises(DataError, match="a grade that is no number"):
        fp.Preferences.of([[10**400]], [[1]])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"K": True}, "K, the places"), ({"grid": 1.0}, "grid must be"), ({"seed": -1}, "seed must be"),
     ({"K": 3000}, "too many, at most")],
)  # fmt: skip
def test_parameters_of_the_wrong_kind(parameters, words):
    with pytest.raises(DataError, match=words):
        fp.DCGLearn(**{"K": 10, "C": 1.0, **parameters}).fit(varied(20))


def test_a_gain_that_nobody_can_use():
    wide = fp.Utility.of([0, 1], [1.0], grades=(0, 2000))
    with pytest.raises(DataError, match="say what the best has"):
        wide.label_gain()
    for top in (np.nan, np.inf, 0.0):
        with pytest.raises(DataError, match="above 0 and finite"):
            wide.label_gain(top)


def test_a_verdict_is_not_undecided_by_rounding():
    labels = np.array([[3, 3, 0, 2], [1, 2, 0, 2]])
    a, b = np.array([[3.0, 2, 1, 0]] * 2), np.array([[2.0, 1, 3, 0], [1, 2, 0, 3]])
    (found,) = fp.verdicts(
        {"A": a.ravel(), "B": b.ravel()}, labels.ravel().astype(float), "DCG@3",
        qid=np.repeat([0, 1], 4), vary="discounts",
    )  # fmt: skip
    assert found.anyhow.state == "flips"
    assert found.anyhow.witness.difference < 0


def test_chosen_pairs_are_written_as_they_stand(tmp_path, monkeypatch):
    from firstpage.data.preferences.files import chosen_rows

    monkeypatch.chdir(tmp_path)
    row = {"query": "q", "left": ["d1", "d2"], "right": "old", "outcome": 0, "note": "kept"}
    (tmp_path / "pool.jsonl").write_text(json.dumps(row) + "\n")
    assert chosen_rows("pool.jsonl", [0]) == [
        {"query": "q", "left": ["d1", "d2"], "right": "old", "note": "kept"}
    ]
    fp.write_preferences(world(1).pairs(3, np.random.default_rng(0)), "pool.npz")
    assert set(chosen_rows("pool.npz", [2])[0]) == {"left", "right"}


def test_ndcg_with_rising_discounts_is_that_of_evaluate(tmp_path) -> None:
    """The best order is not that by grade where a later place is worth more."""
    from firstpage.dcglearn.ranked import Ranked
    from firstpage.dcglearn.reading import wanted
    from firstpage.measures.conventions import convention

    rng = np.random.default_rng(0)
    made = fp.Synthetic(queries=20, docs="uniform(1, 12)", features=3, grades=4, seed=1)
    data = made.dataset()
    path = tmp_path / "rising.json"
    fp.Utility.of([0, 0.3, 0.5, 1.0], [0.4, 1.0, 0.6, 0.9, 0.2]).save(path)
    systems = {name: rng.random(data.n_docs) for name in "ab"}
    ranked = Ranked.of(systems, data, convention("default"))
    for text in (f"NDCG({path})@4", f"NDCG({path}, form=weights)", "NDCG@3", f"DCG({path})"):
        got = ranked.values(ranked.scale(wanted(text)))
        for row, scores in zip(got, systems.values(), strict=True):
            assert row == pytest.approx(fp.evaluate(scores, data, measures=text).values[0])
    with pytest.raises(MeasureError, match="ask for DCG, or let discounts fall"):
        fp.verdicts(systems, data, f"NDCG({path})@4", falling=False)
