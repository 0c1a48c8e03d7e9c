"""Tests of `evaluate`, `compare`, `convert`, `describe` and the program: output, errors, exit codes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.formats.trec import to_run
from tests.narrow import dense, instance
from tests.patience import PATIENCE

SYNTHETIC = fp.Synthetic(queries=25, docs="uniform(3, 20)", features=4, grades=3).dataset()
RECIPE = fp.Synthetic(queries=25, docs="uniform(3, 20)", features=4, grades=3)
UTILITY = RECIPE.true_utility(dense(SYNTHETIC.X))


@pytest.fixture
def files(tmp_path: Path) -> Path:

    fp.write_letor(SYNTHETIC, tmp_path / "data.txt")
    fp.write_qrels(SYNTHETIC, tmp_path / "data.qrels")
    rng = np.random.default_rng(0)
    for name, scores in (
        ("good", UTILITY),
        ("noise", rng.random(SYNTHETIC.n_docs)),
        ("good2", UTILITY + 1),
    ):
        fp.write_scores(scores, tmp_path / f"{name}.scores")
        fp.write_run(to_run(SYNTHETIC, scores, name), tmp_path / f"{name}.run")
    return tmp_path


def test_evaluate_prints_the_means_of_scores(run, files) -> None:
    code, out, err = run("evaluate", files / "data.txt", "--scores", files / "good.scores")
    assert (code, err) == (0, "")
    assert "25 queries" in out
    expected = fp.evaluate(UTILITY, SYNTHETIC)
    for text, mean in expected.means.items():
        assert f"{text} " in out
        assert f"{mean:.4f}" in out


def test_json_is_the_only_output_and_has_the_measure_names_as_typed(run, files) -> None:
    code, out, _ = run(
        "evaluate",
        "--qrels",
        files / "data.qrels",
        "--run",
        files / "good.run",
        "-m",
        "ndcg_cut_10",
        "-m",
        "map",
        "--json",
        "--ci",
    )
    assert code == 0
    record = json.loads(out)
    expected = fp.evaluate(UTILITY, SYNTHETIC, measures=["NDCG@10", "AP"])
    assert record["measures"] == pytest.approx(
        {"ndcg_cut_10": expected["NDCG@10"], "map": expected["AP"]}
    )
    assert record["queries"] == 25
    assert set(record["ci"]) == {"ndcg_cut_10", "map"}


def test_scores_runs_and_python_agree(run, files) -> None:
    inputs = [
        (files / "data.txt", "--scores", files / "noise.scores"),
        ("--qrels", files / "data.qrels", "--run", files / "noise.run"),
        (files / "data.txt", "--run", files / "noise.run"),
    ]
    means = [
        json.loads(run("evaluate", *arguments, "--json")[1])["measures"] for arguments in inputs
    ]
    assert means[0] == pytest.approx(means[1])
    assert means[0] == pytest.approx(means[2])


def test_options_change_the_measures(run, files) -> None:
    base = ["evaluate", files / "data.txt", "--scores", files / "noise.scores", "--json"]

    def value(*more: object) -> float:
        return float(next(iter(json.loads(run(*base, *more)[1])["measures"].values())))

    assert value("-m", "kNDCG@5", "--k", 5) == pytest.approx(
        fp.evaluate(fp.read_scores(files / "noise.scores"), SYNTHETIC, measures="kNDCG@5", k=5)[
            "kNDCG@5"
        ]
    )
    assert value("-m", "AP", "--rel", 2) != value("-m", "AP")
    assert value("-m", "NDCG@20", "--convention", "letor") < value("-m", "NDCG@20")
    assert value("-m", "RR", "--depth", 1) <= value("-m", "RR")
    assert value("-m", "kERR", "--k", 3, "--seed", 1) != value("-m", "kERR", "--k", 3)


SYSTEMS = ("good", "noise", "good2")


def several(files: Path, option: str) -> list[object]:
    """Return the arguments that measure three rankings by two measures."""
    kind, truth = ("run", "--qrels") if option == "--run" else ("scores", None)
    truth_arguments = [truth, files / "data.qrels"] if truth else [files / "data.txt"]
    system_arguments = [x for name in SYSTEMS for x in (option, files / f"{name}.{kind}")]
    return ["evaluate", *truth_arguments, *system_arguments, "-m", "NDCG@10", "-m", "AP"]


@pytest.mark.parametrize("option", ["--run", "--scores"])
def test_each_ranking_has_a_row(run, files, option) -> None:
    kind = option.removeprefix("--")
    scores = {n: fp.read_scores(files / f"{n}.scores") for n in SYSTEMS}
    expected = {
        (n if kind == "run" else f"{n}.{kind}"): fp.evaluate(
            s, SYNTHETIC, measures=["NDCG@10", "AP"]
        )
        for n, s in scores.items()
    }
    command = several(files, option)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    for name, evaluation in expected.items():
        assert rows[name] == [f"{evaluation[m]:.4f}" for m in ("NDCG@10", "AP")]
    records = json.loads(run(*command, "--json", "--ci")[1])
    assert [row["system"] for row in records] == list(expected)
    assert [row["measures"]["AP"] for row in records] == pytest.approx(
        [e["AP"] for e in expected.values()]
    )
    assert all(set(row["ci"]) == {"NDCG@10", "AP"} for row in records)
    table = list(csv.DictReader(run(*command, "-f", "csv")[1].splitlines()))
    means = {(row["system"], row["measure"]): float(row["mean"]) for row in table}
    assert means == pytest.approx({(n, m): e[m] for n, e in expected.items() for m in e.texts})
    for form in ("latex", "markdown", "html"):
        out = run(*command, "-f", form)[1]
        assert all(f"{e[m]:.4f}" in out for e in expected.values() for m in e.texts)
        assert all(name in out for name in expected)


def test_per_query_values_of_several_rankings_are_written(run, files) -> None:
    code, _, _ = run(*several(files, "--run"), "--per-query", files / "q.csv")
    assert code == 0
    rows = list(csv.DictReader((files / "q.csv").read_text().splitlines()))
    assert [r["system"] for r in rows] == [n for n in SYSTEMS for _ in range(25)]
    run(*several(files, "--run"), "--per-query", files / "q.json")
    assert list(json.loads((files / "q.json").read_text())) == list(SYSTEMS)


def test_several_models_and_scores_are_measured_together(run, files) -> None:
    for name, l2 in (("a", 0.1), ("b", 10.0)):
        fp.ListNet(l2=l2).fit(SYNTHETIC).save(files / f"{name}.json")
    command = [
        "evaluate",
        files / "data.txt",
        "--model",
        files / "a.json",
        "--model",
        files / "b.json",
        "--scores",
        files / "noise.scores",
        "-m",
        "AP",
        "--json",
    ]
    values = {row["system"]: row["measures"]["AP"] for row in json.loads(run(*command)[1])}
    for name in "ab":
        model = fp.load(files / f"{name}.json")
        assert values[f"{name}.json"] == pytest.approx(
            fp.evaluate(model.predict(SYNTHETIC), SYNTHETIC)["AP"], abs=1e-4
        )
    assert next(iter(values)) == "noise.scores"
    assert len(set(values.values())) == 3


def test_best_means_are_marked_without_an_asterisk(run, files) -> None:
    command = ["compare", files / "data.txt", "-m", "NDCG@10", "--rounds", 200]
    command += [x for name in SYSTEMS for x in ("--scores", files / f"{name}.scores")]
    shown = {form: run(*command, "-f", form)[1] for form in ("text", "markdown", "latex", "html")}
    best = f"{fp.evaluate(UTILITY, SYNTHETIC)['NDCG@10']:.4f}"
    assert "*" not in shown["text"]
    assert shown["text"].count(f"{best}◂") == 2  # good and good2 tie
    assert "◂ best mean; says nothing about significance" in shown["text"]
    marked = {"markdown": f"**{best}**", "latex": rf"\textbf{{{best}}}", "html": f"<b>{best}</b>"}
    for form, bold in marked.items():
        assert shown[form].count(bold) == 2
        assert "bold: best mean" in shown[form]
        assert "bold: corrected p below .05" in shown[form]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json"])
def test_per_query_values_are_written(run, files, suffix) -> None:
    target = files / f"values.{suffix}"
    code, _, err = run(
        "evaluate",
        files / "data.txt",
        "--scores",
        files / "good.scores",
        "-m",
        "AP",
        "-m",
        "RR",
        "--per-query",
        target,
    )
    assert code == 0
    assert str(target) in err
    expected = fp.evaluate(UTILITY, SYNTHETIC, measures=["AP", "RR"])
    if suffix == "json":
        rows = {q: [v["AP"], v["RR"]] for q, v in json.loads(target.read_text()).items()}
    else:
        text = target.read_text().splitlines()
        head, *body = list(csv.reader(text, delimiter="\t" if suffix == "tsv" else ","))
        assert head == ["query", "AP", "RR"]
        rows = {row[0]: [float(v) for v in row[1:]] for row in body}
    assert list(rows) == list(expected.queries)
    assert np.array_equal(np.array(list(rows.values())).T, expected.values)


@pytest.mark.parametrize("name", ["text", "json", "csv", "markdown", "latex", "html"])
@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_every_report_format_is_written(run, files, name, verb) -> None:
    systems = ["--scores", files / "good.scores"]
    if verb == "compare":
        systems += ["--scores", files / "noise.scores", "--rounds", 1000]
    code, out, _ = run(verb, files / "data.txt", *systems, "-m", "NDCG@10", "--format", name)
    assert code == 0
    exact = fp.evaluate(UTILITY, SYNTHETIC)["NDCG@10"]
    assert (repr(exact) if name in ("json", "csv") else f"{exact:.4f}") in out
    starts = {"json": "{", "latex": r"% needs \usepackage{booktabs}", "html": "<!doctype html>"}
    assert out.startswith(starts.get(name, ""))


def test_suffix_selects_the_format(run, files) -> None:
    target = files / "report.html"
    code, out, err = run(
        "compare",
        "--qrels",
        files / "data.qrels",
        "--run",
        files / "good.run",
        "--run",
        files / "noise.run",
        "--run",
        files / "good2.run",
        "-o",
        target,
        "--rounds",
        500,
    )
    assert (code, out) == (0, "")
    assert "wrote" in err
    page = target.read_text()
    assert "<svg" in page
    assert "good2" in page
    for outside in ("http:", "https:", "<script", "<link", "@import", "url("):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "")


def test_baseline_is_named_by_file_stem_or_tag(run, files) -> None:
    for name in ("noise.run", "noise"):
        code, out, _ = run(
            "compare",
            "--qrels",
            files / "data.qrels",
            "--run",
            files / "good.run",
            "--run",
            files / "noise.run",
            "--baseline",
            name,
            "-m",
            "AP",
            "--json",
            "--test",
            "t",
            "--correction",
            "bh",
        )
        assert code == 0
        record = json.loads(out)
        assert record["baseline"] == "noise"
        (difference,) = record["differences"]
        assert difference["system"] == "good"
        assert difference["difference"] > 0.2
        assert difference["p_corrected"] < 0.001
        assert len(record["most_different"][0]["queries"]) == 5


def test_describe_summarizes_files(run, files) -> None:
    code, out, _ = run("describe", files / "data.txt", files / "good.run")
    assert code == 0
    assert "25" in out
    assert "█" in out
    code, out, _ = run("describe", files / "data.qrels", "--json")
    assert json.loads(out)["queries"] == 25


def test_describe_names_models(run, files) -> None:
    data = instance(fp.Dataset, fp.read(files / "data.txt"))
    fp.Regression().fit(data).save(files / "model.json")
    record = json.loads(run("describe", files / "model.json", "--json").stdout)
    assert (record["kind"], record["ranker"]) == ("model", "Regression")
    assert record["features"] == data.n_features
    assert record["trained_on"]["queries"] == 25
    (files / "other.json").write_text("{}")
    assert "not a model of Firstpage" in run("describe", files / "other.json").stderr


def test_convert_changes_format_and_ground_truth(run, files) -> None:
    code, _, err = run("convert", files / "data.txt", files / "x.parquet")
    assert code == 0
    assert "wrote" in err
    assert np.array_equal(
        dense(instance(fp.Dataset, fp.read(files / "x.parquet")).X), dense(SYNTHETIC.X)
    )
    run("convert", files / "x.parquet", files / "top.txt", "--truth", "top-k", "--k", 3)
    assert fp.read_letor(files / "top.txt").truth.top_k_depth == 3
    run("convert", files / "data.qrels", files / "full.qrels", "--truth", "full-order")
    assert fp.read_qrels(files / "full.qrels").labels.max() == SYNTHETIC.lengths.max() - 1
    run("convert", files / "data.txt", files / "b.qrels", "--truth", "binary", "--rel", 2)
    assert set(fp.read_qrels(files / "b.qrels").labels) == {0, 1}
    run("convert", files / "data.txt", files / "n.npz", "--normalize", "minmax")
    assert instance(fp.Dataset, fp.read(files / "n.npz")).X.max() == 1
    run("convert", files / "data.txt", files / "r.run", "--scores", files / "good.scores")
    assert fp.read_run(files / "r.run").name == "good"
    assert run("convert", files / "data.txt", "-", "--to", "letor")[0] == 0
    assert run("convert", files / "data.txt", files / "folds", "--folds", 5)[0] == 0
    assert len(fp.read_folds(files / "folds")) == 5


def test_synthesize_writes_data_and_measures_lists_all(run, tmp_path) -> None:
    code, _, _ = run(
        "synthesize", tmp_path / "s.txt.gz", "--queries", 7, "--docs", "poisson(5)", "--seed", 3
    )
    assert code == 0
    assert len(fp.read_letor(tmp_path / "s.txt.gz")) == 7
    code, out, _ = run("measures")
    assert "kNDCG(k)@n" in out
    assert "average" in out
    code, out, _ = run("measures", "--json")
    assert {c["ties"] for c in json.loads(out)["conventions"].values()} == {
        "average",
        "docid",
        "file",
    }


def test_interleaved_data_print_a_note(run, tmp_path) -> None:
    (tmp_path / "i.txt").write_text("1 qid:1 1:1\n0 qid:2 1:1\n0 qid:1 1:1\n")
    code, _, err = run("describe", tmp_path / "i.txt")
    assert code == 0
    assert err.startswith("firstpage: note: ")
    assert "regrouped" in err


BAD = {
    "no such file": (["evaluate", "nowhere.txt", "--scores", "x"], 1, "no such file"),
    "unknown measure": (["evaluate", "D", "--scores", "S", "-m", "NDGC"], 1, "Nearest: NDCG"),
    "unknown format": (["evaluate", "D", "--scores", "S", "-f", "pdf"], 2, "the format must be one of"),
    "kappa on grades": (["evaluate", "D", "--scores", "S", "-m", "kERR"], 1, "--k 10"),
    "run as data": (["evaluate", "R", "--scores", "S"], 1, "contains run lines, not features and labels; pass it as --run"),
    "unknown convention": (["evaluate", "D", "--scores", "S", "--convention", "x"], 1, "no convent"),
    "not writable": (["evaluate", "D", "--scores", "S", "-o", "no/x.md"], 1, "cannot write there"),
    "bad ties": (["evaluate", "D", "--scores", "S", "--ties", "x"], 1, "ties must be one of"),
    "unknown baseline": (["compare", "D", "--scores", "S", "--scores", "S2", "--baseline", "z"], 1, "no system 'z'"),
    "nothing to measure": (["evaluate", "D"], 2, "--scores and --model, or --run"),
    "both": (["evaluate", "D", "--scores", "S", "--run", "R"], 2, "--scores and --model, or --run"),
    "truth twice": (["evaluate", "D", "--qrels", "Q", "--run", "R"], 2, "give the ground truth once"),
    "scores of qrels": (["evaluate", "--qrels", "Q", "--scores", "S"], 2, "--scores requires"),
    "one system": (["compare", "D", "--scores", "S"], 2, "at least two rankings"),
    "bad k": (["evaluate", "D", "--scores", "S", "--k", "0"], 2, "0 is not in the range"),
    "seed twice": (["evaluate", "D", "--scores", "S", "--seed", "1", "--seed=2"], 2, "--seed is given twice"),
    "output twice": (["convert", "D", "x.txt", "--to", "letor", "--to", "csv"], 2, "--to is given twice"),
    "twice in a group": (["dcglearn", "show", "m.json", "--top", "1", "--top", "2"], 2, "--top is given twice"),
    "unknown verb": (["evaluat"], 2, "No such command"),
    "truth of a run": (["convert", "R", "x.qrels", "--truth", "binary"], 1, "no ground truth to convert"),
    "features of qrels": (["convert", "Q", "x.txt", "--normalize", "minmax"], 1, "not a data file"),
    "unknown target": (["convert", "D", "x.bin"], 1, "its suffix is not that of a known format"),
    "unknown suffix": (["evaluate", "D", "--scores", "S", "-o", "x.pdf"], 2, "must end in .txt, .json, .csv, .md, .tex or .html"),
    "unknown packed suffix": (["compare", "D", "--scores", "S", "--scores", "S2", "-o", "x.doc.gz"], 2, "must end in"),
    "suffix of values": (["evaluate", "D", "--scores", "S", "--per-query", "x.xlsx"], 2, "end in .csv, .tsv or .json"),
    "two formats": (["evaluate", "D", "--scores", "S", "--json", "-f", "csv"], 2, "two formats"),
    "page of a list": (["theory", "--list", "-o", "x.html"], 2, "end in .txt or .json"),
    "page as a picture": (["dcglearn", "show", "m.json", "-o", "x.png"], 2, "end in .html"),
    "top without gains": (["dcglearn", "show", "m.json", "--top", "1"], 2, "requires --label-gain"),
    "page and gains": (["dcglearn", "show", "m.json", "--label-gain", "-o", "x.html"], 2, "leave out"),
    "bad recipe": (["synthesize", "x.txt", "--docs", "many"], 1, "docs must be a number or one of"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_are_one_line(run, files, monkeypatch, name) -> None:
    monkeypatch.chdir(files)
    args, expected, message = BAD[name]
    names = {
        "D": "data.txt",
        "S": "good.scores",
        "S2": "noise.scores",
        "Q": "data.qrels",
        "R": "good.run",
    }
    code, out, err = run(*(names.get(a, a) for a in args))
    assert code == expected
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    if expected == 1:
        assert err.startswith("firstpage: error: ")
        assert err.count("\n") == 1


def firstpage(*args: object, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "firstpage", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **options)


def test_program_runs_as_a_process(files) -> None:
    result = firstpage("evaluate", "data.txt", "--scores", "good.scores", "--json", cwd=files)
    assert result.returncode == 0
    assert json.loads(result.stdout)["queries"] == 25
    assert result.stderr == ""
    assert firstpage("--version").stdout.strip() == f"firstpage {fp.__version__}"
    assert "evaluate" in firstpage("--help").stdout


def test_closed_pipe_is_not_an_error(files) -> None:
    command = f'"{sys.executable}" -m firstpage convert data.txt - --to letor | head -1'
    result = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=files, timeout=PATIENCE
    )
    assert result.stdout.startswith("0 qid:1 ") or result.stdout[1:].startswith(" qid:1 ")
    assert result.stderr == ""


def test_import_loads_no_heavy_module_and_changes_no_state() -> None:
    script = """
