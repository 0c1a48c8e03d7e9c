"""DCGLearn: what it learns, its intervals, and errors for invalid input."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageWarning
from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility, normalize_gains, read_utility
from firstpage.evaluation.dcglearn.confidence import JudgmentNoise, intervals, position_test
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.pairs import contradicted, encode, fingerprints
from firstpage.evaluation.dcglearn.simulation import randomize_grades, reverse_pairs, zhou_simulator
from firstpage.evaluation.dcglearn.validation import differences, folds, preference_agreement
from firstpage.evaluation.dcglearn.weights import rank_one_factors, similarity
from tests.evaluation.dcglearn.reference import delta, objective, random_preferences
from tests.narrow import present

TRUE = Utility.from_dcg("exp", range(5), 10)


def varied(n: int, seed: int = 0, truth: Utility = TRUE, noise: float = 0.0) -> Preferences:
    """Return preferences of a known measure between lists of different grades."""
    rng = np.random.default_rng(seed)
    frequencies = np.array([0.4, 0.3, 0.15, 0.1, 0.05])[: len(truth.grades)]
    left, right = (
        rng.choice(len(frequencies), (n, truth.n_positions), p=frequencies / frequencies.sum())
        for _ in range(2)
    )
    positions = np.arange(truth.n_positions)
    difference = (truth.weights[positions, left] - truth.weights[positions, right]).sum(axis=1)
    noisy_difference = difference + noise * rng.logistic(size=n)
    return Preferences.from_grades(left, right, np.sign(noisy_difference), grades=truth.grades)


def test_encoding_matches_example_2_of_the_paper():
    """Example 2: Perfect, Bad, Good with five grades, the best first."""
    preferences = Preferences.from_grades([[5, 1, 3]], [[1, 1, 1]], grades=range(1, 6))
    pairs = encode(preferences, 3, 5)
    ones = np.flatnonzero(delta(pairs)[0] == 1)
    best_first = [5 * (index // 5) + 5 - index % 5 for index in ones]
    assert best_first == [1, 13]  # Bad at the second position, 10, is on both sides


def test_differences_and_agreement_match_a_plain_loop():
    pairs = encode(random_preferences(200, ties=0.2, strong=0.3), 10, 5)
    rows = delta(pairs)
    assert np.array_equal(pairs.sparse().toarray(), rows)
    table = np.random.default_rng(0).normal(size=(10, 5))
    z = rows @ table.ravel()
    assert differences(pairs, table) == pytest.approx(z)
    agreement = preference_agreement(pairs, table)
    strict = pairs.kind > 0
    accuracy = (pairs.weight * (z > 0))[strict].sum() / pairs.weight[strict].sum()
    assert agreement.accuracy == pytest.approx(accuracy)
    assert agreement.tie_difference == pytest.approx(
        np.average(np.abs(z[~strict]), weights=pairs.weight[~strict])
    )


def test_better_ranking_is_encoded_left():
    preferences = Preferences.from_grades(
        [[0, 1], [1, 1], [1, 0]], [[1, 0], [1, 1], [0, 1]], [-2, 1, 0]
    )
    pairs = encode(preferences, 2, 2)
    assert pairs.left.tolist() == [[1, 0], [1, 0]]
    assert pairs.kind.tolist() == [2, 0]
    assert pairs.rows.tolist() == [0, 2]


def test_learner_recovers_gains_and_discounts():
    learner = DCGLearn(10, C=100.0).fit(varied(3000))
    assert learner.gains_ == pytest.approx(TRUE.gains, abs=0.04)
    assert learner.discounts_ == pytest.approx(TRUE.discounts, abs=0.12)
    assert learner.rank_one_fraction_ > 0.995
    assert similarity(learner.weights_, TRUE.weights) > 0.995
    assert learner.score(varied(4000, seed=1)) > 0.975
    assert not learner.relative_discounts_


def test_same_grades_determine_discounts_relative_to_the_last():
    """Such pairs do not determine a constant, which the smallest weights set to 0."""
    learner = DCGLearn(10, 5, 100.0).fit(zhou_simulator(2).pairs(3000, np.random.default_rng(0)))
    c = 1 / np.log(np.arange(2, 12))
    assert learner.relative_discounts_
    assert learner.about()["relative_discounts"] is True
    assert learner.discounts_ == pytest.approx((c - c[-1]) / (c[0] - c[-1]), abs=0.05)
    limit = (c - c[-1]) @ c / np.linalg.norm(c - c[-1]) / np.linalg.norm(c)
    assert limit == pytest.approx(0.892, abs=0.001)
    cosine = similarity(learner.weights_, zhou_simulator(2).truth.weights)
    assert cosine == pytest.approx(limit, abs=0.03)


def test_objective_matches_the_paper():
    preferences = random_preferences(300, ties=0.2)
    learner = DCGLearn(10, C=3.0, C_tie=0.7).fit(preferences)
    plain = objective(learner.pairs_, learner.optimum_.weights, [0.7, 3.0, 3.0], [1.0, 1.0, 1.0])
    assert learner.objective_ == pytest.approx(plain, rel=1e-12)
    assert learner.gap_ <= 1e-9 * learner.objective_


def test_cost_of_ties_reduces_their_differences():
    """Figure 20: the mean difference of tied pairs decreases as their cost grows."""
    rng = np.random.default_rng(3)
    simulator = zhou_simulator(2)
    pool = [simulator.rankings(6000, rng) for _ in range(2)]
    difference = np.abs(simulator.values(pool[0]) - simulator.values(pool[1]))
    tied_rows = np.flatnonzero(
        (difference < np.quantile(difference, 0.12)) & (pool[0] != pool[1]).any(axis=1)
    )[:400]
    ties = Preferences.from_grades(
        pool[0][tied_rows], pool[1][tied_rows], np.zeros(400), grades=simulator.truth.grades
    )
    preferences = simulator.pairs(150, rng) + ties
    tie_differences = [
        DCGLearn(10, 5, 1.0, c).fit(preferences).agreement().tie_difference for c in (0.0, 0.1, 1.0)
    ]
    assert tie_differences[0] > tie_differences[1] > tie_differences[2]


def test_decreasing_and_nonnegative_constrain_the_weights():
    preferences = varied(300, noise=3.0)
    learner = DCGLearn(10, C=1.0, decreasing=True).fit(preferences)
    steps = np.diff(learner.weights_, axis=1)
    assert (np.diff(steps, axis=0) <= 1e-12).all()
    assert (np.diff(learner.discounts_) <= 1e-12).all()
    free = DCGLearn(10, C=1.0).fit(preferences)
    assert (np.diff(free.discounts_) > 0).any()
    zero = DCGLearn(10, C=1.0, nonnegative=True).fit(preferences)
    assert zero.optimum_.weights == pytest.approx(zero.optimum_.table)


def test_strong_preferences_have_a_larger_margin():
    left, right = [[2], [1]], [[0], [0]]
    equal_margins = DCGLearn(1, C=1e4).fit(left, right, [2, 1], grades=[0, 1, 2])
    larger_margin = DCGLearn(1, C=1e4, strong_margin=3.0).fit(left, right, [2, 1], grades=[0, 1, 2])
    assert equal_margins.weights_[0] == pytest.approx([0, 1, 1], abs=1e-3)
    assert larger_margin.weights_[0] == pytest.approx([0, 1.5, 3], abs=1e-3)


def test_c_is_chosen_by_held_out_pairs():
    rng = np.random.default_rng(0)
    clean, noisy = (
        zhou_simulator(1).pairs(400, rng),
        reverse_pairs(zhou_simulator(1).pairs(400, rng), 0.25, rng),
    )
    clean_fit, noisy_fit = DCGLearn(10, 5).fit(clean), DCGLearn(10, 5).fit(noisy)
    assert clean_fit.validation_curve_ is not None
    assert (
        clean_fit.validation_curve_.costs[int(np.argmax(clean_fit.validation_curve_.means))]
        == clean_fit.C_
    )
    assert clean_fit.C_ > noisy_fit.C_
    assert present(noisy_fit.validation_curve_).errors.shape == (8,)
    valid = zhou_simulator(1).pairs(500, rng)
    chosen = DCGLearn(10, 5).fit(noisy, valid=valid)
    accuracies = [
        DCGLearn(10, 5, c).fit(noisy).score(valid) for c in present(chosen.validation_curve_).costs
    ]
    assert (
        present(chosen.validation_curve_).costs[int(np.argmax(np.round(accuracies, 12)))]
        == chosen.C_
    )


def test_regularization_path_matches_separate_fits():
    preferences = varied(200, noise=2.0)
    path = DCGLearn(10, C=1.0).fit(preferences).regularization_path([0.01, 1.0, 100.0])
    for c, utility in path.items():
        separate = DCGLearn(10, C=c).fit(preferences)
        assert utility.weights == pytest.approx(separate.weights_, abs=1e-8)
        assert utility.about["gap"] <= 1e-9 * utility.about["objective"]


def test_folds_keep_queries_together():
    groups = np.repeat(np.arange(30), 4)
    tested = []
    for train, held_out in folds(groups, 5, 0):
        assert not set(groups[train]) & set(groups[held_out])
        tested += held_out.tolist()
    assert sorted(tested) == list(range(120))


def test_simulated_noise_changes_only_its_target():
    rng = np.random.default_rng(0)
    preferences = zhou_simulator(1).pairs(200, rng)
    reversed_ = reverse_pairs(preferences, 0.25, rng)
    assert (reversed_.outcome != preferences.outcome).sum() == 50
    assert np.array_equal(reversed_.left, preferences.left)
    regraded = randomize_grades(preferences, 0.2, rng)
    assert 0.1 < (regraded.left != preferences.left).mean() < 0.22
    assert np.array_equal(regraded.outcome, preferences.outcome)


def test_intervals_cover_the_true_gains():
    learner = DCGLearn(10, C=10.0).fit(varied(1500, noise=2.0))
    result = intervals(learner, 100, seed=1)
    assert result.gains.shape == (5, 2)
    assert result.discounts.shape == (10, 2)
    assert result.weights.shape == (10, 5, 2)
    inside = (result.gains[1:4, 0] <= TRUE.gains[1:4]) & (TRUE.gains[1:4] <= result.gains[1:4, 1])
    assert inside.sum() >= 2
    assert (result.gains[:, 0] <= learner.gains_ + 0.02).all()
    assert (learner.gains_ - 0.02 <= result.gains[:, 1]).all()
    repeated = intervals(learner, 100, seed=1)
    assert np.array_equal(result.weights, repeated.weights)
    with pytest.raises(DataError, match="at least 2 rounds"):
        intervals(learner, 1)


def test_position_test_detects_gains_that_depend_on_the_position():
    plain = DCGLearn(10, C=10.0).fit(varied(500, seed=2, noise=1.0))
    assert position_test(plain, 39).p > 0.05
    mixed = (
        np.array([np.arange(5) * 3.75 if k < 3 else np.exp2(np.arange(5)) - 1 for k in range(10)])
        / np.log2(np.arange(2, 12))[:, None]
    )
    result = rank_one_factors(mixed)
    truth = Utility(tuple(range(5)), mixed, result.gains, result.discounts)
    dependent = DCGLearn(10, C=10.0).fit(varied(800, seed=2, truth=truth, noise=1.0))
    assert position_test(dependent, 39).p <= 0.05


def test_judgment_noise_has_its_lapse_rate():
    pairs = encode(varied(4000), 10, 5)
    true_differences = differences(pairs, TRUE.weights)
    lapsed = JudgmentNoise(lapse_rate=0.4).simulate(
        pairs, true_differences, np.random.default_rng(0)
    )
    assert (lapsed.left != pairs.left).any(axis=1).mean() == pytest.approx(0.2, abs=0.03)
    noise_free = JudgmentNoise().simulate(pairs, true_differences, np.random.default_rng(0))
    assert np.array_equal(noise_free.left, pairs.left)


def test_segments_are_shrunk_toward_the_pooled_measure():
    flat = Utility.from_gains(TRUE.gains, np.ones(10))
    web, shop = varied(900, seed=1), varied(60, seed=2, truth=flat)
    preferences = Preferences.from_grades(
        np.vstack([web.left, shop.left]),
        np.vstack([web.right, shop.right]),
        np.concatenate([web.outcome, shop.outcome]),
        segment=["web"] * 900 + ["shop"] * 60,
    )
    pooled = DCGLearn(10, C=0.01).fit(preferences)
    separate = DCGLearn(10, C=0.01, pooling=0.0).fit(preferences)
    shop, own = (m.segments_["shop"].utility.discounts[-1] for m in (pooled, separate))
    assert pooled.segments_["shop"].pairs == 60
    assert pooled.discounts_[-1] < shop
    assert own > pooled.discounts_[-1]
    segment = pooled.segments_["shop"]
    assert 0.5 < segment.accuracy_pooled <= 1
    assert 0.5 < segment.accuracy <= 1
    big = pooled.segments_["web"].utility
    assert similarity(big.weights, pooled.weights_) > 0.98
    assert set(pooled.utility_.segments) == {"web", "shop"}


def test_saved_measure_has_the_same_weights(tmp_path):
    learner = DCGLearn(10, C=1.0).fit(varied(200))
    learner.utility_.save(tmp_path / "m.json")
    loaded = read_utility(tmp_path / "m.json")
    assert np.array_equal(loaded.weights, learner.weights_)
    assert loaded.about["accuracy"] == learner.accuracy_
    pool = varied(50, seed=9)
    signs = np.sign(learner.decision_function(pool))
    assert (signs == pool.outcome).mean() == pytest.approx(learner.score(pool))


def test_lambdamart_refuses_the_weights_of_a_measure(tmp_path):
    path = tmp_path / "m.json"
    TRUE.save(path)
    X, y, qid = [[float(i)] for i in range(10)], [i // 5 for i in range(10)], [1] * 10
    with pytest.raises(DataError, match="gain needs the gains of a measure file: use form=gains"):
        fp.LambdaMART(gain=f"{path}, form=weights").fit(X, y, qid=qid)


def test_parameters_follow_scikit_learn():
    first = DCGLearn(5, C=2.0)
    assert DCGLearn(**first.get_params()).get_params() == first.get_params()
    assert first.set_params(K=7).K == 7
    assert first.with_params(C="cv").C == "cv"
    with pytest.raises(DataError, match="no parameter 'x'"):
        first.set_params(x=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"K": 0}, "K, the number of positions"),
        ({"K": 2.5}, "K, the number of positions"),
        ({"L": 1}, "L, the number of grades"),
        ({"K": 1000, "L": 50}, "1000 positions times 50 grades exceed the limit"),
        ({"C": 0}, "C must be a finite number above 0"),
        ({"C": np.nan}, "C must be a finite number above 0"),
        ({"C": "x"}, "C must be a finite number above 0"),
        ({"C_tie": -1}, "C_tie must be"),
        ({"strong_margin": 0}, "strong_margin, the margin"),
        ({"pooling": 2}, "pooling must be from 0 to 1"),
        ({"grid": []}, "grid must be a sequence of values of C"),
        ({"folds": 1}, "folds must be"),
        ({"L": 3}, "more than L = 3"),
        ({"grades": [0, 1]}, "the grades are 0, 1"),
        ({"grades": range(5), "L": 4}, "L is 4, and there are 5 grades; omit L or grades."),
        ({"grades": [0, 1.7, 2.9, 3.2]}, "grades must be integers; got [0, 1.7, 2.9, 3.2]"),
        ({"grades": 5}, "grades must be integers; got 5"),
        ({"unjudged": "x"}, "unjudged must be one of"),
    ],
)
def test_invalid_parameters_raise(parameters, message):
    with pytest.raises(DataError) as error:
        DCGLearn(**{"K": 10, "C": 1.0, **parameters}).fit(varied(20))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outcome": [-1] * 20}, "outcome applies to lists of grades only"),
        ({"right": [[1]] * 20}, "right applies to lists of grades only"),
        ({"weight": [1] * 20}, "weight applies to lists of grades only"),
        ({"nonsense": 3}, "nonsense applies to lists of grades only"),
        ({"valid": "file.jsonl"}, "valid must be Preferences; read a file"),
        ({"valid": varied(10)}, "valid chooses C, which is 1.0; omit valid, or use C='cv'."),
    ],
)
@pytest.mark.parametrize("stored", ["memory", "file"])
def test_arguments_without_effect_are_refused(arguments, message, stored, tmp_path):
    data = varied(20)
    if stored == "file":
        fp.dcglearn.write_preferences(data, tmp_path / "p.jsonl")
        data = tmp_path / "p.jsonl"
    with pytest.raises(DataError) as error:
        DCGLearn(10, C=1.0).fit(data, **arguments)
    assert message in str(error.value)


def test_grades_whose_exponential_gain_overflows_are_refused():
    with pytest.raises(DataError, match="the grade 1100 is too large"):
        DCGLearn(2, C=1.0).fit([[1100, 0]], [[0, 1100]], grades=[0, 1100])
    with pytest.raises(DataError, match="limited to grade 1000; got 1100"):
        Utility.from_dcg("exp", (0, 1100), 2)
    assert Utility.from_dcg("linear", (0, 1100), 2).gains.tolist() == [0, 1]


def test_uninformative_preferences_raise():
    lists = [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="all pairs are ties"):
        DCGLearn(2).fit(lists, lists[::-1], [0, 0])
    with pytest.raises(DataError, match="no pair has both a weight and a difference"):
        DCGLearn(2).fit(lists, lists, [1, 1])
    with pytest.raises(DataError, match="no pairs to learn from"):
        DCGLearn(10).fit(varied(5)[:0])


def test_single_pair_is_learned_with_warnings():
    with pytest.warns(FirstpageWarning) as caught:
        learner = DCGLearn(3).fit([[1, 0, 0]], [[0, 0, 1]])
    messages = " ".join(str(w.message) for w in caught)
    assert "C = 1: cross-validation needs pairs of at least two queries" in messages
    assert "same grade at position 2" in messages
    assert learner.C_ == 1.0
    assert learner.score(learner.preferences_) == 1.0


def test_gain_of_a_missing_grade_lies_between_its_neighbors():
    preferences = varied(300)
    lacking = preferences[~((preferences.left == 2) | (preferences.right == 2)).any(axis=1)]
    with pytest.warns(FirstpageWarning, match="no list has the grade 2"):
        learner = DCGLearn(10, C=1.0).fit(lacking)
    assert learner.gains_[1] <= learner.gains_[2] <= learner.gains_[3]


def test_contradicted_preferences_give_a_warning():
    left, right = [[2, 0], [2, 0], [1, 0]], [[0, 2], [0, 2], [0, 1]]
    with pytest.warns(FirstpageWarning, match="67% of the preferences are contradicted"):
        learner = DCGLearn(2, C=1.0).fit(left, right, [1, -1, 1], grades=[0, 1, 2])
    assert contradicted(learner.pairs_).tolist() == [True, True, False]
    assert learner.accuracy_ == pytest.approx(2 / 3)


def test_fingerprints_of_equal_and_opposite_pairs():
    pair = encode(Preferences.from_grades([[0, 1, 2]], [[1, 0, 2]], grades=[0, 1, 2]), 3, 3)
    equal = encode(Preferences.from_grades([[0, 1, 0]], [[1, 0, 0]], grades=[0, 1, 2]), 3, 3)
    opposite = encode(Preferences.from_grades([[1, 0, 1]], [[0, 1, 1]], grades=[0, 1, 2]), 3, 3)
    assert fingerprints(pair) == fingerprints(equal)
    assert fingerprints(pair) == np.uint64(0) - fingerprints(opposite)


def test_positions_beyond_all_lists_have_discount_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        learner = DCGLearn(5, C=10.0).fit([[2, 1], [1]], [[0], [0, 0]], grades=[0, 1, 2])
    assert learner.weights_.shape == (5, 3)
    assert (learner.discounts_[2:] == 0).all()


def test_duplicates_equal_a_doubled_cost():
    preferences = varied(60, noise=2.0)
    twice = DCGLearn(10, C=1.0).fit(preferences + preferences)
    doubled_cost = DCGLearn(10, C=2.0).fit(preferences)
    assert np.abs(twice.weights_ - doubled_cost.weights_).max() < 1e-9


def test_zero_weights_have_zero_factors():
    result = rank_one_factors(np.zeros((3, 4)))
    assert result.rank_one_fraction == 1.0
    assert not result.gains.any()
    assert similarity(np.zeros((2, 2)), np.ones((2, 2))) == 0.0


def quiet(learner: fp.dcglearn.DCGLearn, *args, **kwargs) -> fp.dcglearn.DCGLearn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return learner.fit(*args, **kwargs)


def test_normalization_ignores_rounding_error():
    _, discounts = normalize_gains(np.array([0.0, 1.0]), np.array([1e-16, 2.0, 1.0]))
    assert discounts.tolist() == [0.0, 1.0, 0.5]


def test_validation_curve_covers_both_forms():
    """Gains that depend on the position fit the weights, not gains times discounts."""
    rng = np.random.default_rng(0)
    table = np.array([[0, 3, 3, 3], [0, 0, 0, 3], [0, 2, 2, 2], [0, 0, 2, 2]], float)

    def judged(count: int) -> fp.dcglearn.Preferences:
        left, right = rng.integers(0, 4, (2, count, 4))
        difference = (table[range(4), left] - table[range(4), right]).sum(axis=1)
        preferences = fp.dcglearn.Preferences.from_grades(left, right, np.sign(difference))
        return preferences[preferences.outcome != 0]

    learner = fp.dcglearn.DCGLearn(K=4).fit(judged(600))
    path, test = learner.validation_curve_, judged(5000)
    assert present(path).accuracy("weights") > present(path).accuracy("gains") + 0.03
    for form in ("weights", "gains"):
        accuracy = learner.agreement(test, form).accuracy
        assert present(path).accuracy(form) == pytest.approx(accuracy, abs=0.04)


def test_unjudged_documents_have_grade_0_where_all_grades_are_above_it(recwarn):
    left, right = [[2, 1], [1, 2], [2, 2]] * 4, [[2, None], [None, 2], [2]] * 4
    data = fp.dcglearn.Preferences.from_grades(left, right, query=range(12))
    learner = fp.dcglearn.DCGLearn(2, C=1.0).fit(data)
    assert learner.grades_ == (0, 1, 2)
    assert learner.weights_.shape == (2, 3)
    assert (learner.weights_[:, 1] > 0).all()  # 1 is better than no judgment
    assert not [w for w in recwarn if "no list has the grade" in str(w.message)]
    assert fp.dcglearn.DCGLearn(2, L=3, C=1.0).fit(data).grades_ == (0, 1, 2)
    assert fp.dcglearn.DCGLearn(2, C=1.0, grades=[1, 2]).fit(data).grades_ == (1, 2)
    # The first position always has a grade.
    judged = fp.dcglearn.Preferences.from_grades([[2, None]] * 3, [[1, None]] * 3)
    assert fp.dcglearn.DCGLearn(1, C=1.0).fit(judged).grades_ == (1, 2)


def test_failed_fit_keeps_the_previous_one():
    learner = fp.dcglearn.DCGLearn(10, C=1.0).fit(varied(100))
    before = learner.about()
    with pytest.raises(DataError, match="all pairs are ties"):
        learner.fit([[1, 0]], [[0, 1]], [0])
    assert learner.about() == before
    learner.set_params(K=2, C_tie=5.0, unjudged="refuse", strong_margin=9.0)
    assert learner.about() == before
    assert learner.regularization_path([1.0])[1.0].weights == pytest.approx(learner.weights_)


def test_unfitted_attributes_raise():
    with pytest.raises(AttributeError, match="no weights_ before it is fitted; call fit first"):
        _ = fp.dcglearn.DCGLearn().weights_
    with pytest.raises(AttributeError, match="has no 'nonsense'"):
        _ = fp.dcglearn.DCGLearn().nonsense
    learner = pickle.loads(pickle.dumps(fp.dcglearn.DCGLearn(10, C=1.0).fit(varied(30))))
    assert learner.weights_.shape == (10, 5)


def test_validation_pairs_need_a_preference():
    preferences = varied(60)
    ties = fp.dcglearn.Preferences.from_grades([[1, 0]], [[0, 1]], [0], grades=range(5))
    with pytest.warns(FirstpageWarning, match="C = 1: the validation pairs contain no preference"):
        learner = fp.dcglearn.DCGLearn(10).fit(preferences, valid=ties)
    assert learner.C_ == 1.0


@pytest.mark.parametrize(
    "grades", [(0, 2, 1, 3, 4), (0, 1, 1, 2, 3, 4), (4, 3, 2, 1, 0), ("a", "b")]
)
def test_grades_must_be_ascending(grades):
    with pytest.raises(DataError, match="grades must be"):
        fp.dcglearn.DCGLearn(10, C=1.0, grades=grades).fit(varied(20))


def test_extreme_weights_raise_or_stay_finite():
    preferences = varied(40)
    with pytest.raises(DataError, match="numbers from 0 to 1e\\+100"):
        fp.dcglearn.Preferences.from_grades(
            preferences.left, preferences.right, weight=np.full(40, 1e308)
        )
    rng = np.random.default_rng(0)
    wild = fp.dcglearn.Preferences.from_grades(
        preferences.left,
        preferences.right,
        preferences.outcome,
        weight=10.0 ** rng.uniform(-12, 12, 40),
        grades=range(5),
    )
    try:
        learner = quiet(fp.dcglearn.DCGLearn(10, C=1e8), wild)
    except DataError as error:
        assert "too large or too unequal" in str(error)
    else:
        assert np.isfinite(learner.weights_).all()


def test_pairs_without_a_segment_name_have_no_segment():
    preferences = varied(60)
    half_named = fp.dcglearn.Preferences.from_grades(
        preferences.left,
        preferences.right,
        preferences.outcome,
        segment=["a"] * 30 + [""] * 30,
        grades=range(5),
    )
    learner = fp.dcglearn.DCGLearn(10, C=1.0).fit(half_named)
    assert list(learner.segments_) == ["a"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"K": True}, "K, the number of positions"), ({"grid": 1.0}, "grid must be"), ({"seed": -1}, "seed must be"),
     ({"K": 3000}, "exceed the limit of 4000 weights")],
)  # fmt: skip
def test_parameters_of_the_wrong_type_raise(parameters, message):
    with pytest.raises(DataError, match=message):
        fp.dcglearn.DCGLearn(**{"K": 10, "C": 1.0, **parameters}).fit(varied(20))
