"""Agreement of two assessors: by hand, by the paper's numbers, by scikit-learn, by invariances."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency
from sklearn.metrics import cohen_kappa_score

from firstpage.core.errors import DataError
from firstpage.labeling.statistics.agreement import (
    Agreement,
    by_assessor,
    by_query,
    caution,
    chi_squared,
    compare_methods,
    pair_overlaps,
    result_overlaps,
    total,
)
from firstpage.labeling.statistics.records import Record
from firstpage.labeling.statistics.relations import common_documents, relations, top_labels

# Niu et al. 2012, Tables 2 and 3, and the row weights that follow from the totals.
TOP = np.array([[0.6749, 0.2766, 0.0485], [0.1138, 0.8198, 0.0664], [0.1047, 0.3779, 0.5174]])
GRADED = np.array([[0.6272, 0.2913, 0.0815], [0.2825, 0.5232, 0.1944], [0.1534, 0.3826, 0.4640]])
TOP_ROWS = np.array([0.2225, 0.6367, 0.1407])
PAIRS = 4 * 1225  # of four queries with 50 documents

labeled = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=0, max_size=12)


def two_labelings(values):
    docs = [f"d{i}" for i in range(len(values))]
    return ({d: v[i] for d, v in zip(docs, values, strict=True)} for i in (0, 1))


def row_weights(table, overall, without):
    """Return the row weights with which a table gives the two printed figures."""
    ends = [
        table[0, 0] - without * (table[0, 0] + table[0, 2]),
        0.0,
        table[2, 2] - without * (table[2, 0] + table[2, 2]),
    ]
    return np.linalg.solve(np.array([np.diag(table), ends, [1, 1, 1]]), [overall, 0, 1])


def test_relations_by_hand():
    labels = top_labels(["b", "c"], ["a", "b", "c", "d"], k=2)
    assert labels == {"a": 0, "b": 2, "c": 1, "d": 0}
    # (a,b) (a,c) (a,d) (b,c) (b,d) (c,d)
    assert relations(labels, ["a", "b", "c", "d"]).tolist() == [-1, -1, 0, 1, 1, 1]
    assert top_labels(["b"], ["a", "b"], k=10) == {"a": 0, "b": 10}  # the global k is kept
    assert common_documents(labels, {"d": 1, "a": 1, "x": 1}) == ["a", "d"]
    assert common_documents() == []


def test_invalid_tops_and_labels_raise_an_error():
    with pytest.raises(DataError, match="a top 1 cannot have 2"):
        top_labels(["a", "b"], ["a", "b"], k=1)
    with pytest.raises(DataError, match="not among them"):
        top_labels(["x"], ["a"])
    with pytest.raises(DataError, match="twice"):
        top_labels(["a", "a"], ["a", "b"])
    with pytest.raises(DataError, match="'b' has no label"):
        relations({"a": 1}, ["a", "b"])
    with pytest.raises(DataError, match="3 x 3"):
        Agreement(np.ones((2, 2)))


def test_a_small_table_by_hand():
    first = {"a": 2, "b": 1, "c": 0}  # ab +, ac +, bc +
    second = {"a": 1, "b": 1, "c": 2}  # ab 0, ac -, bc -
    agreement = Agreement.from_labels(first, second)
    assert agreement.counts.tolist() == [[0, 1, 2], [0, 0, 0], [0, 0, 0]]
    assert (agreement.total, agreement.overall, agreement.without_ties) == (3, 0, 0)
    assert agreement.ties == (0, 1 / 3)
    assert agreement.chance == 0
    assert agreement.kappa == 0
    assert agreement.table[0].tolist() == [0, 1 / 3, 2 / 3]
    assert np.isnan(agreement.table[1:]).all()
    assert agreement.rows()[1] == ["A∼B", "–", "–", "–"]
    # the reverse order of documents flips every preference
    assert Agreement.from_labels(first, second, ["c", "b", "a"]).counts[2].tolist() == [2, 1, 0]


def test_kappa_by_hand():
    agreement = Agreement(np.array([[20, 5, 0], [10, 15, 0], [0, 0, 0]]))  # Cohen's p0 .7, pe .5
    assert agreement.overall == pytest.approx(0.7)
    assert agreement.chance == pytest.approx(0.5)
    assert agreement.kappa == pytest.approx(0.4)


def test_table_2_of_the_paper():
    agreement = Agreement(TOP_ROWS[:, None] * TOP)
    assert agreement.overall == pytest.approx(0.745, abs=2e-4)
    assert agreement.without_ties == pytest.approx(0.897, abs=5e-4)
    assert agreement.ties == pytest.approx((780 / 1225, 780 / 1225), abs=2e-4)
    assert agreement.table == pytest.approx(TOP, abs=2e-4)


def test_forced_ties_of_the_top_ten_of_fifty():
    docs = [f"d{i:02}" for i in range(50)]
    same = Agreement.from_labels(*(top_labels(docs[:10], docs),) * 2)
    assert same.ties[0] == pytest.approx(0.6367, abs=5e-5)
    assert same.overall == 1 == same.kappa
    # the agreement expected by chance, with documents in random order: about .47
    assert same.symmetrized().chance == pytest.approx(0.471, abs=1e-3)
    assert same.chance > 0.49  # the first ten names are the best ten
    assert "63.7% of pairs" in caution(same)
    assert "0.471" in caution(same)
    assert "(graded: 0.471)" in caution(same, same)


def test_chi_squared_tests_of_the_paper():
    assert chi_squared(
        0.745 * PAIRS, 0.255 * PAIRS, 0.547 * PAIRS, 0.453 * PAIRS
    ).statistic == pytest.approx(420.0, abs=0.05)
    top = Agreement(PAIRS * row_weights(TOP, 0.745, 0.897)[:, None] * TOP)
    graded = Agreement(PAIRS * row_weights(GRADED, 0.547, 0.831)[:, None] * GRADED)
    tests = compare_methods(top, graded)
    assert tests["overall"].statistic == pytest.approx(420.0, abs=0.1)
    assert tests["without_ties"].statistic == pytest.approx(28.0, abs=0.05)
    assert max(test.p for test in tests.values()) < 0.001
    assert str(tests["overall"]).endswith("df = 1, p < .001")


@given(st.lists(st.integers(1, 500), min_size=4, max_size=4))
def test_chi_squared_matches_scipy(cells):
    test = chi_squared(*cells)
    expected = chi2_contingency(np.reshape(cells, (2, 2)), correction=False)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)


def test_chi_squared_of_degenerate_tables():
    assert math.isnan(chi_squared(0, 0, 1, 1).p)
    assert str(chi_squared(1, 0, 1, 0)).startswith("no test")
    assert chi_squared(1, 0, 1, 0).to_dict() == {"statistic": None, "p": None, "df": 1}
    assert "p = 1.000" in str(chi_squared(1, 1, 1, 1))


@given(labeled)
def test_kappas_match_scikit_learn(values):
    first, second = two_labelings(values)
    agreement = Agreement.from_labels(first, second, list(first))
    a, b = relations(first, list(first)), relations(second, list(first))
    if not len(a) or (len(set(a)) == 1 and set(a) == set(b)):
        assert math.isnan(agreement.kappa)
        return
    for value, weights in ((agreement.kappa, None), (agreement.weighted_kappa, "linear")):
        expected = cohen_kappa_score(a, b, labels=[-1, 0, 1], weights=weights)
        assert value == pytest.approx(expected, abs=1e-12)


@given(labeled, st.randoms())
def test_agreement_is_invariant_to_order_and_names(values, random):
    first, second = two_labelings(values)
    agreement = Agreement.from_labels(first, second)
    assert agreement.total == len(values) * (len(values) - 1) / 2
    transposed = Agreement.from_labels(second, first)
    assert (transposed.counts == agreement.counts.T).all()
    docs = list(first)
    random.shuffle(docs)
    statistics = ("total", "overall", "without_ties")
    expected = [getattr(agreement, name) for name in statistics]
    for other in (transposed, agreement.symmetrized(), Agreement.from_labels(first, second, docs)):
        assert [getattr(other, name) for name in statistics] == pytest.approx(expected, nan_ok=True)
    # renamed documents are the same ones in another order
    a, b = ({f"x{docs.index(d)}": v for d, v in labels.items()} for labels in (first, second))
    assert Agreement.from_labels(a, b).symmetrized().counts == pytest.approx(
        agreement.symmetrized().counts
    )


def test_the_symmetrized_table_by_hand():
    table = Agreement(np.array([[4, 0, 8], [0, 0, 4], [0, 0, 0]])).symmetrized()
    assert table.counts.tolist() == [[2, 1, 4], [1, 0, 1], [4, 1, 2]]


@pytest.mark.parametrize("labels", [{}, {"a": 1}, {"a": 1, "b": 1, "c": 1}])
def test_degenerate_labels_are_defined(labels):
    agreement = Agreement.from_labels(labels, labels)
    assert math.isnan(agreement.kappa)
    assert math.isnan(agreement.without_ties)
    assert math.isnan(agreement.overall) == (len(labels) < 2)
    assert agreement.to_dict()["kappa"] is None
    assert agreement.symmetrized().total == agreement.total


RESULTS = {
    ("q", "u", "pairs"): {"a": 2, "b": 1, "c": 0},
    ("q", "v", "pairs"): {"a": 1, "b": 2, "c": 0},
    ("q", "w", "pairs"): {"a": 2, "b": 1, "c": 0},
    ("q", "u", "grades"): {"a": 2, "b": 1, "c": 0},
    ("r", "u", "pairs"): {"a": 1, "b": 0},
    ("r", "w", "pairs"): {"a": 0, "b": 1},
    ("s", "u", "pairs"): {"a": 0, "b": 1},
}


def test_overlaps_of_results():
    overlaps = result_overlaps(RESULTS, "pairs")
    assert [(o.query, o.first, o.second) for o in overlaps] == [
        ("q", "u", "v"),
        ("q", "u", "w"),
        ("q", "v", "w"),
        ("r", "u", "w"),
    ]
    assert total(overlaps).total == 3 * 3 + 1
    assert total(overlaps).agreed == 2 + 3 + 2 + 0
    assert by_query(overlaps)["r"].overall == 0
    people = by_assessor(overlaps)
    assert people["u"]["w"].overall == 3 / 4
    assert people["w"]["u"].counts.tolist() == people["u"]["w"].counts.T.tolist()
    assert total(result_overlaps(RESULTS, "grades")).total == 0  # no overlap
    assert len(result_overlaps(RESULTS)) == 4  # tools are never mixed


def test_overlaps_of_answers():
    rows = [
        Record("q", "u", "pairs", "a", "b", 1),
        Record("q", "v", "pairs", "b", "a", -1),  # the same answer with swapped sides
        Record("q", "w", "pairs", "b", "a", 1),
        Record("q", "w", "pairs", "b", "a", 0),  # a later answer
        Record("q", "v", "pairs", "a", "b", -1, kind="repeat"),
        Record("r", "v", "pairs", "a", "b", 1),
        Record("q", "v", "grades", "a", grade=1),
    ]
    table = total(pair_overlaps(rows))
    assert table.counts.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0]]
    assert total([]).total == 0


@given(
    st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)), min_size=1, max_size=4),
    st.randoms(),
)
def test_agreement_is_invariant_to_assessor_names(people, random):
    names = [f"u{i}" for i in range(len(people))]
    results = {("q", name, "pairs"): labels for name, labels in zip(names, people, strict=True)}
    random.shuffle(names)
    renamed = {("q", name, "pairs"): labels for name, labels in zip(names, people, strict=True)}
    first, second = (total(result_overlaps(r, "pairs")) for r in (results, renamed))
    assert first.symmetrized().counts == pytest.approx(second.symmetrized().counts)
    n_pairs = sum(
        len(set(a) & set(b)) * (len(set(a) & set(b)) - 1) / 2 for a, b in combinations(people, 2)
    )
    assert first.total == n_pairs
