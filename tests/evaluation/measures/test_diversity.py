"""Measures of diversity: ties, judgments that do not fit, and their file."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import firstpage as fp

pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")
MEASURES = [
    "alpha-DCG@3", "alpha-DCG", "ERR-IA", "alpha-nDCG@3", "alpha-nDCG", "ERR-IA@4", "nERR-IA@2", "NRBP", "nNRBP",
    "P-IA@3", "AP-IA", "StRecall@2", "alpha-nDCG(alpha=0)@3", "alpha-nDCG(alpha=1)@3",
]  # fmt: skip
JUDGMENTS = {"q": {"1": {"a": 1, "b": 1, "e": 1}, "2": {"b": 1, "c": 1}, "3": {"d": 0, "f": 1}}}
SCORES = {"x": 3.0, "a": 2.0, "b": 2.0, "d": 2.0, "c": 2.0, "e": 1.0}


@pytest.mark.parametrize("text", MEASURES)
def test_value_is_the_mean_over_all_orders_of_ties(text: str) -> None:
    qrels = fp.DiversityQrels.from_dict(JUDGMENTS)
    tied = [doc for doc, score in SCORES.items() if score == 2.0]
    values = []
    for order in permutations(tied):
        scores = SCORES | {doc: 2.0 + rank / 10 for rank, doc in enumerate(order)}
        values.append(fp.evaluate({"q": scores}, qrels, measures=text)[text])
    assert fp.evaluate({"q": SCORES}, qrels, measures=text)[text] == pytest.approx(fmean(values))
    worst = fp.evaluate(
        {"q": SCORES}, qrels, measures=text, convention=fp.Convention(ties="worst")
    )[text]
    assert min(values) - 1e-12 <= worst <= fmean(values) + 1e-12


@pytest.mark.parametrize("text", MEASURES)
def test_condensed_lists_lack_the_unjudged_documents(text: str) -> None:
    qrels, short = fp.DiversityQrels.from_dict(JUDGMENTS), {**SCORES}
    del short["x"]
    measure = replace(fp.measure(text), condensed=True)
    condensed = fp.evaluate({"q": SCORES}, qrels, measures=measure).values
    assert condensed == pytest.approx(fp.evaluate({"q": short}, qrels, measures=text).values)
    assert fp.measure(str(measure)) == measure


def test_by_hand() -> None:
    qrels = fp.DiversityQrels.from_dict(JUDGMENTS)
    evaluation = fp.evaluate(
        {"q": {"b": 3.0, "a": 2.0, "x": 1.0}}, qrels, measures="alpha-nDCG@2,StRecall@2,P-IA@2"
    )
    ideal = 2 + 1 / np.log2(3)  # b, then f, the only one of the third subtopic
    assert evaluation["alpha-nDCG@2"] == pytest.approx((2 + 0.5 / np.log2(3)) / ideal)
    assert evaluation["StRecall@2"] == pytest.approx(2 / 3)
    assert evaluation["P-IA@2"] == pytest.approx((2 / 2 + 1 / 2 + 0) / 3)


def test_without_a_cutoff_the_list_to_compare_with_is_endless() -> None:
    qrels = fp.DiversityQrels.from_dict({"q": {"1": {"a": 1}, "2": {"a": 1, "b": 1}}})
    run = {"q": {"b": 2.0, "a": 1.0}}
    evaluation = fp.evaluate(run, qrels, measures="ERR-IA,ERR-IA(alpha=1),alpha-DCG,alpha-DCG@500")
    assert evaluation["ERR-IA"] == pytest.approx((1 + 1.5 / 2) / (2 * 2 * np.log(2)))
    assert evaluation["ERR-IA(alpha=1)"] == pytest.approx((1 + 1 / 2) / 2)
    assert evaluation["alpha-DCG"] == pytest.approx(evaluation["alpha-DCG@500"], rel=1e-14)
    with pytest.raises(fp.MeasureError, match="give a cut-off, as in alpha-DCG"):
        fp.evaluate(run, qrels, measures="alpha-DCG(alpha=0)")


def test_queries_without_relevant_documents_and_missing_ones() -> None:
    table = {**JUDGMENTS, "none": {"1": {"a": 0}}, "absent": {"1": {"a": 1}}}
    qrels, run = fp.DiversityQrels.from_dict(table), {"q": SCORES, "none": {"a": 1.0}}
    zero = fp.evaluate(run, qrels, measures="alpha-nDCG@3")
    assert list(zero.queries) == ["q", "none", "absent"]
    assert zero.per_query("alpha-nDCG@3")[1:].tolist() == [0.0, 0.0]
    skip = fp.evaluate(
        run, qrels, measures="alpha-nDCG@3", convention=fp.Convention(without_relevant="skip")
    )
    assert list(skip.queries) == ["q", "absent"]
    assert skip.per_query("alpha-nDCG@3")[0] == zero.per_query("alpha-nDCG@3")[0]
    graded = {"q": {"1": {"a": 1, "b": 2}}}
    strict = fp.evaluate(
        {"q": {"a": 2.0, "b": 1.0}},
        fp.DiversityQrels.from_dict(graded),
        measures="StRecall@1",
        convention=fp.Convention(rel=2),
    )
    assert strict["StRecall@1"] == 0.0


FILE = "1 1 a 1\n1 2 a 0\n\n1 2 b 1\n2 1 c 2\n"


def test_file_is_read_and_flattened(tmp_path: Path) -> None:
    path = tmp_path / "web.qrels"
    path.write_text(FILE)
    qrels = fp.read_diversity_qrels(path)
    assert (len(qrels), len(qrels.docids), len(qrels.grades)) == (2, 3, 4)
    assert qrels.flatten().to_dict() == {"1": {"a": 1.0, "b": 1.0}, "2": {"c": 2.0}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1 a\n", "qrels:1: a line of diversity judgments is `topic subtopic document"),
        ("1 1 a x\n", "qrels:1: a line of diversity judgments"),
        ("1 1 a nan\n", "qrels:1: the judgment 'nan' is not finite"),
        (
            "1 1 a 1\n1 2 a 1\n1 1 a 0\n",
            "qrels:3: document 'a' was judged for subtopic '1'.*line 1",
        ),
        ("1 0 a 1\n1 0 b 1\n", "these are plain judgments: the subtopic is '0' in every line"),
        ("\n", "the file has no judgments"),
    ],
)
def test_bad_files_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.qrels"
    path.write_text(text)
    with pytest.raises(fp.DataError, match=message):
        fp.read_diversity_qrels(path)


def test_files_and_dictionaries_are_read_for_measures_of_diversity(tmp_path: Path) -> None:
    qrels, run = fp.DiversityQrels.from_dict(JUDGMENTS), {"q": SCORES}
    expected = fp.evaluate(run, qrels, measures="alpha-nDCG@3").means
    path = tmp_path / "div.qrels"
    path.write_text(
        "".join(
            f"{query} {subtopic} {document} {grade:g}\n"
            for query, subtopics in JUDGMENTS.items()
            for subtopic, documents in subtopics.items()
            for document, grade in documents.items()
        )
    )
    for truth in (JUDGMENTS, path, str(path)):
        assert fp.evaluate(run, truth, measures="alpha-nDCG@3").means == expected
        comparison = fp.compare({"a": run, "b": run}, truth, measures="alpha-nDCG@3")
        assert comparison.evaluations[0].means == expected
        (case,) = fp.wins_and_losses(comparison, {"a": run, "b": run}, truth).cases
        assert case.query == "q"


def test_judgments_must_fit_the_measure() -> None:
    qrels, run = fp.DiversityQrels.from_dict(JUDGMENTS), {"q": SCORES}
    with pytest.raises(fp.MeasureError, match="AP needs plain judgments"):
        fp.evaluate(run, qrels, measures="alpha-nDCG@3,AP")
    with pytest.raises(fp.MeasureError, match="ERR-IA@3 needs judgments of subtopics"):
        fp.evaluate(run, qrels.flatten(), measures="ERR-IA@3")
    with pytest.raises(fp.DataError, match="omit k"):
        fp.evaluate(run, qrels, measures="ERR-IA@3", k=2)
    with pytest.raises(fp.DataError, match="diversity judgments are"):
        fp.DiversityQrels.from_dict({"q": {"a": 1}})  # type: ignore[dict-item]
    with pytest.raises(fp.DataError, match="must be a number; got 'x'"):
        fp.DiversityQrels.from_dict({"q": {"1": {"a": "x"}}})  # type: ignore[dict-item]
