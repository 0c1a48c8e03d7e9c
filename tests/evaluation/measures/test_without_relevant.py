"""Queries without relevant documents: 0, left out, or 1 in measures that are normalized."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.measures.base import needs_of, rank_lists
from firstpage.evaluation.measures.registry import measure

SCORES, LABELS, QID = [3, 2, 1, 2, 1, 1, 2], [0, 2, 1, 0, 0, 1, 0], [1, 1, 1, 2, 2, 3, 3]
NORMALIZED = ("NDCG@3", "AP", "Recall@2", "Rprec", "bpref", "nERR", "Q", "Rndcg", "IPrec", "SetR")
SKIP = fp.Convention(without_relevant="skip")
OTHERS = ("P@2", "RR", "DCG@3", "ERR", "Success@2", "SetSuccess", "NumRel")


def evaluate(
    rule: str, measures: tuple[str, ...] = NORMALIZED + OTHERS, rel: float = 1
) -> fp.results.Evaluation:
    convention = fp.Convention(without_relevant=rule, rel=rel)  # type: ignore[arg-type]
    return fp.evaluate(SCORES, LABELS, qid=QID, measures=measures, convention=convention)


def test_skip_leaves_the_query_out() -> None:
    zero, skip = evaluate("zero"), evaluate("skip")
    assert list(skip.queries) == ["1", "3"]
    np.testing.assert_array_equal(skip.values, zero.values[:, [0, 2]])
    assert skip["NumRel"] == 3.0


def test_one_counts_it_as_perfect_where_the_measure_is_normalized() -> None:
    zero, one = evaluate("zero"), evaluate("one")
    for text in NORMALIZED:
        assert zero.per_query(text)[1] == 0.0
        assert one.per_query(text)[1] == 1.0
    for text in OTHERS:
        assert one.per_query(text).tolist() == zero.per_query(text).tolist()
    np.testing.assert_array_equal(one.values[:, [0, 2]], zero.values[:, [0, 2]])


def test_relevance_is_that_of_the_convention() -> None:
    assert list(evaluate("skip", rel=2).queries) == ["1"]
    assert evaluate("one", ("AP",), rel=2).per_query("AP").tolist() == [0.5, 1.0, 1.0]


@pytest.mark.parametrize("texts", [["P@2"], ["AP"], ["NDCG"], ["Tau", "infAP"]])
@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")
def test_skipping_is_independent_of_what_is_sorted(texts: list[str]) -> None:
    """Runs with unjudged documents, complete and partial lists."""
    rng = np.random.default_rng(0)
    docs = [f"d{i}" for i in range(60)]
    qrels = {f"q{q}": {d: int(q % 3 > 0 and rng.random() < 0.1) for d in docs} for q in range(9)}
    run = {q: {d: float(rng.integers(0, 40)) for d in [*docs[5:], "x", "y"]} for q in qrels}
    zero = fp.evaluate(run, qrels, measures=texts)
    skip = fp.evaluate(run, qrels, measures=texts, convention=SKIP)
    kept = [q for q in qrels if any(qrels[q].values())]
    assert list(skip.queries) == kept
    rows = [list(qrels).index(q) for q in kept]
    np.testing.assert_array_equal(skip.values, zero.values[:, rows])


def test_a_partial_list_keeps_its_documents() -> None:
    scores, labels = np.arange(40.0), np.tile([0.0, 1.0], 20)
    labels[:20] = 0.0
    truth = fp.Truth.from_labels(labels, np.repeat([1, 2], 20))
    needs = needs_of([measure("P@3")], SKIP)
    lists = rank_lists(scores, truth, SKIP, needs=needs)
    assert list(lists.queries) == ["2"]
    assert lists.lengths.tolist() == [20]
    assert measure("P@3").values(lists, SKIP).tolist() == [pytest.approx(2 / 3)]


def test_no_query_left_is_one_line() -> None:
    with pytest.raises(fp.DataError, match="there is no query to measure"):
        fp.evaluate([1.0], [0], qid=[1], measures="AP", convention=SKIP)
    with pytest.raises(fp.MeasureError, match="without_relevant must be one of zero, skip, one"):
        evaluate("two")
