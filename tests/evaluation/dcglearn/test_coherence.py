"""Agreement of two measures on rankings, and parsing of DCG measures."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError, MeasureError
from firstpage.data.preferences.utility import Utility
from firstpage.evaluation.dcglearn.measure_coherence import (
    coherence,
    list_agreement,
    list_values,
    measure_agreement,
)
from firstpage.evaluation.dcglearn.system_rankings import SystemRankings, parse_dcg
from firstpage.papers.zhou2013.theorems import example_1, proposition_1, theorem_1

# Some runs and judgments are incomplete; the warnings about that are tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

RECIPE = fp.Synthetic(queries=30, docs="uniform(5, 20)", features=4, grades=4)
DATA = RECIPE.dataset()
GOOD = RECIPE.true_utility(DATA.X)
SYSTEMS = {
    "good": GOOD,
    "coarse": np.round(GOOD),  # many ties
    "noise": np.random.default_rng(0).random(DATA.n_docs),
}


@pytest.mark.parametrize("name", ["default", "letor", "lightgbm", "xgboost"])
@pytest.mark.parametrize(
    "text", ["NDCG@5", "DCG@5", "NDCG(gain=linear)", "DCG(gain=[0, 1, 2, 9])@3", "NDCG(discount=letor)@4"]
)  # fmt: skip
def test_values_match_evaluate(text: str, name: str) -> None:
    rankings = SystemRankings.from_systems(SYSTEMS, DATA, fp.Convention(name))
    values = rankings.values(rankings.bind(parse_dcg(text)))
    for row, scores in zip(values, SYSTEMS.values(), strict=True):
        expected = fp.evaluate(scores, DATA, measures=text, convention=name).per_query(text)
        assert row == pytest.approx(expected, abs=1e-12)


def test_values_of_runs_with_unjudged_and_missing_documents() -> None:
    qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1, "x": -1}, "q3": {"a": 1}}
    runs = {
        "one": {"q1": {"u": 3.0, "a": 2.0, "c": 1.0}, "q2": {"x": 2.0, "a": 2.0}},
        "two": {"q1": {"c": 3.0, "b": 2.0, "a": 1.0}, "q3": {"a": 1.0, "u": 0.5}},
    }
    rankings = SystemRankings.from_systems(runs, qrels, fp.Convention())
    values = rankings.values(rankings.bind(parse_dcg("NDCG@3")))
    for row, run in zip(values, runs.values(), strict=True):
        assert row == pytest.approx(fp.evaluate(run, qrels, measures="NDCG@3").per_query("NDCG@3"))
    assert rankings.grades_of(0, 0, 3) == (None, 2, 1)


def test_values_of_queries_without_relevant_documents() -> None:
    """They count 1 by this convention, also where a query has grades below `rel` only."""
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2, "b": 1}, "q3": {"a": 0, "b": 0}}
    runs = {
        "one": {q: {"a": 2.0, "b": 1.0} for q in qrels},
        "two": {q: {"a": 1.0, "b": 2.0} for q in qrels},
    }
    convention = fp.Convention(rel=2, without_relevant="one")
    rankings = SystemRankings.from_systems(runs, qrels, convention)
    dcg = rankings.bind(parse_dcg("NDCG@2"))
    for row, run in zip(rankings.values(dcg), runs.values(), strict=True):
        expected = fp.evaluate(run, qrels, measures="NDCG@2", convention=convention)
        assert row == pytest.approx(expected.per_query("NDCG@2"))
    (verdict,) = fp.dcglearn.verdicts(runs, qrels, "NDCG@2", convention=convention)
    assert verdict.difference == pytest.approx(float(np.diff(rankings.values(dcg)[::-1, 1])[0]) / 3)
    assert verdict.count_differences == pytest.approx(np.array([[0, 1 / 3], [0, 0]]))


@pytest.mark.parametrize("name", ["default", "letor"])
def test_condensed_lists_match_evaluate(name: str, tmp_path) -> None:
    """The first document is unjudged, so that the order of the systems depends on it."""
    path = tmp_path / "measure.json"
    Utility.from_gains([0, 1, 3], [1, 0.5]).save(path)
    qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    runs = {
        "A": {"q": {"u": 3.0, "a": 2.0, "b": 1.0, "v": 1.0, "c": 1.0}},
        "B": {"q": {"b": 2.0, "c": 1.0}},
    }
    rankings = SystemRankings.from_systems(runs, qrels, fp.Convention(name))
    inside = (f"NDCG({path}, condensed=true)@1", f"DCG({path}, condensed=true)@2")
    for text in ("NDCG(condensed=true)@1", "NDCG(condensed=true)@3", "NDCG@2", *inside):
        values = rankings.values(rankings.bind(parse_dcg(text)))
        for row, run in zip(values, runs.values(), strict=True):
            assert row == pytest.approx(
                fp.evaluate(run, qrels, measures=text, convention=name)[text]
            )
    (verdict,) = fp.dcglearn.verdicts(runs, qrels, "NDCG(condensed=true)@1")
    assert (verdict.better, verdict.unrestricted.state) == ("A", "proven")
    result = coherence(runs, qrels, "NDCG(condensed=true)@1", "NDCG@1")
    assert result.orders == (("A", "B"), ("B", "A"))


def test_agreement_counts_ties_and_opposites() -> None:
    result = measure_agreement(
        np.array([1.0, -1.0, 0.0, 0.0, 2.0, -2.0]), np.array([2.0, 1.0, 0.0, 1.0, 0.0, -1.0]), 2
    )
    assert (result.pairs, result.agree, result.both_tie, result.oppose, result.one_ties) == (
        6,
        3,
        1,
        1,
        2,
    )
    assert result.rate == 0.5
    assert [(b.pairs, b.agree, b.oppose, b.one_ties) for b in result.bins] == [
        (2, 1, 0, 1),
        (4, 2, 1, 1),
    ]
    assert measure_agreement(np.zeros(3), np.zeros(3)).rate == 1.0
    with pytest.raises(DataError, match="same pairs"):
        measure_agreement(np.zeros(3), np.zeros(2))


def test_agreement_increases_with_the_difference() -> None:
    """Figure 1 of the paper: gains 2^l - 1 and l on permutations of 5 5 4 4 3 3 2 2 1 1."""
    rng = np.random.default_rng(0)
    grades = np.repeat([5, 4, 3, 2, 1], 2)
    a, b = (rng.permuted(np.tile(grades, (4000, 1)), axis=1) for _ in range(2))
    discounts = 1 / np.log2(np.arange(2, 12))
    exp = Utility.from_gains(2.0 ** np.arange(1, 6), discounts, range(1, 6))
    linear = Utility.from_gains(np.arange(1, 6), discounts, range(1, 6))
    result = list_agreement(a, b, exp, linear, bins=6)
    rates = [bin.rate for bin in result.bins if bin.pairs > 50]
    assert rates == sorted(rates)
    assert rates[0] < 0.85
    assert rates[-1] > 0.99
    assert result.rate == pytest.approx(0.90, abs=0.02)  # "Other" of the paper


def test_list_values_are_sums_over_positions() -> None:
    utility = Utility.from_gains([0, 1, 3], [1.0, 0.5])
    assert list_values([[2, 1, 0], [0, 2, 2]], utility) == pytest.approx([1 + 0.5 / 3, 0.5])
    for lists, message in (([[2]], "at least 2"), ([[7, 0]], "no gain for the grade 7")):
        with pytest.raises(DataError, match=message):
            list_values(lists, utility)


def test_coherence_lists_disagreements_and_orders() -> None:
    qrels = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}}
    runs = {
        "top": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}},
        "wide": {"q": {"b": 3.0, "d": 2.0, "c": 1.0}},
    }
    steep, flat = "DCG(gain=[0, 1, 9])@2", "DCG(gain=[0, 1, 1.1])@2"
    result = coherence(runs, qrels, steep, flat)
    assert result.agreement.oppose == 1
    assert result.orders == (("top", "wide"), ("wide", "top"))
    (pair,) = result.differing_pairs
    assert pair.first > 0 > pair.second
    (worst,) = result.worst_disagreements
    assert (worst.query, worst.grades_a, worst.grades_b) == ("q", (2, 0), (1, 1))
    assert result.to_dict()["agreement"]["rate"] == 0
    self_comparison = coherence(runs, qrels, steep, steep)
    assert self_comparison.agreement.rate == 1
    assert not self_comparison.worst_disagreements
    assert not self_comparison.differing_pairs


def test_one_system_and_disjoint_queries_raise() -> None:
    qrels = {"q": {"a": 1}, "r": {"a": 1}}
    with pytest.raises(DataError, match="at least two"):
        coherence({"x": {"q": {"a": 1.0}}}, qrels, "DCG@1", "NDCG@1")
    with pytest.raises(DataError, match="share no judged query"):
        coherence({"x": {"q": {"a": 1.0}}, "y": {"r": {"a": 1.0}}}, qrels, "DCG@1", "NDCG@1")


def test_measures_are_parsed_from_names_and_files(tmp_path) -> None:
    path = tmp_path / "measure.json"
    Utility.from_gains([0, 1, 3], [1, 0.5, 0.25]).save(path)
    name = fp.Convention()
    assert parse_dcg(f"DCG({path})@2").bind([0], 9, name).positions == 2
    assert parse_dcg(f"NDCG({path})").bind([0], 9, name).normalized
    assert parse_dcg(str(path)).bind([0], 9, name).positions == 3
    assert parse_dcg("DCG@2").bind([0], 9, name).utility.grades == (0, 1)
    for text, message in ((f"DCG({path})@7", "has weights of 3 ranks"),):
        with pytest.raises(MeasureError, match=message):
            parse_dcg(text).bind([0], 2, name)
    for text in ("ERR", "DCG(nothing.json)@3", "nothing.json", "NDCG(gain=steep)"):
        with pytest.raises(FirstpageError):
            parse_dcg(text)


def test_unknown_and_fractional_grades_raise() -> None:
    runs = {"x": {"q": {"a": 1.0, "b": 0.5}}, "y": {"q": {"b": 1.0, "a": 0.5}}}
    with pytest.raises(MeasureError, match="up to grade 1, and the data have a grade 3"):
        coherence(runs, {"q": {"a": 3, "b": 0}}, "DCG(gain=[0, 1])@2", "DCG@2")
    gaps = Utility.from_gains([0, 1, 3], [1, 0.5], (0, 2, 4))
    with pytest.raises(MeasureError, match=r"grades 0, 2, 4, and the data have a grade 3; use a"):
        coherence(runs, {"q": {"a": 3, "b": 0}}, "DCG@2", gaps)
    assert coherence(runs, {"q": {"a": 2, "b": -1}}, gaps, gaps).agreement.pairs == 1
    with pytest.raises(MeasureError, match="integer grades"):
        coherence(runs, {"q": {"a": 1.5, "b": 0}}, "DCG@2", "DCG@1")


@pytest.mark.slow
def test_theorem_1_holds_with_ties() -> None:
    result = theorem_1(np.random.default_rng(0), 2000)
    assert result.holds
    assert result.numbers["ties"] > 0


def test_example_1_flips_at_the_third_power() -> None:
    result = example_1(np.random.default_rng(0), 0)
    assert result.holds
    assert result.numbers["first, power 1"] == 3.25
    assert result.numbers["second, power 1"] == 2.25
    assert result.numbers["first, power 3"] == 12.0625
    assert result.numbers["second, power 3"] == 13.6875
    assert result.numbers["flips at power"] == 3


@pytest.mark.slow
def test_proposition_1_holds() -> None:
    assert proposition_1(np.random.default_rng(0), 2000).holds


def test_ndcg_with_increasing_discounts_matches_evaluate(tmp_path) -> None:
    """The best order is not that by grade where a later position has more weight."""
    from firstpage.evaluation.dcglearn.system_rankings import SystemRankings, parse_dcg

    rng = np.random.default_rng(0)
    recipe = fp.Synthetic(queries=20, docs="uniform(1, 12)", features=3, grades=4, seed=1)
    data = recipe.dataset()
    path = tmp_path / "rising.json"
    fp.dcglearn.Utility.from_gains([0, 0.3, 0.5, 1.0], [0.4, 1.0, 0.6, 0.9, 0.2]).save(path)
    systems = {name: rng.random(data.n_docs) for name in "ab"}
    rankings = SystemRankings.from_systems(systems, data, fp.Convention())
    for text in (f"NDCG({path})@4", f"NDCG({path}, form=weights)", "NDCG@3", f"DCG({path})"):
        values = rankings.values(rankings.bind(parse_dcg(text)))
        for row, scores in zip(values, systems.values(), strict=True):
            assert row == pytest.approx(fp.evaluate(scores, data, measures=text).values[0])
    with pytest.raises(MeasureError, match="use DCG, or require decreasing discounts"):
        fp.dcglearn.verdicts(systems, data, f"NDCG({path})@4", decreasing=False)
