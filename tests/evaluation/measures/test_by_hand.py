"""Values written out as arithmetic, and numbers from the papers."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import log2

import numpy as np
import pytest

import firstpage as fp

# Runs and judgments with different queries or documents warn; `test_coverage` tests that.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

LABELS = [0, 3, 1, 0]
SCORES = [4.0, 3.0, 2.0, 1.0]  # ranked as stored


def value(text: str, labels=LABELS, scores=SCORES, k=None, name="default", **settings) -> float:
    convention = fp.Convention(name, **settings)
    qid = [1] * len(labels)
    return fp.evaluate(scores, labels, qid=qid, measures=text, convention=convention, k=k)[text]


def test_dcg() -> None:
    assert value("DCG@3") == pytest.approx(0 + 7 / log2(3) + 1 / log2(4))


def test_ndcg() -> None:
    assert value("NDCG@3") == pytest.approx((7 / log2(3) + 1 / 2) / (7 + 1 / log2(3)))


def test_ndcg_of_a_linear_gain() -> None:
    assert value("NDCG(gain=linear)@3") == pytest.approx((3 / log2(3) + 1 / 2) / (3 + 1 / log2(3)))


def test_letor_does_not_discount_the_second_rank() -> None:
    actual = value("NDCG@4", name="letor")
    assert actual == pytest.approx((7 / 1 + 1 / log2(3)) / (7 + 1))


def test_letor_ndcg_of_short_lists_is_zero() -> None:
    assert value("NDCG@5", name="letor") == 0
    assert value("NDCG@5") > 0


def test_err() -> None:
    # stop probabilities: 0, 7/8, 1/8
    assert value("ERR") == pytest.approx(7 / 8 / 2 + (1 / 8) * (1 / 8) / 3)


def test_err_depends_on_the_scale() -> None:
    assert value("ERR(max=4)") == pytest.approx(7 / 16 / 2 + (9 / 16) * (1 / 16) / 3)


def test_ap_rr_p() -> None:
    assert value("AP") == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value("RR") == pytest.approx(1 / 2)
    assert value("P@10") == pytest.approx(2 / 10)
    assert value("Recall@2") == pytest.approx(1 / 2)


def test_wkt() -> None:
    # true rank 1: one worse document above; true rank 2: one as well (the 0 on top)
    assert value("WKT@2") == pytest.approx(7 * 1 + 1 / log2(3) * 1)
    assert value("WKT(norm=true)@2") == pytest.approx(1.0)


def test_ppref_counts_pairs_that_the_top_ranks_decide() -> None:
    # the 0 on top against 3 and 1: both incorrect; against the other 0 there is no preference
    assert value("ppref@1") == 0
    # pairs decided by the first two: 0>3 no, 0>1 no, 3>1 yes, 3>0 yes
    assert value("ppref@2") == pytest.approx(2 / 4)
    assert value("nwppref@2") == pytest.approx(2 / log2(3) / (2 + 2 / log2(3)))


def test_top_k_loss() -> None:
    assert value("TopK01@1") == 1
    assert value("TopK01@1", scores=[1, 4, 3, 2]) == 0
    assert value("Perm01", scores=[1, 4, 3, 2]) == 0


def test_kappa_err_of_the_ideal_order_matches_the_paper() -> None:
    labels = [*range(10, 0, -1), *[0] * 40]
    scores = np.arange(50, 0, -1)
    assert value("kERR", labels, scores) == pytest.approx(0.99933, abs=5e-6)
    assert value("kNDCG@10", labels, scores) == pytest.approx(1.0)


def test_constant_scores_gain_nothing_from_the_storage_order() -> None:
    """Stored in true order, a stable sort of ties would look perfect."""
    labels = np.array([*range(10, 0, -1), *[0] * 40])
    constant = np.zeros(50)
    assert value("kNDCG@10", labels, constant) == pytest.approx(0.1177, abs=5e-5)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(labels)
        again = value("kNDCG@10", shuffled, constant)
        assert again == pytest.approx(value("kNDCG@10", labels, constant), abs=1e-12)
    assert value("kNDCG@10", labels, constant, ties="file") == pytest.approx(1.0)  # the trap
    assert value("kNDCG@10", labels, constant, ties="worst") < 0.1


@pytest.mark.parametrize("n", [1000, 2000])
def test_full_order_labels_do_not_overflow(n: int) -> None:
    """NDCG@10 of labels 0 .. n-1 with gains 2^label, against exact rational arithmetic."""
    rng = np.random.default_rng(n)
    labels = np.arange(n)[::-1]
    scores = -np.arange(n) + rng.normal(scale=20, size=n)
    order = np.argsort(-scores)
    weights = [Fraction(1 / log2(1 + j)) for j in range(1, 11)]
    dcg = sum(w * (2 ** int(labels[d]) - 1) for w, d in zip(weights, order, strict=False))
    ideal = sum(w * (2 ** int(label) - 1) for w, label in zip(weights, labels, strict=False))
    assert value("kNDCG@10", labels, scores) == pytest.approx(float(dcg / ideal), rel=1e-13)
    with localcontext() as exact:
        exact.prec = 50
        continue_probability, expected = Decimal(1), Decimal(0)
        for rank, d in enumerate(order, 1):
            stop = Decimal(2 ** int(labels[d]) - 1) / Decimal(2 ** (n - 1))
            expected += continue_probability * stop / rank
            continue_probability *= 1 - stop
    assert value("kERR", labels, scores) == pytest.approx(float(expected), rel=1e-12)


def test_kappa_measures_take_their_depth_from_the_labels_or_from_k() -> None:
    order = [5, 4, 3, 2, 1, 0]  # a full order
    scores = [1, 2, 6, 5, 4, 3]
    as_top_3 = [3, 2, 1, 0, 0, 0]
    for name in ("kNDCG", "kERR"):
        assert value(f"{name}(k=3)@3", order, scores) == pytest.approx(
            value(f"{name}@3", as_top_3, scores)
        )
        assert value(f"{name}(k=2)", as_top_3, scores) == pytest.approx(
            value(name, [2, 1, 0, 0, 0, 0], scores)
        )


def test_kappa_measures_use_the_global_k_in_short_queries() -> None:
    # two documents under k = 10: labels 10 and 9
    assert value("kERR", [10, 9], [2, 1]) == pytest.approx(
        1023 / 1024 + (1 / 1024) * (511 / 1024) / 2
    )
    assert value("kERR(k=10)", [1, 0], [2, 1]) == pytest.approx(value("kERR", [10, 9], [2, 1]))


def test_kappa_measures_of_grades_raise_an_error_with_advice() -> None:
    with pytest.raises(fp.MeasureError, match=r"several have the label 2.*--k 10.*NDCG@10"):
        value("kNDCG@10", [2, 2, 1, 0])
    with pytest.raises(fp.MeasureError, match="strict order of the top documents"):
        value("kNDCG(k=4)", [3, 2, 1, 0, 0], [1, 2, 3, 4, 5])  # orders the top 3 only
    assert 0 <= value("kNDCG@10", [2, 2, 1, 0], k=3) <= 1


def test_rules_for_ties() -> None:
    labels, scores = [1, 0, 0], [0.5, 0.5, 0.5]
    assert value("RR", labels, scores) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert value("RR", labels, scores, ties="file") == 1
    assert value("RR", labels, scores, ties="worst") == pytest.approx(1 / 3)
    seeds = {value("RR", labels, scores, ties="shuffle", seed=s) for s in range(40)}
    assert seeds == {1, 1 / 2, 1 / 3}
    same = [value("RR", labels, scores, ties="shuffle", seed=7) for _ in range(3)]
    assert len(set(same)) == 1


def test_ties_by_document_id_are_in_descending_byte_order() -> None:
    run = {"q": {"d2": 0.5, "d10": 0.5, "D9": 0.5}}
    for doc, expected in (("d2", 1), ("d10", 1 / 2), ("D9", 1 / 3)):
        evaluation = fp.evaluate(run, {"q": {doc: 1}}, measures="RR", convention="trec")
        assert evaluation["RR"] == pytest.approx(expected)


def test_trec_compares_scores_as_float32_and_default_does_not() -> None:
    run = {"q": {"a": 1.00000002, "b": 1.00000001}}
    qrels = {"q": {"a": 1, "b": 0}}
    assert fp.evaluate(run, qrels, measures="RR", convention="trec")["RR"] == 1 / 2
    assert fp.evaluate(run, qrels, measures="RR")["RR"] == 1


def test_depth_truncates_the_run() -> None:
    run = {"q": {f"d{i}": 10.0 - i for i in range(5)}}
    qrels = {"q": {"d3": 1, "d0": 0}}
    assert fp.evaluate(run, qrels, measures="RR", convention=fp.Convention(depth=3))["RR"] == 0
    assert fp.evaluate(run, qrels, measures="RR", convention=fp.Convention(depth=4))["RR"] == 1 / 4
    assert (
        fp.evaluate(run, qrels, measures="PairAccuracy", convention=fp.Convention(depth=2))[
            "PairAccuracy"
        ]
        == 0
    )


def test_queries_setting_selects_the_measured_queries() -> None:
    run = {"1": {"a": 1.0}, "9": {"a": 1.0}}
    qrels = {"1": {"a": 1}, "2": {"a": 1}}
    judged = fp.evaluate(run, qrels, measures="RR")
    assert list(judged.queries) == ["1", "2"]
    assert judged["RR"] == 1 / 2
    in_run = fp.evaluate(run, qrels, measures="RR", convention=fp.Convention(queries="run"))
    assert list(in_run.queries) == ["1"]
    assert in_run["RR"] == 1


def test_negative_and_fractional_grades() -> None:
    labels, scores = [-2, 0.5, 1.5, 0], [4, 3, 2, 1]
    actual = value("NDCG", labels, scores)
    g = {0.5: 2**0.5 - 1, 1.5: 2**1.5 - 1}
    expected = g[0.5] / log2(3) + g[1.5] / 2
    assert actual == pytest.approx(expected / (g[1.5] + g[0.5] / log2(3)))
    assert value("AP", labels, scores) == pytest.approx(1 / 3)  # only 1.5 reaches rel = 1
    assert value("AP(rel=0.5)", labels, scores) == pytest.approx((1 / 2 + 2 / 3) / 2)
    # a negative grade is judged by default, and unjudged for trec_eval
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": -1, "b": 1, "c": 0}}
    assert fp.evaluate(run, qrels, measures="bpref")["bpref"] == 0
    assert fp.evaluate(run, qrels, measures="bpref", convention="trec")["bpref"] == 1


def test_queries_without_relevant_documents_have_value_zero() -> None:
    evaluation = fp.evaluate([1, 2, 2, 1], [0, 0, 0, 1], qid=[1, 1, 2, 2], measures=["NDCG", "AP"])
    assert evaluation.per_query("NDCG").tolist() == pytest.approx([0, 1 / log2(3)])
    assert evaluation["AP"] == pytest.approx(1 / 4)


def test_all_equal_positive_labels_are_perfect() -> None:
    assert value("NDCG@2", [2, 2, 2], [1, 2, 3]) == pytest.approx(1.0)


def test_infinite_scores_rank_and_nan_scores_raise_an_error() -> None:
    assert value("RR", [0, 1], [-np.inf, np.inf]) == 1
    with pytest.raises(fp.DataError, match=r"document 2 in query '7'.*row 2.*NaN"):
        fp.evaluate([1.0, np.nan], [0, 1], qid=[7, 7])
