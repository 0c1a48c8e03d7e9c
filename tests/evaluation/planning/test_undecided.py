"""Unjudged documents that could change a verdict: by hand, by brute force, and errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageError

unjudged_effect = fp.planning.unjudged_effect


def two_runs(queries: int = 24) -> tuple[dict, dict, dict]:
    """The first run begins with the relevant document, the second with an unjudged one."""
    first = {f"q{q}": {"a": 3.0, "b": 2.0, "c": 1.0} for q in range(queries)}
    second = {f"q{q}": {f"x{q}": 3.0, "a": 2.0, "b": 1.0} for q in range(queries)}
    return first, second, {f"q{q}": {"a": 1, "b": 0, "c": 0} for q in range(queries)}


def with_relevant(qrels: dict, documents: list[tuple[str, str]]) -> dict:
    return {
        query: judged | {d: 1 for q, d in documents if q == query}
        for query, judged in qrels.items()
    }


@pytest.mark.filterwarnings("ignore::firstpage.FirstpageWarning")
def test_the_documents_to_judge_are_as_few_as_possible() -> None:
    first, second, qrels = two_runs()
    effect = unjudged_effect(first, second, qrels, "NDCG@3")
    assert (effect.documents, effect.unjudged) == (24 * 4, 24)
    assert effect.observed.name == "better"
    assert effect.favorable == effect.observed  # no unjudged document helps the first run
    assert effect.unfavorable.name != "better"
    assert not effect.is_settled
    to_judge = [(q, d) for q, docs in effect.to_judge.to_dict().items() for d in docs]
    rest = [(f"q{q}", f"x{q}") for q in range(24) if (f"q{q}", f"x{q}") not in to_judge]

    def corrected(documents) -> float:
        complete = with_relevant(qrels, documents)
        comparison = fp.compare(
            {"1": first, "2": second}, complete, measures="NDCG@3", baseline="2"
        )
        return comparison.differences[0].p if comparison.differences[0].difference > 0 else 1.0

    assert corrected(rest) < 0.05
    assert corrected([*rest, to_judge[-1]]) >= 0.05
    judged = {q: docs | dict.fromkeys(effect.to_judge.to_dict().get(q, {}), 0) for q, docs in qrels.items()}  # fmt: skip
    again = unjudged_effect(first, second, judged, "NDCG@3")
    assert again.is_settled
    assert not len(again.to_judge.docids)
    assert f"judge {len(to_judge)} of them" in str(effect)
    assert "no judgment of them changes the verdict" in str(again)


def test_differences_are_those_of_evaluate_with_completed_judgments() -> None:
    rng = np.random.default_rng(3)
    documents = [f"d{i}" for i in range(12)]
    runs = [
        {
            f"q{q}": {d: float(rng.normal()) for d in rng.permutation(documents)[:8]}
            for q in range(9)
        }
        for _ in range(2)
    ]
    qrels = {f"q{q}": {d: int(rng.integers(3)) for d in documents if rng.random() < 0.6} for q in range(9)}  # fmt: skip
    qrels["q8"] = {"elsewhere": 2}
    effect = unjudged_effect(runs[0], runs[1], qrels, "DCG@4")
    helps: dict[str, dict[str, int]] = {q: dict(docs) for q, docs in qrels.items()}
    harms: dict[str, dict[str, int]] = {q: dict(docs) for q, docs in qrels.items()}
    count = 0
    for query in qrels:
        tops = [sorted(run[query], key=lambda d: -run[query][d])[:4] for run in runs]
        for document in set(tops[0]) | set(tops[1]):
            if document in qrels[query]:
                continue
            count += 1
            one, two = (top.index(document) if document in top else 9 for top in tops)
            if one != two:
                (helps if one < two else harms)[query][document] = 2

    def difference(judgments) -> float:
        values = [fp.evaluate(run, judgments, measures="DCG@4")["DCG@4"] for run in runs]
        return values[0] - values[1]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        assert effect.unjudged == count
        assert effect.observed.difference == pytest.approx(difference(qrels))
        assert effect.favorable.difference == pytest.approx(difference(helps))
        assert effect.unfavorable.difference == pytest.approx(difference(harms))
    assert (
        effect.unfavorable.difference <= effect.observed.difference <= effect.favorable.difference
    )
    summary = effect.to_dict()
    assert summary["favorable"]["difference"] == effect.favorable.difference
    assert summary["to_judge"] == effect.to_judge.to_dict()


def test_complete_judgments_settle_the_verdict() -> None:
    first, second, qrels = two_runs(12)
    for q, judged in enumerate(qrels.values()):
        judged[f"x{q}"] = 0
    effect = unjudged_effect(first, second, qrels, "RR")
    assert effect.unjudged == 0
    assert effect.is_settled
    assert effect.observed == effect.favorable == effect.unfavorable
    assert effect.observed.name == "better"
    assert unjudged_effect(second, first, qrels, "RR").observed.name == "worse"


def test_wrong_input_is_refused_in_one_line() -> None:
    first, second, qrels = two_runs(3)
    with pytest.raises(FirstpageError, match="better when lower"):
        unjudged_effect(first, second, qrels, "WKT@5")
    with pytest.raises(FirstpageError, match="share no query"):
        unjudged_effect(first, second, {"z": {"a": 1}})
