"""Tests of `firstpage aggregate`: output, summary, weights and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_run
from tests.narrow import dense

RECIPE = fp.Synthetic(queries=12, docs="uniform(3, 20)", features=4, grades=3)
DATA = RECIPE.dataset()
TRUE = RECIPE.true_utility(dense(DATA.X))
SCORES = [TRUE + s * np.random.default_rng(s).normal(size=DATA.n_docs) for s in (1, 2, 3)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for i, scores in enumerate(SCORES):
        fp.write_scores(scores, f"{i}.scores")
        fp.write_run(to_run(DATA, scores, f"r{i}"), f"{i}.run")
        fp.write_run(to_run(DATA[:5], scores[: DATA[:5].n_docs], f"r{i}"), f"{i}.valid.run")
        fp.write_run(to_run(DATA[5:], scores[DATA[:5].n_docs :], f"r{i}"), f"{i}.test.run")
        fp.write_scores(scores[: DATA[:5].n_docs], f"{i}.valid.scores")
    fp.write_letor(DATA, "data.txt")
    fp.write_letor(DATA[:5], "vali.txt")
    fp.write_qrels(DATA, "data.qrels")
    fp.write_qrels(DATA[:5], "vali.qrels")
    return tmp_path


RUNS = ("0.run", "1.run", "2.run")


def order(path: str) -> dict[str, list[str]]:
    table = fp.read_run(path).to_dict()
    return {q: sorted(docs, key=docs.__getitem__, reverse=True) for q, docs in table.items()}


def test_run_goes_to_standard_output_and_summary_to_standard_error(run, files) -> None:
    code, out, err = run("aggregate", *RUNS)
    assert code == 0
    Path("out.run").write_text(out)
    expected = fp.aggregation.aggregate([fp.read_run(r) for r in RUNS])
    assert order("out.run") == {q: list(expected.run.to_dict()[q]) for q in expected.run.queries}
    assert len(out.splitlines()) == DATA.n_docs
    assert out.split()[5] == "SupervisedKemeny"
    assert "0.run  0.3333" in err
    assert f"Kemeny cost {expected.cost:.6g}, at least {expected.lower_bound:.6g}" in err


def test_weights_are_learned_on_queries_shared_by_judgments_and_runs(run, files) -> None:
    code, out, err = run("aggregate", *RUNS, "--qrels", "vali.qrels", "-m", "P@3", "-o", "o.run")
    assert (code, out) == (0, "")
    runs = [fp.read_run(r) for r in RUNS]
    expected = fp.aggregation.supervised_weights(runs, fp.read_qrels("vali.qrels"), "P@3")
    assert "weights by P@3 on 5 judged queries" in err
    for i in range(3):
        assert f"{i}.run  {expected.weights[i]:.4f}  ({expected.means[i]:.4f})" in err
    aggregation = fp.aggregation.aggregate(runs, weights=expected.weights)
    assert order("o.run") == {q: list(d) for q, d in aggregation.run.to_dict().items()}


def test_validation_runs_give_the_weights_of_runs_over_other_queries(run, files) -> None:
    test = [f"{i}.test.run" for i in range(3)]
    code, _, err = run("aggregate", *test, "--weights", "auto", "--qrels", "vali.qrels")
    assert code == 1
    assert "share no query" in err
    assert "--valid-run" in err
    valid = [arg for i in range(3) for arg in ("--valid-run", f"{i}.valid.run")]
    code, out, err = run("aggregate", *test, "--qrels", "vali.qrels", *valid)
    assert code == 0
    assert "on 5 judged queries" in err
    assert {line.split()[0] for line in out.splitlines()} == set(DATA[5:].queries)


def test_json_is_the_only_output(run, files) -> None:
    code, out, err = run(
        "aggregate",
        *RUNS,
        "--method",
        "best-insertion",
        "--weights",
        "2,1,1",
        "--json",
        "-o",
        "o.run",
        "--tag",
        "mine",
        "--depth",
        "5",
    )
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert summary["method"] == "BestInsertion"
    assert [r["weight"] for r in summary["rankers"]] == [0.5, 0.25, 0.25]
    assert summary["candidates"] == int(np.minimum(DATA.lengths, 5).sum())
    assert summary["kemeny"]["lower_bound"] <= summary["kemeny"]["cost"]
    assert fp.read_run("o.run").name == "mine"
    assert run("aggregate", *RUNS, "--json")[1].startswith("{")


def test_scores_of_a_data_file_are_aggregated(run, files) -> None:
    scores = [arg for i in range(3) for arg in ("--scores", f"{i}.scores")]
    valid = [arg for i in range(3) for arg in ("--valid-scores", f"{i}.valid.scores")]
    code, out, err = run(
        "aggregate",
        "--data",
        "data.txt",
        *scores,
        "--valid",
        "vali.txt",
        *valid,
        "--base",
        "2.scores",
        "--depth",
        "4",
        "--method",
        "copeland",
    )
    assert code == 0
    got = np.array([float(line) for line in out.split()])
    cut = DATA[:5].n_docs
    weights = fp.aggregation.supervised_weights([s[:cut] for s in SCORES], DATA[:5])
    ballots = fp.aggregation.Ballots.from_scores(SCORES, DATA.offsets, SCORES[2], depth=4)
    assert (
        got.tolist()
        == fp.aggregation.aggregate(ballots, "copeland", weights=weights).scores.tolist()
    )
    assert "on 5 judged queries" in err


def test_scores_have_the_order_of_an_interleaved_file(run, files) -> None:
    lines = Path("data.txt").read_text().splitlines()
    mixed = np.random.default_rng(0).permutation(len(lines))
    Path("mixed.txt").write_text("".join(lines[i] + "\n" for i in mixed))
    for i in range(2):
        fp.write_scores(SCORES[i][mixed], f"mixed{i}.scores")
    code, out, _ = run(
        "aggregate",
        "--data",
        "mixed.txt",
        "--scores",
        "mixed0.scores",
        "--scores",
        "mixed1.scores",
        "--method",
        "Borda",
    )
    assert code == 0
    got = np.array([float(line) for line in out.split()])
    ballots = fp.aggregation.Ballots.from_scores(SCORES[:2], DATA.offsets, SCORES[0])
    assert got.tolist() == fp.aggregation.aggregate(ballots, "Borda").scores[mixed].tolist()


def test_base_is_a_ranking_or_another_run(run, files) -> None:
    runs = [fp.read_run(r) for r in RUNS]
    for arguments, base, voters in (
        (("0.run", "1.run", "--base", "1.run"), 1, runs[:2]),
        (("0.run", "1.run", "--base", "2.run"), runs[2], runs[:2]),
        (("0.run", "1.run", "2.run", "--base", "2.run"), 2, runs),
    ):
        code, _, err = run("aggregate", *arguments, "-o", "o.run", "--depth", "3")
        assert code == 0, err
        expected = fp.aggregation.aggregate(voters, base=base, depth=3).run.to_dict()
        assert order("o.run") == {q: list(docs) for q, docs in expected.items()}


def test_credit_and_missing_reach_the_method(run, files) -> None:
    Path("part.run").write_text("1 Q0 q1d1 1 1.0 part\n")
    runs = [fp.read_run("0.run"), fp.read_run("1.run"), fp.read_run("part.run")]
    arguments = ("0.run", "1.run", "part.run", "--credit", "paper", "--missing", "ignore")
    assert run("aggregate", *arguments, "-o", "o.run").returncode == 0
    expected = fp.aggregation.aggregate(runs, "skr(credit=paper)", missing="ignore").run.to_dict()
    assert order("o.run") == {q: list(docs) for q, docs in expected.items()}


def test_scores_are_normalized_and_fused(run, files) -> None:
    runs = [fp.read_run(r) for r in RUNS]
    code, _, err = run("aggregate", *RUNS, "--method", "CombMNZ", "--normalize", "z", "-o", "o.run")
    assert code == 0
    assert "CombMNZ(normalize=z): 12 queries" in err
    assert "Kemeny" not in err
    fused = fp.read_run("o.run").to_dict()
    expected = fp.aggregation.aggregate(runs, "CombMNZ", normalize="z").run.to_dict()
    assert fused.keys() == expected.keys()
    for query, scores in expected.items():
        assert fused[query] == pytest.approx(scores)


def test_parameters_and_weights_are_tuned(run, files) -> None:
    arguments = ("--method", "rrf", "--tune", "all", "--qrels", "vali.qrels", "-m", "NDCG@3")
    code, _, err = run("aggregate", *RUNS, *arguments, "-o", "o.run")
    assert code == 0
    runs = [fp.read_run(r) for r in RUNS]
    qrels = fp.read_qrels("vali.qrels")
    tuned = fp.aggregation.tune_method(runs, qrels, "rrf", what="all", measure="NDCG@3")
    assert "NDCG@3 on 5 queries, each held out of the choice" in err
    expected = fp.aggregation.aggregate(runs, tuned.method, weights=tuned.weights).run.to_dict()
    assert order("o.run") == {q: list(docs) for q, docs in expected.items()}


def test_learned_fusion_is_trained_saved_and_applied(run, files) -> None:
    arguments = ("--method", "learned(folds=3)", "--qrels", "data.qrels", "--save-model", "f.json")
    code, _, err = run("aggregate", *RUNS, *arguments, "-o", "o.run")
    assert (code, len(err.splitlines())) == (0, 2)
    assert "learned fusion of 3 systems: ListNet()" in err
    assert "NDCG@10 on 12 queries, each held out of the choice" in err
    expected = fp.LearnedFusion(folds=3).fit_fuse(
        [fp.read_run(r) for r in RUNS], fp.read_qrels("data.qrels")
    )
    assert order("o.run") == {q: list(docs) for q, docs in expected.to_dict().items()}
    test = ("2.test.run", "0.test.run", "1.test.run")  # the same tags in other files
    code, out, err = run("aggregate", *test, "--model", "f.json", "--json", "-o", "p.run")
    assert (code, err) == (0, "")
    assert json.loads(out)["systems"] == ["r0", "r1", "r2"]
    assert set(order("p.run")) == set(DATA[5:].queries)
    code, out, err = run("aggregate", *test[:2], "--model", "f.json")
    assert (code, out) == (1, "")
    assert "the fusion of r0, r1, r2 has no run of r1; systems are matched by the names" in err
    assert len(err.splitlines()) == 1
    fp.write_letor(DATA, "data.txt")
    for command in (
        ("rank", "f.json", "data.txt", "-o", "x.txt"),
        ("evaluate", "data.txt", "--model", "f.json"),
    ):
        code, _, err = run(*command)
        assert code == 1
        assert "use firstpage aggregate RUNS --model f.json" in err
    code, out, _ = run("describe", "f.json")
    assert code == 0
    assert "f.json  (fusion model: ListNet)" in out
    assert "systems     r0, r1, r2" in out


def test_measures_of_modules_are_found(run, files) -> None:
    Path("first_hit.py").write_text("def first(labels, ideal):\n    return float(labels[0] > 0)\n")
    code, _, err = run("aggregate", *RUNS, "--qrels", "data.qrels", "-m", "first_hit:first")
    assert code == 0, err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["0.run", "1.run", "--method", "rrf", "--normalize", "z"], "RRF does not use scores"),
        (["0.run", "1.run", "--method", "CombSUM(normalize=zz)"], "no normalization 'zz'"),
        (
            ["0.run", "1.run", "--method", "learned(trees=3)", "--qrels", "data.qrels"],
            "learned has no parameter 'trees'",
        ),
        (["0.run", "1.run", "--model", "data.qrels"], "data.qrels"),
        (["0.run", "none.run"], "none.run"),
        (["0.run", "data.qrels"], "data.qrels:1:"),
        (["0.run", "bad.run"], "bad.run:2:10: the score must be a number; got 'high'"),
        (["0.run", "twice.run"], "twice.run: document 'a' occurs twice in query '1'"),
        (["0.run", "1.run", "--method", "bordo"], "Did you mean 'Borda'"),
        (["0.run", "1.run", "--method", "rrf", "--credit", "paper"], "RRF has no parameter"),
        (["0.run", "1.run", "--weights", "1,-1"], "weight 2 must be a finite number of at least 0"),
        (["0.run", "1.run", "--qrels", "data.qrels", "-m", "NDGC@10"], "no measure 'NDGC'"),
        (["0.run", "1.run", "--base", "none.run"], "none.run"),
        (["--data", "data.txt", "--scores", "0.valid.scores"], "scores for"),
    ],
)
def test_input_errors_are_one_line_and_exit_code_1(run, files, args, message) -> None:
    Path("bad.run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 high x\n")
    Path("twice.run").write_text("1 Q0 a 1 2.0 x\n1 Q0 a 2 1.0 x\n")
    code, out, err = run("aggregate", *args)
    assert code == 1
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "give runs, or --data"),
        (["0.run", "1.run", "--tune", "all"], "--tune requires runs, --qrels"),
        (["0.run", "1.run", "--method", "learned"], "requires --qrels, to train on, or a --model"),
        (["--method", "learned", "--qrels", "data.qrels"], "learned fusion requires runs"),
        (["0.run", "--method", "learned", "--depth", "5"], "--depth requires another method"),
        (["0.run", "--save-model", "f.json"], "--save-model requires --method learned"),
        (["0.run", "--data", "data.txt", "--scores", "0.scores"], "give runs, or --data"),
        (["--data", "data.txt"], "give runs, or --data"),
        (["0.run", "--scores", "0.scores"], "give runs, or --data"),
        (["0.run", "1.run", "--weights", "1,2,3"], "--weights has 3 numbers"),
        (["0.run", "1.run", "--weights", "much"], "got 'much'"),
        (["0.run", "1.run", "--weights", "auto"], "give --qrels"),
        (["0.run", "1.run", "--weights", "1,1", "--qrels", "data.qrels"], "not both"),
        (["0.run", "1.run", "--valid-run", "0.run"], "give --qrels"),
        (["0.run", "1.run", "--qrels", "data.qrels", "--valid-run", "0.run"], "1 validation"),
        (["0.run", "--valid", "vali.txt"], "--valid requires --data"),
        (["--data", "data.txt", "--scores", "0.scores", "--qrels", "data.qrels"], "requires runs"),
        (["--data", "data.txt", "--scores", "0.scores", "--valid", "vali.txt"], "0 validation"),
        (["0.run", "--depth", "0"], "depth"),
        (["0.run", "--credit", "full"], "credit"),
    ],
)
def test_usage_errors_have_exit_code_2(run, files, args, message) -> None:
    code, out, err = run("aggregate", *args)
    assert (code, out) == (2, "")
    assert message in err
