"""Values against those of other programs: recorded ones, and output files where available."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import firstpage as fp

# Runs and judgments with different queries or documents warn; `test_coverage` tests that.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

GOLDEN = Path(__file__).parents[2] / "golden"
TREC = {
    "map": "AP", "Rprec": "Rprec", "bpref": "bpref", "recip_rank": "RR", "ndcg": "NDCG",
    "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF",
}  # fmt: skip


def ours(name: str) -> str | None:
    """Return our text of a measure of trec_eval, or None."""
    if re.fullmatch(r"(P|recall|ndcg_cut|map_cut|success)_\d+", name):
        return name
    return TREC.get(name)


def cases(file: str) -> list[dict]:
    recorded: list[dict] = json.loads((GOLDEN / file).read_text())["cases"]
    return recorded


@pytest.mark.parametrize("case", cases("pytrec_eval.json"), ids=lambda c: c["name"])
def test_values_match_recorded_pytrec_eval(case: dict) -> None:
    """Ties by id, float32 scores, missing queries, no relevant ones, negative grades, levels."""
    names = sorted({m for row in case["values"].values() for m in row if ours(m)})
    assert len(names) > 20
    evaluation = fp.evaluate(
        case["run"],
        case["qrels"],
        measures=[ours(m) for m in names],
        convention=fp.Convention("trec", rel=case.get("level")),
    )
    queries = list(evaluation.queries)
    assert set(queries) == set(case["values"])
    for name in names:
        expected = [case["values"][q][name] for q in queries]
        assert evaluation.per_query(ours(name)).tolist() == pytest.approx(expected, abs=1e-12), name


PEERS = {  # (tool, its measure): ours
    ("ranx", "ndcg@5"): "NDCG(gain=linear)@5",
    ("ranx", "ndcg@10"): "NDCG(gain=linear)@10",
    ("ranx", "ndcg_burges@5"): "NDCG@5",
    ("ranx", "ndcg_burges@10"): "NDCG@10",
    ("ranx", "ndcg_burges"): "NDCG",
    ("ranx", "map"): "AP",
    ("ranx", "mrr"): "RR",
    ("ranx", "precision@5"): "P@5",
    ("ranx", "precision@10"): "P@10",
    ("ranx", "recall@10"): "Recall@10",
    ("ranx", "hit_rate@5"): "Success@5",
    ("ir_measures", "Compat(p=0.9)"): "RBO(p=0.9, truncated=true)",
    ("ir_measures", "Compat(p=0.8)"): "RBO(p=0.8, truncated=true)",
    ("ir_measures", "Judged@5"): "Judged@5",
    ("ir_measures", "Judged@10"): "Judged@10",
    ("ir_measures", "ERR@5"): "ERR(max=4)@5",
    ("ir_measures", "ERR@10"): "ERR(max=4)@10",
    ("ir_measures", "RR@10"): "RR@10",
    ("pytrec_eval on gains 2^label-1", "ndcg_cut_5"): "NDCG@5",
    ("pytrec_eval on gains 2^label-1", "ndcg"): "NDCG",
}


@pytest.mark.parametrize("case", cases("peers.json"), ids=lambda c: c["name"])
@pytest.mark.parametrize("theirs", PEERS, ids=" ".join)
def test_values_match_recorded_ranx_and_ir_measures(case: dict, theirs: tuple[str, str]) -> None:
    tool, name = theirs
    if name not in case[tool]:
        pytest.skip(f"{tool} has no {name} on this case")
    evaluation = fp.evaluate(case["run"], case["qrels"], measures=PEERS[theirs])
    expected = [case[tool][name][q] for q in evaluation.queries]
    tolerance = 5e-6 if name.startswith("ERR") else 1e-9  # gdeval prints five decimals
    assert evaluation.values[0].tolist() == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("case", [c for c in cases("peers.json") if "top" in c["name"]],
                         ids=lambda c: c["name"])  # fmt: skip
def test_kappa_ndcg_is_ndcg_of_position_aware_labels(case: dict) -> None:
    for cutoff in (5, 10):
        evaluation = fp.evaluate(case["run"], case["qrels"], measures=f"kNDCG@{cutoff}")
        for tool, name in (
            ("ranx", f"ndcg_burges@{cutoff}"),
            ("pytrec_eval on gains 2^label-1", f"ndcg_cut_{cutoff}"),
        ):
            expected = [case[tool][name][q] for q in evaluation.queries]
            assert evaluation.values[0].tolist() == pytest.approx(expected, abs=1e-9), tool


@given(
    seed=st.integers(0, 10**6),
    levels=st.sampled_from([2, 4, 1000]),
)
def test_values_match_installed_pytrec_eval(seed: int, levels: int) -> None:
    """Live, on random runs with ties, unjudged documents and missing queries."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(seed)
    qrels: dict = {}
    run: dict = {}
    for q in range(6):
        docs = [f"d{i}" for i in range(int(rng.integers(1, 30)))]
        if rng.random() < 0.9:
            qrels[f"q{q}"] = {d: int(rng.integers(0, 4)) for d in docs if rng.random() < 0.7}
        if rng.random() < 0.9:
            run[f"q{q}"] = {d: float(rng.integers(0, levels)) for d in docs if rng.random() < 0.8}
    qrels = {q: docs for q, docs in qrels.items() if docs}
    run = {q: docs for q, docs in run.items() if docs}
    names = ["map", "ndcg", "ndcg_cut_5", "P_5", "recip_rank", "bpref", "Rprec", "recall_5"]
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {*names, "ndcg_cut.5", "P.5", "recall.5"})
    expected = evaluator.evaluate(run)
    if not expected:
        return
    evaluation = fp.evaluate(run, qrels, measures=[ours(n) for n in names], convention="trec")
    for name in names:
        values = [expected[q][name] for q in evaluation.queries]
        assert evaluation.per_query(ours(name)).tolist() == pytest.approx(values, abs=1e-12), name


