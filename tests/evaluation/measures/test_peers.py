"""Measures and names of other tools, against values recorded from them (tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import firstpage as fp
from firstpage.evaluation.measures.names import ALL_TREC, OFFICIAL
from firstpage.evaluation.measures.registry import CATALOG, measure_classes, measures

pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")
GOLDEN = Path(__file__).parents[2] / "golden"


def cases(file: str) -> list[dict]:
    recorded: list[dict] = json.loads((GOLDEN / file).read_text())["cases"]
    return recorded


@pytest.mark.parametrize("case", cases("pytrec_eval_all.json"), ids=lambda c: c["name"])
def test_all_measures_of_pytrec_eval(case: dict) -> None:
    """By its names; among them infAP with a sampled pool, and a query without relevant ones."""
    names = sorted(next(iter(case["values"].values())))
    assert len(names) > 50
    evaluation = fp.evaluate(case["run"], case["qrels"], measures=names, convention="trec")
    for name in names:
        expected = [case["values"][q][name] for q in evaluation.queries]
        assert evaluation.per_query(name).tolist() == pytest.approx(expected, abs=1e-9), name


@pytest.mark.parametrize("case", cases("ndeval.json"), ids=lambda c: c["name"])
def test_all_measures_of_ndeval(case: dict) -> None:
    parameters = {"alpha": f"(alpha={case['alpha']})", "ERR": f"(alpha={case['alpha']})"}
    parameters["NRBP"] = f"(alpha={case['alpha']}, beta={case['beta']})"
    names = {}
    for theirs in next(iter(case["values"].values())):
        base, at, k = theirs.partition("@")
        inside = next((text for part, text in parameters.items() if part in base), "")
        names[theirs] = base + inside + at + k
    assert len(names) == 21
    judgments = fp.DiversityQrels.from_dict(case["qrels"])
    evaluation = fp.evaluate(case["run"], judgments, measures=names.values())
    for theirs, ours in names.items():
        expected = [case["values"][q][theirs] or 0.0 for q in evaluation.queries]
        assert evaluation.per_query(ours).tolist() == pytest.approx(expected, abs=1e-9), theirs


@pytest.mark.parametrize("case", cases("user_models.json"), ids=lambda c: c["name"])
def test_user_models_of_cwl_eval(case: dict) -> None:
    """By the texts of ir_measures, such as INST(T=2.5,max_rel=3)."""
    names = list(next(iter(case["values"].values())))
    assert len(names) == 16
    evaluation = fp.evaluate(case["run"], case["qrels"], measures=names)
    for name in names:
        expected = [case["values"][q][name] for q in evaluation.queries]
        assert evaluation.per_query(name).tolist() == pytest.approx(expected, abs=1e-9), name


@pytest.mark.parametrize("case", cases("boosters.json"), ids=lambda c: c["name"])
@pytest.mark.parametrize("tool", ["lightgbm", "xgboost"])
def test_ndcg_and_map_of_boosters(case: dict, tool: str) -> None:
    """Queries without relevant documents count 1, or 0 with the suffix - of XGBoost."""
    qid = np.repeat(np.arange(len(case["lengths"])), case["lengths"])
    checked = 0
    for name, expected in case[tool].items():
        if name.startswith("map@"):
            continue  # divided by the smaller of k and the number of relevant documents
        rule: Literal["zero"] | None = "zero" if name.endswith("-") else None
        evaluation = fp.evaluate(
            case["scores"],
            case["labels"],
            qid=qid,
            measures=name.rstrip("-"),
            convention=fp.Convention(tool, without_relevant=rule),
        )
        assert evaluation.values[0].mean() == pytest.approx(expected, abs=1e-6), name
        checked += 1
    assert checked >= 4


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("NDCG@10,AP", ["NDCG@10", "AP"]),
        ("NDCG@10 AP  P@5", ["NDCG@10", "AP", "P@5"]),
        ("NDCG@{5,10}", ["NDCG@5", "NDCG@10"]),
        ("NDCG(gain=[0, 1, 3], discount=letor)@{1, 2}, AP(rel=2)",
         ["NDCG(gain=[0, 1, 3], discount=letor)@1", "NDCG(gain=[0, 1, 3], discount=letor)@2",
          "AP(rel=2)"]),
        ("P_5,10", ["P_5", "P_10"]),
        ("P.5,10,map", ["P.5", "P_10", "map"]),
        ("ndcg @ 10", ["ndcg@10"]),
        ("iprec_at_recall.0.1,.5", ["iprec_at_recall.0.1", "iprec_at_recall_.5"]),
        ("unj", ["unj_5", "unj_10", "unj_20"]),
        ("official", list(OFFICIAL)),
        ("all_trec", list(ALL_TREC)),
    ],
)  # fmt: skip
def test_a_text_names_several_measures(text: str, texts: list[str]) -> None:
    from firstpage.evaluation.measures.registry import as_list, measures

    assert as_list(text) == texts
    assert len(measures(text)) == len(texts)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ndcg_cut.10", "NDCG@10"),
        ("map_cut_5", "AP@5"),
        ("gm_map", "GMAP"),
        ("11pt_avg", "AP11"),
        ("iprec_at_recall_0.10", "IPrec(recall=0.1)"),
        ("IPrec@0.5", "IPrec(recall=0.5)"),
        ("IPrec(rel=2)@0.5", "IPrec(rel=2, recall=0.5)"),
        ("set_F.0.5", "SetF(beta=0.5)"),
        ("Rprec_mult_0.20", "Rprec(multiple=0.2)"),
        ("relative_P_5", "RelP@5"),
        ("unj_5", "Unjudged@5"),
        ("rbp.95", "RBP(p=0.95)"),
        ("rbp_p=0.9", "RBP(p=0.9)"),
        ("nDCG(dcg='exp-log2')@10", "NDCG(gain=exp)@10"),
        ("nDCG(cutoff=10)", "NDCG@10"),
        ("nDCG(dcg='exp-log2', cutoff=10)", "NDCG(gain=exp)@10"),
        ("nDCG(dcg=\"log2\")", "NDCG(gain=linear)"),
        ("ndcg_burges@5", "NDCG(gain=exp)@5"),
        ("precision@5-l2", "P(rel=2)@5"),
        ("r-precision", "Rprec"),
        ("Bpref", "bpref"),
        ("R@100", "Recall@100"),
        ("MAP_IA", "AP-IA"),
        ("α_nDCG@20", "alpha-nDCG@20"),
        ("strec@10", "StRecall@10"),
        ("ERR_IA(alpha=0.2)@10", "ERR-IA(alpha=0.2)@10"),
    ],
)  # fmt: skip
def test_names_of_other_tools(theirs: str, ours: str) -> None:
    assert str(fp.measure(theirs)) == ours
    assert fp.measure(ours) == fp.measure(theirs)


def test_every_listed_name_is_the_measure() -> None:
    classes = {cls.__name__: cls for cls in measure_classes()}
    assert sum(len(row.tool_names) for row in CATALOG.values()) > 90
    for ours, row in CATALOG.items():
        for names in row.tool_names.values():
            for name in names.split(", "):
                text = next(t for t in (f"{name}@5", name, f"{name}_5", f"{name}_0.5") if parses(t))
                assert isinstance(fp.measure(text), classes[ours]), name


def parses(text: str) -> bool:
    try:
        return bool(fp.measure(text))
    except fp.MeasureError:
        return False


def test_several_measures_are_refused_where_one_is_needed() -> None:
    with pytest.raises(fp.MeasureError, match=r"names 2 measures .*one is needed"):
        fp.measure("NDCG@10,AP")


@pytest.mark.parametrize("case", cases("peers_more.json"), ids=lambda c: c["name"])
def test_names_of_ranx_and_accuracy_of_ir_measures(case: dict) -> None:
    inputs = next(c for c in cases("peers.json") if c["name"] == case["name"])
    max_label = max(grade for docs in inputs["qrels"].values() for grade in docs.values())
    for tool in ("ranx", "ir_measures"):
        for name, expected in case[tool].items():
            ours, scale = name, 1.0
            if name == "dcg@5":
                ours = "DCG(gain=linear)@5"
            if name.startswith("rbp"):  # ranx weights documents by their grades
                ours, scale = f"RBP(p=0.{name.partition('.')[2]}, gain=linear)", max_label
            evaluation = fp.evaluate(inputs["run"], inputs["qrels"], measures=ours)
            values = dict(zip(evaluation.queries, scale * evaluation.per_query(ours), strict=True))
            got = [values[q] for q in expected]
            assert got == pytest.approx(list(expected.values()), rel=1e-9, abs=1e-9), (tool, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nDCG@10", "NDCG(gain=linear)@10"),  # linear is its default
        ("nDCG(dcg='exp-log2')@5", "NDCG(gain=exp)@5"),
        ("NumRet(rel=1)", "NumRelRet(rel=1)"),
        ("ERR@5", "ERR(max=4)@5"),  # gdeval's
        ("Compat", "RBO(p=0.95, truncated=true)"),
        ("nDCG@[5, 10]", "NDCG(gain=linear)@5 NDCG(gain=linear)@10"),
        ("alpha_nDCG(alpha=0.3,judged_only=True)@5", "alpha-nDCG(alpha=0.3, condensed=true)@5"),
    ],
)
def test_measures_of_ir_measures_as_objects(text: str, expected: str) -> None:
    """They can be called, and `str` is their text."""

    class Theirs:
        __module__ = "ir_measures.measures.base"

        def __call__(self, **parameters: object) -> Theirs:
            return self

        def __str__(self) -> str:
            return text

    assert " ".join(map(str, measures(Theirs()))) == expected  # type: ignore[arg-type]