import sys, os, warnings
before, filters = dict(os.environ), list(warnings.filters)
import firstpage
heavy = [m for m in ("numpy", "scipy", "numba", "sklearn", "click", "rich") if m in sys.modules]
assert not heavy, heavy
assert dict(os.environ) == before and warnings.filters == filters
assert "evaluate" in dir(firstpage)
for name in firstpage.__all__:
    getattr(firstpage, name)
try:
    firstpage.nonsense
except AttributeError:
    print("fine")
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE
    )
    assert result.stdout.strip() == "fine", result.stderr


def test_queries_missing_from_a_run_print_one_note(run, files) -> None:
    text = (files / "good.run").read_text()
    (files / "short.run").write_text("\n".join(x for x in text.splitlines() if x.split()[0] != "7"))
    arguments = [
        "--qrels",
        files / "data.qrels",
        "--run",
        files / "good.run",
        "--run",
        files / "short.run",
    ]
    for verb in (["evaluate"], ["compare", "--rounds", 100], ["evaluate", "-f", "csv"]):
        result = run(verb[0], *arguments, *verb[1:])
        assert result.returncode == 0
        assert result.stderr == (
            "firstpage: note: short.run: 1 of 25 judged queries are not in the run and count 0: 7.\n"
        )
        assert "note" not in result.stdout
    assert len(json.loads(run("evaluate", *arguments, "--json").stdout)) == 2


