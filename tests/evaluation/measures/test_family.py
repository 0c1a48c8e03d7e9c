"""Every measure against its reference implementation.

With tied scores the value must be the exact mean over all orders of the tied documents.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstpage as fp
from firstpage.evaluation.measures.binary import P
from tests.evaluation.measures import reference as ref

# Runs and judgments with different queries or documents warn; `test_coverage` tests that.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

# text: value of one strict order (ranked labels, pool)
CASES: dict[str, Callable[[list[float], list[float]], float]] = {
    "DCG@3": lambda r, p: ref.dcg(r, 3),
    "DCG": lambda r, p: ref.dcg(r, 99),
    "DCG(gain=linear)@4": lambda r, p: ref.dcg(r, 4, ref.linear),
    "NDCG@1": lambda r, p: ref.ndcg(r, p, 1),
    "NDCG@3": lambda r, p: ref.ndcg(r, p, 3),
    "NDCG": lambda r, p: ref.ndcg(r, p, 99),
    "NDCG(gain=linear)@5": lambda r, p: ref.ndcg(r, p, 5, ref.linear),
    "NDCG(gain=[0, 1, 5, 6])@4": lambda r, p: ref.ndcg(
        r, p, 4, lambda x: [0, 1, 5, 6][int(x or 0)]
    ),
    "MeanNDCG": ref.mean_ndcg,
    "ERR(max=3)": lambda r, p: ref.err(r, 3, 99),
    "ERR(max=query)@2": lambda r, p: ref.err(r, max(p), 2),
    "P@1": lambda r, p: ref.hits(r, 1),
    "P@4": lambda r, p: ref.hits(r, 4) / 4,
    "P(rel=2)@3": lambda r, p: ref.hits(r, 3, 2) / 3,
    "Recall@3": lambda r, p: ref.hits(r, 3) / (ref.relevant(p) or 1),
    "Rprec": lambda r, p: ref.hits(r, ref.relevant(p)) / (ref.relevant(p) or 1),
    "AP": lambda r, p: ref.ap(r, p, 99),
    "AP@2": lambda r, p: ref.ap(r, p, 2),
    "AP(rel=2)": lambda r, p: ref.ap(r, p, 99, 2),
    "RR": lambda r, p: ref.rr(r, 99),
    "RR@2": lambda r, p: ref.rr(r, 2),
    "Success@2": lambda r, p: float(ref.hits(r, 2) > 0),
    "bpref": ref.bpref,
    "RBP(p=0.7)": lambda r, p: ref.rbp(r, 0.7),
    "RBP(p=0.7, gain=exp, max=3)": lambda r, p: (
        0.3 * sum(0.7**j * ref.gain(x) / 7 for j, x in enumerate(r))
    ),
    "RBP(p=0.6, gain=linear, max=4)@2": lambda r, p: (
        0.4 * sum(0.6**j * (x or 0) / 4 for j, x in enumerate(r[:2]))
    ),
    "RBPResidual(p=0.7)": lambda r, p: (
        1 - 0.3 * sum(0.7**j for j, x in enumerate(r) if x is not None)
    ),
    "CG@2": lambda r, p: ref.cg(r, 2),
    "nERR(max=3)@3": lambda r, p: ref.err(r, 3, 3) / (ref.err(sorted(p, reverse=True), 3, 3) or 1),
    "Q": lambda r, p: ref.q_measure(r, p, 1),
    "Q(beta=0.3)": lambda r, p: ref.q_measure(r, p, 0.3),
    "NDCGrel": ref.ndcg_at_relevant,
    "Rndcg": ref.ndcg_at_levels,
    "Hits@2": lambda r, p: ref.hits(r, 2),
    "F1@3": lambda r, p: 2 * ref.hits(r, 3) / (3 + ref.relevant(p)),
    "RelP@2": lambda r, p: ref.hits(r, 2) / (min(2, ref.relevant(p)) or 1),
    "Rprec(multiple=1.5)": lambda r, p: (
        ref.hits(r, int(1.5 * ref.relevant(p) + 0.9)) / (int(1.5 * ref.relevant(p) + 0.9) or 1)
    ),
    "binG": ref.bin_g,
    "infAP": ref.inferred_ap,
    "Accuracy": lambda r, p: ref.accuracy(r, 99),
    "Accuracy@3": lambda r, p: ref.accuracy(r, 3),
    "Unjudged@2": lambda r, p: sum(x is None for x in r[:2]) / 2,
    "SetP": lambda r, p: ref.hits(r, 99) / len(r),
    "SetSuccess": lambda r, p: float(ref.hits(r, 99) > 0),
    "PairAccuracy": lambda r, p: ref.pair_accuracy(r),
    "WKT@2": lambda r, p: ref.wkt(r, 2),
    "WKT": lambda r, p: ref.wkt(r, 99),
    "WKT(weights=[3, 0.5])@2": lambda r, p: ref.wkt(r, 2, [3, 0.5]),
    "WKT(weights=[1, 4, 2, 0, 3, 1, 1, 1, 1, 1])": lambda r, p: ref.wkt(
        r, 99, [1, 4, 2, 0, 3, 1, 1, 1, 1, 1]
    ),
    "TopK01@2": lambda r, p: ref.top_mismatch(r, 2),
    "Perm01": lambda r, p: ref.top_mismatch(r, 99),
    "RBO": lambda r, p: ref.rbo(r, p, 0.9, 400),
    "RBO(p=0.6, truncated=true)": lambda r, p: ref.rbo(r, p, 0.6, max(len(r), ref.relevant(p))),
    "RBO(p=0.6)@3": lambda r, p: ref.rbo(r, p, 0.6, 3),
}

lists = st.lists(
    st.tuples(st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0]), st.sampled_from([0.1, 0.2, 0.3, 0.5])),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("text", CASES)
@given(docs=lists)
def test_value_is_the_mean_over_all_orders_of_ties(text: str, docs) -> None:
    labels, scores = (list(x) for x in zip(*docs, strict=True))
    evaluation = fp.evaluate(scores, labels, qid=[1] * len(docs), measures=text)
    values = [CASES[text]([labels[i] for i in order], labels) for order in ref.orders(scores)]
    assert evaluation[text] == pytest.approx(fmean(values), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@given(docs=lists, k=st.integers(1, 7))
def test_ppref_is_expected_correct_over_expected_decided(weighted: bool, docs, k: int) -> None:
    labels, scores = (list(x) for x in zip(*docs, strict=True))
    text = f"{'nwppref' if weighted else 'ppref'}@{k}"
    weight = ref.discount if weighted else (lambda rank: 1.0)
    sums = [
        ref.preference_sums([labels[i] for i in order], k, weight) for order in ref.orders(scores)
    ]
    correct, decided = (fmean(column) for column in zip(*sums, strict=True))
    evaluation = fp.evaluate(scores, labels, qid=[1] * len(docs), measures=text)
    assert evaluation[text] == pytest.approx(correct / decided if decided else 0.0, abs=1e-12)


@given(docs=lists)
def test_tau_matches_scipy_tau_b(docs) -> None:
    from scipy.stats import kendalltau

    labels, scores = (list(x) for x in zip(*docs, strict=True))
    evaluation = fp.evaluate(scores, labels, qid=[1] * len(docs), measures="Tau")["Tau"]
    with np.errstate(all="ignore"):
        expected = kendalltau(scores, labels).statistic if len(docs) > 1 else np.nan
    assert evaluation == pytest.approx(0.0 if np.isnan(expected) else expected, abs=1e-12)


# --- runs with unjudged documents and judged ones that were not retrieved

documents = st.dictionaries(
    st.sampled_from([f"d{i}" for i in range(7)]),
    st.tuples(
        st.sampled_from([None, 0, 1, 2, 3]),  # label; None: unjudged
        st.sampled_from([None, 0.1, 0.2, 0.4]),  # score; None: not retrieved
    ),
    min_size=1,
)
ON_RUNS = [
    t for t in CASES if not t.startswith(("WKT", "TopK", "Perm", "Pair", "Mean", "NDCG(gain=["))
]


@pytest.mark.parametrize("text", ON_RUNS)
@given(docs=documents)
def test_runs_count_missing_and_unjudged_documents(text: str, docs) -> None:
    qrels = {d: label for d, (label, _) in docs.items() if label is not None}
    run = {d: score for d, (_, score) in docs.items() if score is not None}
    if not qrels or not run:
        return
    names = list(run)
    evaluation = fp.evaluate({"q": run}, {"q": qrels}, measures=text)
    pool = list(qrels.values())
    values = [
        CASES[text]([qrels.get(names[i]) for i in order], pool)  # type: ignore[misc]
        for order in ref.orders([run[d] for d in names])
    ]
    assert evaluation[text] == pytest.approx(fmean(values), abs=1e-12)


@pytest.mark.parametrize("text", ["PairAccuracy", "TopK01@2", "WKT@2"])
@settings(max_examples=25)  # the reference visits up to 5040 orders
@given(docs=documents)
def test_order_measures_use_judged_documents_and_rank_missing_ones_last(text: str, docs) -> None:
    qrels = {d: float(label) for d, (label, _) in docs.items() if label is not None}
    run = {d: score for d, (_, score) in docs.items() if score is not None}
    if not qrels or not run:
        return
    names = list(qrels)
    evaluation = fp.evaluate({"q": run}, {"q": qrels}, measures=text)
    values = [
        CASES[text]([qrels[names[i]] for i in order], [])
        for order in ref.orders([run.get(d, -1.0) for d in names])
    ]
    assert evaluation[text] == pytest.approx(fmean(values), abs=1e-12)


def test_own_measure_inherits_the_documentation_of_its_base() -> None:
    @dataclass(frozen=True)
    class Hits(P):
        """The number of relevant documents.

        Warnings
        --------
        Not normalized.
        """

    docstring = inspect.getdoc(Hits)
    assert docstring is not None
    titles = ["Parameters", "Attributes", "Warnings"]
    assert [docstring.index(title) for title in titles] == sorted(map(docstring.index, titles))
    assert "rel : float, optional" in docstring
    assert "cutoff : int" in docstring


@given(
    gains=st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0, 9.0]), min_size=4, max_size=4),
    docs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=8),
)
def test_gains_in_any_order_are_labels_of_these_gains(gains: list[float], docs) -> None:
    """The ideal order is that of the gains; a query with negative gains is checked by DCG alone."""
    scores, labels = map(np.array, zip(*docs, strict=True))
    qid, mapped = [1] * len(docs), np.array(gains)[labels]
    table = f"gain={gains}"
    names = ["DCG", "DCG@2"] if min(gains) < 0 else FORMS
    for name in names:
        text, _, cutoff = name.partition("@")
        measured = f"{text}({table})" + (f"@{cutoff}" if cutoff else "")
        value = fp.evaluate(scores, labels, qid=qid, measures=measured).values[0, 0]
        if min(gains) < 0:
            discount = 1 / np.log2(2 + np.arange(len(docs)))[: int(cutoff or len(docs))]
            means = [mapped[scores == s].mean() for s in sorted(set(scores), reverse=True)]
            sizes = [int((scores == s).sum()) for s in sorted(set(scores), reverse=True)]
            expected = np.repeat(means, sizes)[: len(discount)] @ discount[: len(docs)]
        else:
            linear = f"{text}(gain=linear)" + (f"@{cutoff}" if cutoff else "")
            expected = fp.evaluate(scores, mapped, qid=qid, measures=linear).values[0, 0]
        assert value == pytest.approx(expected, abs=1e-12), measured


FORMS = ["NDCG", "NDCG@2", "DCG", "DCG@2", "MeanNDCG", "NDCGrel", "Rndcg", "Q", "G", "CG@2"]
