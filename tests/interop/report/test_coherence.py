"""Reports on coherence and verdicts, as text and HTML."""

from __future__ import annotations

import firstpage as fp
from firstpage.evaluation.dcglearn.certificates.verdicts import verdicts
from firstpage.evaluation.dcglearn.measure_coherence import coherence
from firstpage.interop.report.coherence import coherence_page, coherence_text, verdict_lines
from tests.interop.report.test_report import Checker

QRELS = {"q": {"a": 2, "b": 1, "c": 0, "d": 1}, "r": {"a": 1, "b": 0, "c": 0, "u": 0}}
RUNS = {
    "top": {"q": {"a": 3.0, "c": 2.0, "b": 1.0}, "r": {"a": 2.0, "u": 1.0}},
    "<wide>": {"q": {"b": 3.0, "d": 2.0, "c": 1.0}, "r": {"a": 3.0, "b": 1.0}},
}


def test_verdict_lines_state_the_certificates() -> None:
    (verdict,) = verdicts(RUNS, QRELS, "DCG(gain=[0, 1, 9])@2", within=1.1)
    lines = verdict_lines(verdict)
    assert lines[0].startswith("top beats <wide> by +")
    assert "flips" in lines[1]
    assert "For all steps within a factor of" in lines[2]
    assert lines[3] == "  For all steps within a factor of 1.1: the verdict stands (proven)."
    assert "fewer documents of grade 1 or more in the first 2 positions" in lines[4]
    (dominant,) = verdicts(RUNS, QRELS, "DCG@1")
    assert verdict_lines(dominant)[1] == (
        "  For any compatible gains and discounts: the verdict stands (proven)."
    )
    assert "dominates" in verdict_lines(dominant)[-1]
    (tie,) = verdicts({"one": RUNS["top"], "two": RUNS["top"]}, QRELS, "DCG@1")
    assert verdict_lines(tie) == ["one and two tie in DCG@1: there is no verdict to certify."]


def test_pages_are_well_formed_and_names_are_escaped() -> None:
    result = coherence(RUNS, QRELS, "DCG(gain=[0, 1, 9])@2", "DCG(gain=[0, 1, 1.1])@2")
    certified = verdicts(RUNS, QRELS, "DCG(gain=[0, 1, 9])@2")
    page = coherence_page(result, certified)
    checker = Checker()
    checker.feed(page)
    assert checker.active == []
    assert "<wide>" not in page
    assert "nearest that flips" in page
    text = coherence_text(result, certified)
    assert "order these systems differently: top and <wide>" in text
    assert "Worst disagreements" in text


def test_full_agreement_has_no_table_of_disagreements() -> None:
    data = fp.Synthetic(queries=5, docs=8, features=3, grades=3).dataset()
    systems = {"up": data.y, "down": -data.y}
    text = coherence_text(coherence(systems, data, "NDCG@3", "NDCG@3"), ())
    assert "agree on 100.0%" in text
    assert "Worst" not in text
