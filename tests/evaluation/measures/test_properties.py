"""Bounds, invariances and extreme inputs of all measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp
from firstpage.evaluation.measures.registry import measure_classes

TEXTS = [
    "NDCG@5", "NDCG", "NDCG(gain=linear)@3", "MeanNDCG", "ERR", "ERR@2", "AP", "AP@3", "P@5",
    "Recall@4", "RR", "Rprec", "Success@2", "bpref", "Judged@5", "RBP", "SetP", "SetR", "SetF", "SetSuccess",
    "ppref@3", "nwppref", "PairAccuracy", "RBO", "TopK01@2", "Perm01", "infAP", "IPrec@0.2", "SetAP",
    "NDCGrel", "SetRelP", "F1@3", "nERR@3", "AP11", "Unjudged@3", "Q", "RelP@3", "Accuracy@3",
    "Rndcg", "RBPResidual", "G", "binG", "INST", "INSQ", "BPM", "SDCG@3", "NERR8@3", "NERR9@3",
    "NERR10", "NERR11",
]  # fmt: skip
COUNTS = ["Hits@3", "NumQ", "NumRet", "NumRel", "NumRelRet", "NumNonrelRet", "SetUtility", "CG@3"]
ALL_TEXTS = [*TEXTS, *COUNTS, "Tau", "WKT@3", "WKT(norm=true)", "DCG@3"]
OF_SUBTOPICS = {m.__name__ for m in measure_classes() if m.of_subtopics}
LOGARITHMS = {"GMAP", "GMbpref"}  # per query: tests/evaluation/measures/test_peers.py

collections = st.lists(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-3, 3)),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=5,
)


def flat(lists):
    labels = np.array([y for docs in lists for y, _ in docs], float)
    scores = np.array([s for docs in lists for _, s in docs], float)
    qid = np.repeat(np.arange(len(lists)), [len(docs) for docs in lists])
    return scores, labels, qid


def test_every_measure_is_tested_here() -> None:
    named = {str(fp.measure(t)).split("@")[0].split("(")[0] for t in ALL_TEXTS}
    others = {"kNDCG", "kERR"} | OF_SUBTOPICS | LOGARITHMS
    assert named | others == {m.__name__ for m in measure_classes()}


def test_the_ranges_are_those_of_the_values() -> None:
    ranges = {text: fp.measure(text).value_range for text in ALL_TEXTS}
    assert {text for text, limits in ranges.items() if limits == (0.0, 1.0)} == set(TEXTS)
    assert {text for text, limits in ranges.items() if limits == (-1.0, 1.0)} == {"Tau"}


@given(lists=collections)
def test_values_lie_between_0_and_1(lists) -> None:
    scores, labels, qid = flat(lists)
    evaluation = fp.evaluate(scores, labels, qid=qid, measures=TEXTS)
    assert (evaluation.values >= -1e-12).all()
    assert (evaluation.values <= 1 + 1e-12).all()


@given(lists=collections, scale=st.sampled_from([1e-6, 3.0, 1e9]), shift=st.integers(-5, 5))
def test_only_the_order_of_scores_matters(lists, scale: float, shift: int) -> None:
    scores, labels, qid = flat(lists)
    a = fp.evaluate(scores, labels, qid=qid, measures=ALL_TEXTS)
    b = fp.evaluate(scale * scores + shift * scale, labels, qid=qid, measures=ALL_TEXTS)
    assert np.array_equal(a.values, b.values)


@given(lists=collections, seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(lists, seed: int) -> None:
    """Neither within queries, nor if the rows of queries are interleaved."""
    scores, labels, qid = flat(lists)
    order = np.random.default_rng(seed).permutation(len(qid))
    a = fp.evaluate(scores, labels, qid=qid, measures=ALL_TEXTS)
    b = fp.evaluate(scores[order], labels[order], qid=qid[order], measures=ALL_TEXTS)
    position = [list(b.queries).index(q) for q in a.queries]
    assert a.values == pytest.approx(b.values[:, position], abs=1e-12)


@given(lists=collections)
def test_ranking_by_labels_is_ideal(lists) -> None:
    _, labels, qid = flat(lists)
    evaluation = fp.evaluate(labels, labels, qid=qid, measures=["NDCG@3", "NDCG", "AP", "RBO"])
    has_relevant = np.array([max(y for y, _ in docs) > 0 for docs in lists])
    assert evaluation.values[:, has_relevant] == pytest.approx(1.0)
    assert not evaluation.values[:, ~has_relevant].any()
    losses = fp.evaluate(labels, labels, qid=qid, measures=["WKT@4", "TopK01@3", "Perm01"])
    unequal = losses.values[:, [len({y for y, _ in d}) == len(d) for d in lists]]
    assert not unequal.any()


@given(lists=collections, k=st.integers(1, 6))
def test_bound_of_lan_et_al_holds_in_expectation(lists, k: int) -> None:
    """1 - NDCG@k <= WKT@k / N_k (Lan et al. 2013, theorem 1), also with ties here."""
    scores, labels, qid = flat(lists)
    texts = [f"NDCG@{k}", f"WKT(norm=true)@{k}"]
    evaluation = fp.evaluate(scores, labels, qid=qid, measures=texts)
    has_relevant = np.array([max(y for y, _ in docs) > 0 for docs in lists])
    ndcg, wkt = evaluation.values[:, has_relevant]
    assert (1 - ndcg <= wkt + 1e-12).all()


@given(lists=collections)
def test_dictionaries_give_the_same_values_as_arrays(lists) -> None:
    scores, labels, qid = flat(lists)
    names = [f"d{i}" for i in range(len(qid))]
    qrels: dict[str, dict[str, float]] = {}
    run: dict[str, dict[str, float]] = {}
    for q, d, y, s in zip(qid.tolist(), names, labels.tolist(), scores.tolist(), strict=True):
        qrels.setdefault(str(q), {})[d] = y
        run.setdefault(str(q), {})[d] = s
    a = fp.evaluate(scores, labels, qid=qid, measures=ALL_TEXTS)
    b = fp.evaluate(run, qrels, measures=ALL_TEXTS)
    assert a.values == pytest.approx(b.values, abs=1e-12)


@pytest.mark.parametrize("text", [*ALL_TEXTS, "kNDCG@3", "kERR"])
def test_values_of_extreme_lists_are_finite(text: str) -> None:
    """One document, no positive label, a cut-off past the list, very large scores."""
    single = fp.evaluate([1e308], [1], qid=[1], measures=text)
    assert np.isfinite(single.values).all()
    irrelevant = fp.evaluate([1, -1e308, np.inf], [0, 0, 0], qid=[1, 1, 1], measures=text)
    assert np.isfinite(irrelevant.values).all()
    with_cut = text.split("@")[0] + "@1000"
    if "@" in text and not text.startswith("IPrec"):  # its number is a recall
        assert np.isfinite(fp.evaluate([2, 1], [0, 1], qid=[1, 1], measures=with_cut).values).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fp.evaluate([1, 2], [0], qid=[1]), "2 scores for 1 documents"),
        (lambda: fp.evaluate([1], [0]), "need qid"),
        (lambda: fp.evaluate([1, 2], [0, 1], qid=[1]), "one query id per document"),
        (lambda: fp.evaluate([1], [np.nan], qid=[1]), "label of query '1' is nan"),
        (lambda: fp.evaluate([1], ["x"], qid=[1]), "labels must be numbers"),
        (lambda: fp.evaluate([], [], qid=[]), "no query to measure"),
        (lambda: fp.evaluate([1], [1], qid=[np.nan]), "qid of row 0 is missing"),
        (lambda: fp.evaluate([1], [1], qid=[1], measures=[]), "at least one measure"),
        (lambda: fp.evaluate([1], [1], qid=[1], convention="trek"), "Did you mean 'trec'"),
        (lambda: fp.evaluate([1], [1], qid=[1], convention="trec"), "need document ids"),
        (lambda: fp.evaluate({"a": {"d": 1}}, {"b": {"d": 1}}), "share no query"),
        (lambda: fp.evaluate([1], {"b": {"d": 1}}), r"go with a run.*got list"),
        (lambda: fp.evaluate({"a": {"d": 1}}, [1]), "requires judgments"),
        (lambda: fp.evaluate({"a": {"d": "x"}}, {"a": {"d": 1}}), "scores must be numbers"),
        (lambda: fp.evaluate([5], [5], qid=[1], measures="ERR(max=4)"), "label 5, above max=4"),
        (lambda: fp.evaluate([5], [5], qid=[1], measures="NDCG(gain=[0, 1])"), "hold a label 5"),
        (lambda: fp.evaluate([1], [2000], qid=[1], measures="WKT"), r"use WKT\(norm=true\)"),
    ],
)
def test_invalid_input_raises_an_error(call, message: str) -> None:
    with pytest.raises(fp.FirstpageError, match=message):
        call()


def test_duplicate_documents_raise_an_error() -> None:
    run = fp.Run.from_arrays(["q", "q"], ["d", "d"], [2, 1])
    qrels = fp.Qrels.from_arrays(["q", "q"], ["d", "e"], [1, 0])
    with pytest.raises(fp.DataError, match="'d' occurs twice in query 'q'"):
        fp.evaluate(run, qrels)
    with pytest.raises(fp.DataError, match="judgments: document 'd' occurs twice"):
        fp.evaluate(fp.Run.from_dict({"q": {"e": 1}}), fp.Qrels.from_arrays(*run_columns()))


def run_columns():
    return ["q", "q"], ["d", "d"], [1, 0]


def test_intervals_contain_the_mean_and_shrink_with_more_queries() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for queries in (20, 2000):
        labels = rng.integers(0, 2, queries * 5)
        qid = np.repeat(np.arange(queries), 5)
        evaluation = fp.evaluate(rng.random(queries * 5), labels, qid=qid, measures="AP", ci=True)
        low, high = evaluation.intervals["AP"]
        assert low < evaluation["AP"] < high
        widths.append(high - low)
        sd = evaluation.per_query("AP").std() / np.sqrt(queries)
        assert high - low == pytest.approx(2 * 1.96 * sd, rel=0.1)
    assert widths[1] < widths[0] / 5


@pytest.fixture
def compiled_values() -> tuple:
    """Values of all measures on one collection, from machine code."""
    rng = np.random.default_rng(3)
    lists = [
        [(int(rng.integers(0, 4)), int(rng.integers(0, 6))) for _ in range(rng.integers(1, 40))]
        for _ in range(4)
    ]
    scores, labels, qid = flat(lists)
    return (scores, labels, qid), fp.evaluate(scores, labels, qid=qid, measures=ALL_TEXTS, ci=True)


def test_interpreted_kernels_give_the_same_values(compiled_values, interpreted) -> None:
    (scores, labels, qid), expected = compiled_values
    evaluation = fp.evaluate(scores, labels, qid=qid, measures=ALL_TEXTS, ci=True)
    assert evaluation.values == pytest.approx(expected.values, rel=1e-13, abs=1e-15)
    for text in ALL_TEXTS:
        assert evaluation.intervals[text] == pytest.approx(expected.intervals[text])
