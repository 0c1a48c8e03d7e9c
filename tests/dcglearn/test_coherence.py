from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.coherence import agreement, coherence, list_agreement, list_values
from firstpage.dcglearn.ranked import Ranked, wanted
from firstpage.errors import DataError, FirstpageError, MeasureError
from firstpage.measures.measure import convention
from firstpage.papers.zhou2013.theorems import example_1, proposition_1, theorem_1

# Runs and judgments that lack something of each other; `test_coverage` is about what is said then.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.errors.FirstpageWarning")

RECIPE = fp.Synthetic(queries=30, docs="uniform(5, 20)", features=4, grades=4)
DATA = RECIPE.dataset()
GOOD = RECIPE.true_utility(DATA.X)
SYSTEMS = {
    "good": GOOD,
    "coarse": np.round(GOOD),  # many ties
    "noise": np.random.default_rng(0).random(DATA.n_docs),
}


@pytest.mark.parametrize("how", ["default", "letor"])
@pytest.mark.parametrize(
    "text", ["NDCG@5", "DCG@5", "NDCG(gain=linear)", "DCG(gain=[0, 1, 2, 9])@3", "NDCG(discount=letor)@4"]
)  # fmt: skip
def test_values_are_those_of_evaluate(text: str, how: str) -> None:
    ranked = Ranked.of(SYSTEMS, DATA, convention(how))
    values = ranked.values(ranked.scale(wanted(text)))
    for row, scores in zip(values, SYSTEMS.values(), strict=True):
        want = fp.evaluate(scores, DATA, measures=text, convention=how).per_query(text)
        assert row == pytest.approx(want, abs=1e-12)


def test_values_of_runs_with_unjudged_and_missing_documents() -> None:
    qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1, "x": -1}, "q3": {"a": 1}}
    runs = {
        "one": {"q1": {"u": 3.0, "a": 2.0, "c": 1.0}, "q2": {"x": 2.0, "a": 2.0}},
        "two": {"q1": {"c": 3.0, "b": 2.0, "a": 1.0}, "q3": {"a": 1.0, "u": 0.5}},
    }
    ranked = Ranked.of(runs, qrels, convention())
    values = ranked.values(ranked.scale(wanted("NDCG@3")))
    for row, run in zip(values, runs.values(), strict=True):
        assert row == pytest.approx(fp.evaluate(run, qrels, measures="NDCG@3").per_query("NDCG@3"))
    assert ranked.shown(0, 0, 3) == (None, 2, 1)


def test_agreement_counts_every_kind() -> None:
    found = agreement(
        np.array([1.0, -1.0, 0.0, 0.0, 2.0, -2.0]), np.array([2.0, 1.0, 0.0, 1.0, 0.0, -1.0]), 2
    )
    assert (found.pairs, found.agree, found.both_tie, found.oppose, found.one_ties) == (
        6,
        3,
        1,
        1,
        2,
    )
    assert found.rate == 0.5
    assert [(b.pairs, b.agree, b.oppose, b.one_ties) for b in found.bins] == [
        (2, 1, 0, 1),
        (4, 2, 1, 1),
    ]
    assert agreement(np.zeros(3), np.zeros(3)).rate == 1.0
    with pytest.raises(DataError, match="same pairs"):
        agreement(np.zeros(3), np.zeros(2))


def test_agreement_rises_with_the_difference() -> None:
    """The paper's figure 1: gains 2^l - 1 and l on permutations of 5 5 4 4 3 3 2 2 1 1."""
    rng = np.random.default_rng(0)
    grades = np.repeat([5, 4, 3, 2, 1], 2)
    a, b = (rng.permuted(np.tile(grades, (4000, 1)), axis=1) for _ in range(2))
    fall = 1 / np.log2(np.arange(2, 12))
    exp = Utility.from_gains(2.0 ** np.arange(1, 6), fall, range(1, 6))
    linear = Utility.from_gains(np.arange(1, 6), fall, range(1, 6))
    found = list_agreement(a, b, exp, linear, bins=6)
    rates = [bin.rate for bin in found.bins if bin.pairs > 50]
    assert rates == sorted(rates)
    assert rates[0] < 0.85
    assert rates[-1] > 0.99
    assert found.rate == pytest.approx(0.90, abs=0.02)  # "Other" of the paper


def test_list_values_are_sums_over_places() -> None:
    utility = Utility.from_gains([0, 1, 3], [1.0, 0.5])
    assert list_values([[2, 1, 0], [0, 2, 2]], utility) == pytest.approx([1 + 0.5 / 3, 0.5])
    for wrong, said in (([[2]], "at least 2"), ([[7, 0]], "no gain for the grade 7")):
        with pytest.raises(DataError, match=said):
            list_values(wrong, utility)


