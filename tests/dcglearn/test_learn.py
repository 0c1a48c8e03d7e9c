"""DCGLearn as its users meet it: what it learns, how sure it is, what it says of bad input."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility, normalize_gains, read_utility
from firstpage.dcglearn.intervals import Noise, intervals, position_test
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import contradicted, encode, fingerprints
from firstpage.dcglearn.simulation import regraded, reversed_pairs, world
from firstpage.dcglearn.validation import agreement, differences, folds
from firstpage.dcglearn.weights import factors, similarity
from firstpage.errors import DataError, FirstpageWarning
from tests.dcglearn.reference import delta, objective, random_preferences

TRUE = Utility.from_dcg("exp", range(5), 10)


def varied(n: int, seed: int = 0, truth: Utility = TRUE, noise: float = 0.0) -> Preferences:
    """Pairs of lists of different grades, judged by a known measure."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])[: len(truth.grades)]
    left, right = (
        rng.choice(len(shares), (n, truth.n_positions), p=shares / shares.sum()) for _ in range(2)
    )
    at = np.arange(truth.n_positions)
    apart = (truth.weights[at, left] - truth.weights[at, right]).sum(axis=1)
    seen = apart + noise * rng.logistic(size=n)
    return Preferences.from_grades(left, right, np.sign(seen), grades=truth.grades)