# --- files of the real tools

OUTPUTS = [  # trec_eval's own tests: expected output, judgments, run, equivalent of its flags
    ("out.test", "qrels.test", "results.test", {}),
    ("out.test.a", "qrels.test", "results.test", {}),
    ("out.test.aq", "qrels.test", "results.test", {}),
    ("out.test.aqc", "qrels.test", "results.trunc", {"queries": "judged"}),
    ("out.test.aqcM", "qrels.test", "results.trunc", {"queries": "judged", "depth": 100}),
    ("out.test.aql", "qrels.rel_level", "results.test", {"rel": 2}),
]


@pytest.mark.data
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda o: o[0])
def test_values_match_the_tests_of_trec_eval(output, real_data: Path) -> None:
    expected, qrels, run, options = output
    folder = real_data / "trec_eval"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)  # results.trunc is interleaved
        system, truth = fp.read_run(folder / run), fp.read_qrels(folder / qrels)
    rows = [line.split() for line in (folder / expected).read_text().splitlines()]
    rows = [row for row in rows if len(row) == 3]
    names = sorted({ours(name) for name, _, _ in rows if ours(name)})
    if "rel" not in options:  # with a level, trec_eval's rbp weighs grades
        names.append("RBP(p=0.9)")
    evaluation = fp.evaluate(
        system, truth, measures=names, convention=fp.Convention("trec", **options)
    )
    queries = list(evaluation.queries)
    checked = 0
    for name, query, number in rows:
        text = "RBP(p=0.9)" if name == "rbp" else ours(name)
        if text not in names:
            continue
        value = (
            evaluation[text] if query == "all" else evaluation.per_query(text)[queries.index(query)]
        )
        assert f"{value:.4f}" == number, (name, query)
        checked += 1
    assert checked >= 12


@pytest.mark.data
@pytest.mark.parametrize("name", ["LETOR1", "LETOR_NN1", "RankLib1", "RankLib2", "ltr4l1"])
def test_values_match_the_letor_tool(name: str, real_data: Path) -> None:
    folder = real_data / "mq2008"
    data = fp.read_letor(folder / "Fold1" / "test.txt")
    scores = fp.read_scores(folder / "eval-tool" / f"pred_test_{name}.txt", data.n_docs)
    printed = (folder / "eval-tool" / f"perf_test_{name}.txt").read_text().splitlines()
    rows = [line.split("\t") for line in printed if line.startswith("Average")]
    expected = [v for row in rows for v in row[1:] if v]
    ranks = range(1, 11)
    texts = [*(f"P@{k}" for k in ranks), "MAP", *(f"NDCG@{k}" for k in ranks), "MeanNDCG"]
    evaluation = fp.evaluate(scores, data, measures=texts, convention="letor")
    assert [f"{evaluation[t]:.4f}" for t in texts] == expected
    assert len(expected) == 22
    assert len(evaluation.queries) == 156


@pytest.mark.data
def test_constant_scores_on_real_data_have_low_ndcg(real_data: Path) -> None:
    data = fp.read_letor(real_data / "ohsumed" / "Fold1" / "test.txt")
    sorted_rows = np.lexsort((-data.y, np.repeat(np.arange(len(data)), data.lengths)))
    stored_in_true_order = data.y[sorted_rows]
    constant = np.zeros(data.n_docs)
    leaked = fp.evaluate(constant, stored_in_true_order, qid=data.qid, measures="NDCG@10")
    honest = fp.evaluate(constant, data, measures="NDCG@10")
    assert leaked["NDCG@10"] == pytest.approx(honest["NDCG@10"], abs=1e-12)
    assert honest["NDCG@10"] < 0.4
