"""Values written out as arithmetic, and the numbers that the papers and SPEC give."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import log2

import numpy as np
import pytest

import firstpage as fp

# Runs and judgments that lack something of each other; `test_coverage` is about what is said then.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.errors.FirstpageWarning")

ONE = [1, 1, 1, 1]  # qid of a list of four
LABELS = [0, 3, 1, 0]
SCORES = [4.0, 3.0, 2.0, 1.0]  # ranked as stored


def value(text: str, labels=LABELS, scores=SCORES, **options) -> float:
    return fp.evaluate(scores, labels, qid=[1] * len(labels), measures=text, **options)[text]


def test_dcg() -> None:
    assert value("DCG@3") == pytest.approx(0 + 7 / log2(3) + 1 / log2(4))


def test_ndcg() -> None:
    assert value("NDCG@3") == pytest.approx((7 / log2(3) + 1 / 2) / (7 + 1 / log2(3)))


def test_ndcg_of_a_linear_gain() -> None:
    assert value("NDCG(gain=linear)@3") == pytest.approx((3 / log2(3) + 1 / 2) / (3 + 1 / log2(3)))


def test_letor_does_not_discount_the_second_place() -> None:
    got = value("NDCG@4", convention="letor")
    assert got == pytest.approx((7 / 1 + 1 / log2(3)) / (7 + 1))


def test_letor_gives_short_lists_nothing() -> None:
    assert value("NDCG@5", convention="letor") == 0
    assert value("NDCG@5") > 0


def test_err() -> None:
    # stops: 0, 7/8, 1/8
    assert value("ERR") == pytest.approx(7 / 8 / 2 + (1 / 8) * (1 / 8) / 3)


def test_err_depends_on_the_scale() -> None:
    assert value("ERR(max=4)") == pytest.approx(7 / 16 / 2 + (9 / 16) * (1 / 16) / 3)


def test_ap_rr_p() -> None:
    assert value("AP") == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value("RR") == pytest.approx(1 / 2)
    assert value("P@10") == pytest.approx(2 / 10)
    assert value("Recall@2") == pytest.approx(1 / 2)


def test_wkt() -> None:
    # first place of the truth: one worse above; second: one worse above (the 0 on top)
    assert value("WKT@2") == pytest.approx(7 * 1 + 1 / log2(3) * 1)
    assert value("WKT(norm=true)@2") == pytest.approx(1.0)


def test_ppref_counts_pairs_that_the_first_place_decides() -> None:
    # the 0 on top against 3 and 1 (wrong twice; the other 0 is no preference)
    assert value("ppref@1") == 0
    # pairs decided by the first two: 0>3 no, 0>1 no, 3>1 yes, 3>0 yes
    assert value("ppref@2") == pytest.approx(2 / 4)
    assert value("nwppref@2") == pytest.approx(2 / log2(3) / (2 + 2 / log2(3)))


def test_top_k_loss() -> None:
    assert value("TopK01@1") == 1
    assert value("TopK01@1", scores=[1, 4, 3, 2]) == 0
    assert value("Perm01", scores=[1, 4, 3, 2]) == 0


def test_kappa_err_of_the_ideal_order_is_the_papers_bound() -> None:
    labels = [*range(10, 0, -1), *[0] * 40]
    scores = np.arange(50, 0, -1)
    assert value("kERR", labels, scores) == pytest.approx(0.99933, abs=5e-6)
    assert value("kNDCG@10", labels, scores) == pytest.approx(1.0)


def test_the_leak_trap_a_constant_scorer_gains_nothing_from_storage_order() -> None:
    """SPEC 1.3: stored in true order, a stable sort of ties would look perfect."""
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
    got = sum(w * (2 ** int(labels[d]) - 1) for w, d in zip(weights, order, strict=False))
    best = sum(w * (2 ** int(label) - 1) for w, label in zip(weights, labels, strict=False))
    assert value("kNDCG@10", labels, scores) == pytest.approx(float(got / best), rel=1e-13)
    with localcontext() as exact:
        exact.prec = 50
        reach, want = Decimal(1), Decimal(0)
        for place, d in enumerate(order, 1):
            stop = Decimal(2 ** int(labels[d]) - 1) / Decimal(2 ** (n - 1))
            want += reach * stop / place
            reach *= 1 - stop
    assert value("kERR", labels, scores) == pytest.approx(float(want), rel=1e-12)


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


def test_kappa_keeps_the_global_k_in_short_queries() -> None:
    # two documents under k = 10: labels 10 and 9
    assert value("kERR", [10, 9], [2, 1]) == pytest.approx(
        1023 / 1024 + (1 / 1024) * (511 / 1024) / 2
    )
    assert value("kERR(k=10)", [1, 0], [2, 1]) == pytest.approx(value("kERR", [10, 9], [2, 1]))


def test_kappa_on_grades_says_what_to_do() -> None:
    with pytest.raises(fp.MeasureError, match=r"several have the label 2.*--k 10.*NDCG@10"):
        value("kNDCG@10", [2, 2, 1, 0])
    with pytest.raises(fp.MeasureError, match="strict order of the top documents"):
        value("kNDCG(k=4)", [3, 2, 1, 0, 0], [1, 2, 3, 4, 5])  # knows the top 3 only
    assert 0 <= value("kNDCG@10", [2, 2, 1, 0], k=3) <= 1


def test_ties_rules() -> None:
    labels, scores = [1, 0, 0], [0.5, 0.5, 0.5]
    assert value("RR", labels, scores) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert value("RR", labels, scores, ties="file") == 1
    assert value("RR", labels, scores, ties="worst") == pytest.approx(1 / 3)
    seeds = {value("RR", labels, scores, ties="shuffle", seed=s) for s in range(40)}
    assert seeds == {1, 1 / 2, 1 / 3}
    same = [value("RR", labels, scores, ties="shuffle", seed=7) for _ in range(3)]
    assert len(set(same)) == 1


def test_ties_by_document_id_go_downward_by_bytes() -> None:
    run = {"q": {"d2": 0.5, "d10": 0.5, "D9": 0.5}}
    for doc, want in (("d2", 1), ("d10", 1 / 2), ("D9", 1 / 3)):
        found = fp.evaluate(run, {"q": {doc: 1}}, measures="RR", convention="trec")
        assert found["RR"] == pytest.approx(want)


def test_trec_compares_scores_as_float32_and_default_does_not() -> None:
    run = {"q": {"a": 1.00000002, "b": 1.00000001}}
    qrels = {"q": {"a": 1, "b": 0}}
    assert fp.evaluate(run, qrels, measures="RR", convention="trec")["RR"] == 1 / 2
    assert fp.evaluate(run, qrels, measures="RR")["RR"] == 1


def test_depth_cuts_the_run() -> None:
    run = {"q": {f"d{i}": 10.0 - i for i in range(5)}}
    qrels = {"q": {"d3": 1, "d0": 0}}
    assert fp.evaluate(run, qrels, measures="RR", depth=3)["RR"] == 0
    assert fp.evaluate(run, qrels, measures="RR", depth=4)["RR"] == 1 / 4
    assert fp.evaluate(run, qrels, measures="PairAccuracy", depth=2)["PairAccuracy"] == 0


def test_which_queries_count() -> None:
    run = {"1": {"a": 1.0}, "9": {"a": 1.0}}
    qrels = {"1": {"a": 1}, "2": {"a": 1}}
    judged = fp.evaluate(run, qrels, measures="RR")
    assert list(judged.queries) == ["1", "2"]
    assert judged["RR"] == 1 / 2
    in_run = fp.evaluate(run, qrels, measures="RR", queries="run")
    assert list(in_run.queries) == ["1"]
    assert in_run["RR"] == 1


def test_negative_and_fractional_grades() -> None:
    labels, scores = [-2, 0.5, 1.5, 0], [4, 3, 2, 1]
    got = value("NDCG", labels, scores)
    g = {0.5: 2**0.5 - 1, 1.5: 2**1.5 - 1}
    want = g[0.5] / log2(3) + g[1.5] / 2
    assert got == pytest.approx(want / (g[1.5] + g[0.5] / log2(3)))
    assert value("AP", labels, scores) == pytest.approx(1 / 3)  # only 1.5 reaches rel = 1
    assert value("AP(rel=0.5)", labels, scores) == pytest.approx((1 / 2 + 2 / 3) / 2)
    # a negative grade is judged here, and unjudged to trec_eval
    run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": -1, "b": 1, "c": 0}}
    assert fp.evaluate(run, qrels, measures="bpref")["bpref"] == 0
    assert fp.evaluate(run, qrels, measures="bpref", convention="trec")["bpref"] == 1


def test_queries_without_relevant_documents_count_nothing() -> None:
    found = fp.evaluate([1, 2, 2, 1], [0, 0, 0, 1], qid=[1, 1, 2, 2], measures=["NDCG", "AP"])
    assert found.per_query("NDCG").tolist() == pytest.approx([0, 1 / log2(3)])
    assert found["AP"] == pytest.approx(1 / 4)


def test_all_equal_positive_labels_are_perfect() -> None:
    assert value("NDCG@2", [2, 2, 2], [1, 2, 3]) == pytest.approx(1.0)


def test_infinite_scores_rank_and_nan_scores_are_refused() -> None:
    assert value("RR", [0, 1], [-np.inf, np.inf]) == 1
    with pytest.raises(fp.DataError, match=r"document 2 in query '7'.*row 2.*NaN"):
        fp.evaluate([1.0, np.nan], [0, 1], qid=[7, 7])