def test_the_binary_vector_of_the_paper():
    """Example 2: Perfect, Bad, Good with five grades, the best first."""
    given = Preferences.from_grades([[5, 1, 3]], [[1, 1, 1]], grades=range(1, 6))
    pairs = encode(given, 3, 5)
    ones = np.flatnonzero(delta(pairs)[0] == 1)
    best_first = [5 * (at // 5) + 5 - at % 5 for at in ones]
    assert best_first == [1, 13]  # and Bad at the second place, 10, is on both sides


def test_pairs_are_what_they_are_written_out():
    pairs = encode(random_preferences(200, ties=0.2, strong=0.3), 10, 5)
    rows = delta(pairs)
    assert np.array_equal(pairs.sparse().toarray(), rows)
    table = np.random.default_rng(0).normal(size=(10, 5))
    z = rows @ table.ravel()
    assert differences(pairs, table) == pytest.approx(z)
    told = agreement(pairs, table)
    strict = pairs.kind > 0
    right = (pairs.weight * (z > 0))[strict].sum() / pairs.weight[strict].sum()
    assert told.accuracy == pytest.approx(right)
    assert told.apart == pytest.approx(
        np.average(np.abs(z[~strict]), weights=pairs.weight[~strict])
    )


def test_the_better_ranking_is_left_and_equal_ones_are_left_out():
    given = Preferences.from_grades([[0, 1], [1, 1], [1, 0]], [[1, 0], [1, 1], [0, 1]], [-2, 1, 0])
    pairs = encode(given, 2, 2)
    assert pairs.left.tolist() == [[1, 0], [1, 0]]
    assert pairs.kind.tolist() == [2, 0]
    assert pairs.rows.tolist() == [0, 2]


def test_it_finds_gains_and_discounts():
    learner = DCGLearn(10, C=100.0).fit(varied(3000))
    assert learner.gains_ == pytest.approx(TRUE.gains, abs=0.04)
    assert learner.discounts_ == pytest.approx(TRUE.discounts, abs=0.12)
    assert learner.share_ > 0.995
    assert similarity(learner.weights_, TRUE.weights) > 0.995
    assert learner.score(varied(4000, seed=1)) > 0.975
    assert not learner.relative_


def test_orders_of_the_same_grades_give_discounts_less_the_last():
    """SPEC 7.3: what such pairs cannot tell, the smallest weights leave out."""
    learner = DCGLearn(10, 5, 100.0).fit(world(2).pairs(3000, np.random.default_rng(0)))
    c = 1 / np.log(np.arange(2, 12))
    assert learner.relative_
    assert learner.about()["discounts"] == "relative to the last place"
    assert learner.discounts_ == pytest.approx((c - c[-1]) / (c[0] - c[-1]), abs=0.05)
    limit = (c - c[-1]) @ c / np.linalg.norm(c - c[-1]) / np.linalg.norm(c)
    assert limit == pytest.approx(0.892, abs=0.001)
    found = similarity(learner.weights_, world(2).truth.weights)
    assert found == pytest.approx(limit, abs=0.03)


def test_the_objective_is_the_papers():
    given = random_preferences(300, ties=0.2)
    learner = DCGLearn(10, C=3.0, C_tie=0.7).fit(given)
    plain = objective(learner.pairs_, learner.optimum_.weights, [0.7, 3.0, 3.0], [1.0, 1.0, 1.0])
    assert learner.objective_ == pytest.approx(plain, rel=1e-12)
    assert learner.gap_ <= 1e-9 * learner.objective_


def test_ties_draw_rankings_together():
    """Fig. 20: the mean difference of tied pairs falls as their cost grows."""
    rng = np.random.default_rng(3)
    right = world(2)
    pool = [right.rankings(6000, rng) for _ in range(2)]
    apart = np.abs(right.worth(pool[0]) - right.worth(pool[1]))
    near = np.flatnonzero((apart < np.quantile(apart, 0.12)) & (pool[0] != pool[1]).any(axis=1))[
        :400
    ]
    ties = Preferences.from_grades(
        *(side[near] for side in pool), np.zeros(400), grades=right.truth.grades
    )
    given = right.pairs(150, rng) + ties
    found = [DCGLearn(10, 5, 1.0, c).fit(given).agreement().apart for c in (0.0, 0.1, 1.0)]
    assert found[0] > found[1] > found[2]


def test_decreasing_discounts_and_weights_from_zero():
    given = varied(300, noise=3.0)
    learner = DCGLearn(10, C=1.0, decreasing=True).fit(given)
    steps = np.diff(learner.weights_, axis=1)
    assert (np.diff(steps, axis=0) <= 1e-12).all()
    assert (np.diff(learner.discounts_) <= 1e-12).all()
    free = DCGLearn(10, C=1.0).fit(given)
    assert (np.diff(free.discounts_) > 0).any()
    zero = DCGLearn(10, C=1.0, nonnegative=True).fit(given)
    assert zero.optimum_.weights == pytest.approx(zero.optimum_.table)


def test_strong_preferences_ask_for_more():
    left, right = [[2], [1]], [[0], [0]]
    plain = DCGLearn(1, C=1e4).fit(left, right, [2, 1], grades=[0, 1, 2])
    wide = DCGLearn(1, C=1e4, strong=3.0).fit(left, right, [2, 1], grades=[0, 1, 2])
    assert plain.weights_[0] == pytest.approx([0, 1, 1], abs=1e-3)
    assert wide.weights_[0] == pytest.approx([0, 1.5, 3], abs=1e-3)


@pytest.mark.slow
def test_c_is_chosen_by_what_is_held_out():
    rng = np.random.default_rng(0)
    clean, noisy = world(1).pairs(400, rng), reversed_pairs(world(1).pairs(400, rng), 0.25, rng)
    sure, unsure = DCGLearn(10, 5).fit(clean), DCGLearn(10, 5).fit(noisy)
    assert sure.path_ is not None
    assert sure.path_.costs[int(np.argmax(sure.path_.means))] == sure.C_
    assert sure.C_ > unsure.C_
    assert unsure.path_.errors.shape == (8,)
    valid = world(1).pairs(500, rng)
    chosen = DCGLearn(10, 5).fit(noisy, valid=valid)
    accuracies = [DCGLearn(10, 5, c).fit(noisy).score(valid) for c in chosen.path_.costs]
    assert chosen.path_.costs[int(np.argmax(np.round(accuracies, 12)))] == chosen.C_


def test_the_regularization_path_is_a_fit_for_each_c():
    given = varied(200, noise=2.0)
    path = DCGLearn(10, C=1.0).fit(given).along([0.01, 1.0, 100.0])
    for c, utility in path.items():
        alone = DCGLearn(10, C=c).fit(given)
        assert utility.weights == pytest.approx(alone.weights_, abs=1e-8)
        assert utility.about["gap"] <= 1e-9 * utility.about["objective"]


def test_folds_keep_queries_together():
    groups = np.repeat(np.arange(30), 4)
    seen = []
    for train, held in folds(groups, 5, 0):
        assert not set(groups[train]) & set(groups[held])
        seen += held.tolist()
    assert sorted(seen) == list(range(120))


def test_noisy_pairs_and_grades_do_not_change_what_they_should_not():
    rng = np.random.default_rng(0)
    given = world(1).pairs(200, rng)
    turned = reversed_pairs(given, 0.25, rng)
    assert (turned.outcome != given.outcome).sum() == 50
    assert np.array_equal(turned.left, given.left)
    other = regraded(given, 0.2, rng)
    assert 0.1 < (other.left != given.left).mean() < 0.22
    assert np.array_equal(other.outcome, given.outcome)


@pytest.mark.slow
def test_intervals_hold_the_truth():
    learner = DCGLearn(10, C=10.0).fit(varied(1500, noise=2.0))
    found = intervals(learner, 100, seed=1)
    assert found.gains.shape == (5, 2)
    assert found.discounts.shape == (10, 2)
    assert found.weights.shape == (10, 5, 2)
    inside = (found.gains[1:4, 0] <= TRUE.gains[1:4]) & (TRUE.gains[1:4] <= found.gains[1:4, 1])
    assert inside.sum() >= 2
    assert (found.gains[:, 0] <= learner.gains_ + 0.02).all()
    assert (learner.gains_ - 0.02 <= found.gains[:, 1]).all()
    again = intervals(learner, 100, seed=1)
    assert np.array_equal(found.weights, again.weights)
    with pytest.raises(DataError, match="2 rounds or more"):
        intervals(learner, 1)


@pytest.mark.slow
def test_a_test_tells_whether_gains_depend_on_the_place():
    plain = DCGLearn(10, C=10.0).fit(varied(500, seed=2, noise=1.0))
    assert position_test(plain, 39).p > 0.05
    mixed = (
        np.array([np.arange(5) * 3.75 if k < 3 else np.exp2(np.arange(5)) - 1 for k in range(10)])
        / np.log2(np.arange(2, 12))[:, None]
    )
    found = factors(mixed)
    truth = Utility(tuple(range(5)), mixed, found.gains, found.discounts)
    bent = DCGLearn(10, C=10.0).fit(varied(800, seed=2, truth=truth, noise=1.0))
    assert position_test(bent, 39).p <= 0.05


def test_noise_errs_as_often_as_it_says():
    pairs = encode(varied(4000), 10, 5)
    worth = differences(pairs, TRUE.weights)
    lapsed = Noise(lapses=0.4).judge(pairs, worth, np.random.default_rng(0))
    assert (lapsed.left != pairs.left).any(axis=1).mean() == pytest.approx(0.2, abs=0.03)
    sure = Noise().judge(pairs, worth, np.random.default_rng(0))
    assert np.array_equal(sure.left, pairs.left)


def test_segments_are_drawn_to_all():
    flat = Utility.from_gains(TRUE.gains, np.ones(10))
    many, few = varied(900, seed=1), varied(60, seed=2, truth=flat)
    given = Preferences.from_grades(
        np.vstack([many.left, few.left]), np.vstack([many.right, few.right]),
        np.concatenate([many.outcome, few.outcome]), segment=["web"] * 900 + ["shop"] * 60,
    )  # fmt: skip
    drawn = DCGLearn(10, C=0.01).fit(given)
    alone = DCGLearn(10, C=0.01, pooling=0.0).fit(given)
    shop, own = (m.segments_["shop"].utility.discounts[-1] for m in (drawn, alone))
    assert drawn.segments_["shop"].pairs == 60
    assert drawn.discounts_[-1] < shop
    assert own > drawn.discounts_[-1]
    held = drawn.segments_["shop"]
    assert 0.5 < held.accuracy_pooled <= 1
    assert 0.5 < held.accuracy <= 1
    big = drawn.segments_["web"].utility
    assert similarity(big.weights, drawn.weights_) > 0.98
    assert set(drawn.utility_.segments) == {"web", "shop"}


def test_a_learned_measure_is_kept(tmp_path):
    learner = DCGLearn(10, C=1.0).fit(varied(200))
    learner.utility_.save(tmp_path / "m.json")
    again = read_utility(tmp_path / "m.json")
    assert np.array_equal(again.weights, learner.weights_)
    assert again.about["accuracy"] == learner.accuracy_
    pool = varied(50, seed=9)
    signs = np.sign(learner.decision_function(pool))
    assert (signs == pool.outcome).mean() == pytest.approx(learner.score(pool))


def test_parameters_as_scikit_learn_knows_them():
    first = DCGLearn(5, C=2.0)
    assert DCGLearn(**first.get_params()).get_params() == first.get_params()
    assert first.set_params(K=7).K == 7
    assert first.with_params(C="cv").C == "cv"
    with pytest.raises(DataError, match="no parameter 'x'"):
        first.set_params(x=1)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"K": 0}, "K, the places that count"),
        ({"K": 2.5}, "K, the places that count"),
        ({"L": 1}, "L, the number of grades"),
        ({"K": 1000, "L": 50}, "1000 places times 50 grades are too many"),
        ({"C": 0}, "C must be a finite number above 0"),
        ({"C": np.nan}, "C must be a finite number above 0"),
        ({"C": "x"}, "C must be a finite number above 0"),
        ({"C_tie": -1}, "C_tie must be"),
        ({"strong": 0}, "strong, the margin"),
        ({"pooling": 2}, "pooling must be from 0 to 1"),
        ({"grid": []}, "grid must be values of C"),
        ({"folds": 1}, "folds must be"),
        ({"L": 3}, "more than L = 3"),
        ({"grades": [0, 1]}, "the grades are 0, 1"),
        ({"unjudged": "x"}, "unjudged must be one of"),
    ],
)
def test_parameters_that_cannot_be(parameters, words):
    with pytest.raises(DataError) as error:
        DCGLearn(**{"K": 10, "C": 1.0, **parameters}).fit(varied(20))
    assert words in str(error.value)