def test_suffix_before_gz_selects_the_format(run, files) -> None:
    import gzip

    target = files / "report.csv.gz"
    assert (
        run("evaluate", files / "data.txt", "--scores", files / "good.scores", "-o", target)[0] == 0
    )
    assert gzip.decompress(target.read_bytes()).startswith(b"measure,mean,low,high\n")


INTERLEAVED = "2 qid:1 1:1\n0 qid:2 1:0\n1 qid:1 1:0\n3 qid:2 1:1\n0 qid:1 1:3\n"


def test_scores_follow_the_order_of_interleaved_data(tmp_path: Path, monkeypatch) -> None:
    from firstpage.data.formats import letor

    (tmp_path / "i.txt").write_text(INTERLEAVED)
    (tmp_path / "i.scores").write_text("2\n0\n1\n3\n0\n")  # the labels, in the file's order
    result = firstpage("evaluate", "i.txt", "--scores", "i.scores", "--json", cwd=tmp_path)
    assert json.loads(result.stdout)["measures"]["NDCG@10"] == pytest.approx(1.0)
    assert "regrouped" in result.stderr
    firstpage("convert", "i.txt", "i.run", "--scores", "i.scores", cwd=tmp_path)
    assert fp.read_run(tmp_path / "i.run").to_dict()["2"] == {"2-1": 0, "2-2": 3}
    monkeypatch.setattr(letor, "MIN_CACHED_BYTES", 0)
    for _ in range(2):  # parsed, then from the cache
        with pytest.warns(fp.FirstpageWarning, match="regrouped"):
            data = fp.read_letor(tmp_path / "i.txt", cache=tmp_path / "cache")
        assert data.to_row_order([2, 0, 1, 3, 0]).tolist() == data.y.tolist()


def test_terminal_may_lack_unicode_or_standard_output() -> None:
    result = firstpage("measures", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (0, "")
    command = f'"{sys.executable}" -m firstpage measures >&-'
    closed = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in closed.stderr
