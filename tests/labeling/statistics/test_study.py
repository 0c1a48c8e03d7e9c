"""Simulated assessors agree as the paper's did, and a study prints its tables."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from firstpage.errors import DataError
from firstpage.labeling.statistics.agreement import Agreement, contrast, result_overlaps, total
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.statistics.study import study
from firstpage.papers.niu2012.labeling import Crowd
from firstpage.table import Table
from tests.labeling.statistics.simulated import simulated_results


def rows_of(results):
    """A few answers and grades of each sitting, without any noise in the times."""
    for (query, who, tool), labels in results.items():
        docs = sorted(labels)[:4]
        for i, left in enumerate(docs):
            if tool == "grades":
                yield Record(query, who, tool, left, grade=int(labels[left]), active=13.87)
            elif i:
                sign = int(np.sign(labels[left] - labels[docs[0]]))
                yield Record(query, who, tool, left, docs[0], sign, active=5.51)
    yield Record(query, who, "pairs", docs[0], docs[1], 1, kind="repeat")


@pytest.mark.slow
def test_simulated_people_agree_as_the_paper_s():
    results = simulated_results(300, 50, 10, 2, seed=1)
    top, graded = (total(result_overlaps(results, tool)) for tool in ("pairs", "grades"))
    assert top.total == 300 * 1225 == graded.total
    assert top.overall == pytest.approx(0.745, abs=0.015)
    assert top.without_ties == pytest.approx(0.897, abs=0.015)
    assert top.ties == pytest.approx((780 / 1225, 780 / 1225))
    assert top.chance == pytest.approx(0.47, abs=0.005)
    assert graded.overall == pytest.approx(0.64, abs=0.015)
    assert graded.without_ties == pytest.approx(0.89, abs=0.01)
    # the same noise: by kappa the two are nearer than overall agreement says
    assert top.overall - graded.overall > 0.1
    assert top.kappa - graded.kappa < 0.1


def test_people_without_noise_agree_on_everything():
    results = simulated_results(5, 20, 4, 3, crowd=Crowd(noise=0.0, jitter=0.0))
    for tool in ("pairs", "grades"):
        assert total(result_overlaps(results, tool)).overall == 1
    assert max(results["q0", "u0", "grades"].values()) == 4


def test_crowds_that_cannot_be():
    with pytest.raises(DataError, match="at least 0"):
        Crowd(noise=-1.0)
    with pytest.raises(DataError, match="ascending"):
        Crowd(lines=(0.5, 0.4))


def written_first(found):
    """The first two keys of what `--json` prints."""
    return list(found.to_dict())[:2]


def test_a_whole_study():
    results = simulated_results(12, 20, 5, 3)
    rows = list(rows_of(results))
    found = study(rows, results, rounds=200)
    assert found.effort["pairs"].seconds.mean == pytest.approx(5.51)
    assert found.effort["grades"].per_query.mean == 4
    assert found.derived["pairs"].total == 12 * 3 * 190
    assert found.tests["overall"].p < 0.001
    gap = found.differences["overall"]
    assert gap.value == pytest.approx(
        found.derived["pairs"].overall - found.derived["grades"].overall
    )
    assert gap.low < gap.value < gap.high
    assert list(found.effort) == ["pairs", "grades"]  # the order of the paper
    assert found.shared["pairs"].total == 12 * 3 * 3
    estimate = found.estimates["pairs"]["overall"]
    assert estimate.value == pytest.approx(found.shared["pairs"].overall)
    assert estimate.low < estimate.value < estimate.high
    assert list(written_first(found)) == ["shared_pairs", "derived_orders"]
    assert found.repeats.overall.total == 1
    assert found.alpha["grades"].low < found.alpha["grades"].value < found.alpha["grades"].high
    assert "favors top-k" in found.caution
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["derived_orders"]["pairs"]["overall"] == found.derived["pairs"].overall
    text = str(found)
    for words in ("Effort", "5.51", "13.87", "A≻B", "χ² = ", "Krippendorff's alpha", "Caution"):
        assert words in text
    symmetric = study(rows, results, rounds=2, symmetrize=True)
    for tool in ("pairs", "grades"):
        one, other = symmetric.derived[tool], found.derived[tool]
        assert one.overall == pytest.approx(other.overall)
        assert one.table[0, 0] == pytest.approx(one.table[2, 2])
    assert symmetric.tests["overall"].statistic == pytest.approx(found.tests["overall"].statistic)


@pytest.mark.parametrize(
    ("rows", "results"),
    [
        ([], {}),
        ([Record("q", "u", "lists", "a", grade=None, active=3.0)], {}),
        ([], {("q", "u", "pairs"): {"a": 1.0, "b": 0.0}}),  # one assessor
        ([], {("q", "u", "grades"): {"a": 1.0}, ("q", "v", "grades"): {"a": 1.0}}),  # one document
        ([], {("q", "u", "pairs"): {"a": 1.0}, ("q", "v", "pairs"): {"b": 1.0}}),  # none in common
        (
            [],
            {("q", w, t): {"a": 1.0, "b": 1.0} for w in "uv" for t in ("pairs", "grades")},
        ),  # ties
    ],
)
def test_small_studies_are_defined(rows, results):
    found = study(rows, results, rounds=5)
    assert json.dumps(found.to_dict(), allow_nan=False)
    assert "nan" not in str(found)
    assert all(math.isnan(a.overall) for a in found.shared.values())
    assert all(math.isnan(a.kappa) for a in found.derived.values())


def test_shared_pairs_come_before_derived_orders():
    """Two who end with the same order, and gave opposite answers to the pair that both had."""
    results = {("q", who, "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0} for who in "uv"}
    rows = [
        Record("q", "u", "pairs", "a", "b", 1), Record("q", "v", "pairs", "a", "b", -1),
        Record("q", "u", "pairs", "a", "c", 1), Record("q", "v", "pairs", "b", "c", 1),
    ]  # fmt: skip
    found = study(rows, results, rounds=5)
    assert (found.shared["pairs"].overall, found.shared["pairs"].total) == (0, 1)
    assert (found.derived["pairs"].overall, found.derived["pairs"].total) == (1, 3)
    titles = [table.title for table in found.tables()]
    assert titles.index("Agreement on shared pairs") < titles.index(
        "Agreement of derived orders, top-k labeling"
    )
    text = str(found)
    assert text.index("same answer") < text.index("by the orders that people ended with")


def test_where_nobody_shares_a_pair_a_line_says_so():
    results = {("q", who, "pairs"): {"a": 2.0, "b": 1.0, "c": 0.0} for who in "uv"}
    rows = [Record("q", "u", "pairs", "a", "b", 1), Record("q", "v", "pairs", "b", "c", 1)]
    assert "no pair of top-k labeling was answered by two" in str(study(rows, results, rounds=5))
    graded = {("q", who, "grades"): {"a": 2.0, "b": 1.0} for who in "uv"}
    assert "nobody was asked for pairs" in str(study([], graded, rounds=5))


def test_the_tables_by_hand():
    table = Table(["", "x"], [["row", "1.5"]], "T", "note")
    assert table.text() == "T\n       x\n───  ───\nrow  1.5\nnote"
    assert Agreement.none().rows()[0] == ["A≻B", "–", "–", "–"]


def test_a_difference_by_hand():
    right, wrong = np.diag([3.0, 1.0, 2.0]), np.array([[0, 0, 1], [0, 1, 0], [2, 0, 0]])
    one = {"q": Agreement(right), "r": Agreement(wrong)}
    other = {"q": Agreement(wrong), "s": Agreement(wrong)}
    assert contrast(one, other).value == pytest.approx(7 / 10 - 2 / 8)
    assert contrast(one, other, "without_ties").value == pytest.approx(5 / 8 - 0)
    kappas = [sum(m.values(), Agreement.none()).symmetrized().kappa for m in (one, other)]
    assert contrast(one, other, "kappa").value == pytest.approx(kappas[0] - kappas[1])
    assert math.isnan(contrast(one, {}).value)
    assert math.isnan(contrast({}, {}).value)
    with pytest.raises(DataError, match="figure must be one of"):
        contrast(one, other, "nerve")


def test_an_interval_over_queries_is_wider_than_the_test_believes():
    """Pairs of a query hang together: the spread of the difference is beyond a binomial's."""
    results = simulated_results(60, 30, 6, 2)
    found = study([], results, rounds=500)
    top = found.derived["pairs"]
    alone = 1.96 * math.sqrt(2 * top.overall * (1 - top.overall) / top.total)
    assert found.differences["overall"].high - found.differences["overall"].value > 2 * alone