def test_all_ties_no_difference_and_nothing():
    same = [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="all pairs are ties"):
        DCGLearn(2).fit(same, same[::-1], [0, 0])
    with pytest.raises(DataError, match="no pair has both a weight and a difference"):
        DCGLearn(2).fit(same, same, [1, 1])
    with pytest.raises(DataError, match="no pair to learn from"):
        DCGLearn(10).fit(varied(5)[:0])


def test_one_pair_only():
    with pytest.warns(FirstpageWarning) as told:
        learner = DCGLearn(3).fit([[1, 0, 0]], [[0, 0, 1]])
    said = " ".join(str(w.message) for w in told)
    assert "C = 1: cross-validation needs pairs of at least two queries" in said
    assert "same grade at place 2" in said
    assert learner.C_ == 1.0
    assert learner.score(learner.given_) == 1.0


def test_a_grade_that_nobody_has_lies_between_its_neighbors():
    given = varied(300)
    lacking = given[~((given.left == 2) | (given.right == 2)).any(axis=1)]
    with pytest.warns(FirstpageWarning, match="no list has the grade 2"):
        learner = DCGLearn(10, C=1.0).fit(lacking)
    assert learner.gains_[1] <= learner.gains_[2] <= learner.gains_[3]


def test_contradictions_are_told_and_cost_what_they_must():
    left, right = [[2, 0], [2, 0], [1, 0]], [[0, 2], [0, 2], [0, 1]]
    with pytest.warns(FirstpageWarning, match="67% of the preferences are contradicted"):
        learner = DCGLearn(2, C=1.0).fit(left, right, [1, -1, 1], grades=[0, 1, 2])
    assert contradicted(learner.pairs_).tolist() == [True, True, False]
    assert learner.accuracy_ == pytest.approx(2 / 3)