def test_coherence_of_systems() -> None:
    qrels = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}}
    runs = {
        "top": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}},
        "wide": {"q": {"b": 3.0, "d": 2.0, "c": 1.0}},
    }
    steep, flat = "DCG(gain=[0, 1, 9])@2", "DCG(gain=[0, 1, 1.1])@2"
    found = coherence(runs, qrels, steep, flat)
    assert found.agreement.oppose == 1
    assert found.orders == (("top", "wide"), ("wide", "top"))
    (pair,) = found.differing
    assert pair.first > 0 > pair.second
    (worst,) = found.worst
    assert (worst.query, worst.grades_a, worst.grades_b) == ("q", (2, 0), (1, 1))
    assert found.to_dict()["agreement"]["rate"] == 0
    same = coherence(runs, qrels, steep, steep)
    assert same.agreement.rate == 1
    assert not same.worst
    assert not same.differing


def test_one_system_and_strangers_are_refused() -> None:
    qrels = {"q": {"a": 1}, "r": {"a": 1}}
    with pytest.raises(DataError, match="at least two"):
        coherence({"x": {"q": {"a": 1.0}}}, qrels, "DCG@1", "NDCG@1")
    with pytest.raises(DataError, match="share no judged query"):
        coherence({"x": {"q": {"a": 1.0}}, "y": {"r": {"a": 1.0}}}, qrels, "DCG@1", "NDCG@1")


def test_measures_are_read_from_texts_and_files(tmp_path) -> None:
    path = tmp_path / "measure.json"
    Utility.from_gains([0, 1, 3], [1, 0.5, 0.25]).save(path)
    how = convention()
    assert wanted(f"DCG({path})@2").on([0], 9, how).places == 2
    assert wanted(f"NDCG({path})").on([0], 9, how).normalized
    assert wanted(str(path)).on([0], 9, how).places == 3
    assert wanted("DCG@2").on([0], 9, how).utility.grades == (0, 1)
    for text, said in ((f"DCG({path})@7", "has weights of 3 places"),):
        with pytest.raises(MeasureError, match=said):
            wanted(text).on([0], 2, how)
    for text in ("ERR", "DCG(nothing.json)@3", "nothing.json", "NDCG(gain=steep)"):
        with pytest.raises(FirstpageError):
            wanted(text)


def test_grades_must_be_known_and_whole() -> None:
    runs = {"x": {"q": {"a": 1.0, "b": 0.5}}, "y": {"q": {"b": 1.0, "a": 0.5}}}
    with pytest.raises(MeasureError, match="up to grade 1, and the data hold a grade 3"):
        coherence(runs, {"q": {"a": 3, "b": 0}}, "DCG(gain=[0, 1])@2", "DCG@2")
    with pytest.raises(MeasureError, match="whole numbers"):
        coherence(runs, {"q": {"a": 1.5, "b": 0}}, "DCG@2", "DCG@1")


@pytest.mark.slow
def test_theorem_1_holds_with_ties() -> None:
    found = theorem_1(np.random.default_rng(0), 2000)
    assert found.holds
    assert found.numbers["ties"] > 0


def test_example_1_flips_at_the_third_power() -> None:
    found = example_1(np.random.default_rng(0), 0)
    assert found.holds
    assert found.numbers["first, power 1"] == 3.25
    assert found.numbers["second, power 1"] == 2.25
    assert found.numbers["first, power 3"] == 12.0625
    assert found.numbers["second, power 3"] == 13.6875
    assert found.numbers["flips at power"] == 3


@pytest.mark.slow
def test_proposition_1() -> None:
    assert proposition_1(np.random.default_rng(0), 2000).holds


def test_ndcg_with_rising_discounts_is_that_of_evaluate(tmp_path) -> None:
    """The best order is not that by grade where a later place is worth more."""
    from firstpage.dcglearn.ranked import Ranked, wanted
    from firstpage.measures.measure import convention

    rng = np.random.default_rng(0)
    made = fp.Synthetic(queries=20, docs="uniform(1, 12)", features=3, grades=4, seed=1)
    data = made.dataset()
    path = tmp_path / "rising.json"
    fp.Utility.from_gains([0, 0.3, 0.5, 1.0], [0.4, 1.0, 0.6, 0.9, 0.2]).save(path)
    systems = {name: rng.random(data.n_docs) for name in "ab"}
    ranked = Ranked.of(systems, data, convention("default"))
    for text in (f"NDCG({path})@4", f"NDCG({path}, form=weights)", "NDCG@3", f"DCG({path})"):
        got = ranked.values(ranked.scale(wanted(text)))
        for row, scores in zip(got, systems.values(), strict=True):
            assert row == pytest.approx(fp.evaluate(scores, data, measures=text).values[0])
    with pytest.raises(MeasureError, match="ask for DCG, or let discounts fall"):
        fp.verdicts(systems, data, f"NDCG({path})@4", falling=False)