def test_fingerprints_of_equal_and_opposite_pairs():
    one = encode(Preferences.from_grades([[0, 1, 2]], [[1, 0, 2]], grades=[0, 1, 2]), 3, 3)
    same = encode(Preferences.from_grades([[0, 1, 0]], [[1, 0, 0]], grades=[0, 1, 2]), 3, 3)
    back = encode(Preferences.from_grades([[1, 0, 1]], [[0, 1, 1]], grades=[0, 1, 2]), 3, 3)
    assert fingerprints(one) == fingerprints(same)
    assert fingerprints(one) == np.uint64(0) - fingerprints(back)


def test_rankings_shorter_than_k_and_k_beyond_all():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        learner = DCGLearn(5, C=10.0).fit([[2, 1], [1]], [[0], [0, 0]], grades=[0, 1, 2])
    assert learner.weights_.shape == (5, 3)
    assert (learner.discounts_[2:] == 0).all()


def test_duplicates_count_as_often_as_they_come():
    given = varied(60, noise=2.0)
    twice = DCGLearn(10, C=1.0).fit(given + given)
    heavy = DCGLearn(10, C=2.0).fit(given)
    assert np.abs(twice.weights_ - heavy.weights_).max() < 1e-9


def test_a_table_of_nothing_has_no_factors():
    found = factors(np.zeros((3, 4)))
    assert found.share == 1.0
    assert not found.gains.any()
    assert similarity(np.zeros((2, 2)), np.ones((2, 2))) == 0.0


def quiet(learner: fp.DCGLearn, *given, **more) -> fp.DCGLearn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return learner.fit(*given, **more)


def test_rounding_is_no_first_discount():
    _, discounts = normalize_gains(np.array([0.0, 1.0]), np.array([1e-16, 2.0, 1.0]))
    assert discounts.tolist() == [0.0, 1.0, 0.5]


def test_both_forms_are_held_out():
    """Gains that depend on the place: the weights know it, gains times discounts cannot."""
    rng = np.random.default_rng(0)
    table = np.array([[0, 3, 3, 3], [0, 0, 0, 3], [0, 2, 2, 2], [0, 0, 2, 2]], float)

    def judged(count: int) -> fp.Preferences:
        left, right = rng.integers(0, 4, (2, count, 4))
        apart = (table[range(4), left] - table[range(4), right]).sum(axis=1)
        found = fp.Preferences.from_grades(left, right, np.sign(apart))
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
    ties = fp.Preferences.from_grades([[1, 0]], [[0, 1]], [0], grades=range(5))
    with pytest.warns(FirstpageWarning, match="C = 1: the validation pairs hold no preference"):
        learner = fp.DCGLearn(10).fit(given, valid=ties)
    assert learner.C_ == 1.0


@pytest.mark.parametrize(
    "grades", [(0, 2, 1, 3, 4), (0, 1, 1, 2, 3, 4), (4, 3, 2, 1, 0), ("a", "b")]
)
def test_grades_that_are_not_upward(grades):
    with pytest.raises(DataError, match="grades must be"):
        fp.DCGLearn(10, C=1.0, grades=grades).fit(varied(20))


def test_weights_that_no_number_can_hold():
    given = varied(40)
    with pytest.raises(DataError, match="numbers from 0 to 1e\\+100"):
        fp.Preferences.from_grades(given.left, given.right, weight=np.full(40, 1e308))
    rng = np.random.default_rng(0)
    wild = fp.Preferences.from_grades(
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


def test_pairs_without_a_segment_are_of_none():
    given = varied(60)
    some = fp.Preferences.from_grades(
        given.left, given.right, given.outcome, segment=["a"] * 30 + [""] * 30, grades=range(5)
    )
    learner = fp.DCGLearn(10, C=1.0).fit(some)
    assert list(learner.segments_) == ["a"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"K": True}, "K, the places"), ({"grid": 1.0}, "grid must be"), ({"seed": -1}, "seed must be"),
     ({"K": 3000}, "too many, at most")],
)  # fmt: skip
def test_parameters_of_the_wrong_kind(parameters, words):
    with pytest.raises(DataError, match=words):
        fp.DCGLearn(**{"K": 10, "C": 1.0, **parameters}).fit(varied(20))
