"""`firstpage clicks`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import firstpage as fp
from tests.patience import PATIENCE


def moving_log(folder: Path) -> Path:
    """Return a log of two queries, whose first two documents change places."""
    lines = [f"{query}\t{page} : {click}" for query in ("fox", "dog")
             for page, click in (("a,b,c", "a"), ("b,a,c", "b"), ("b,a,c", "a"), ("a,b,c", "b"))]  # fmt: skip
    log = folder / "moving.log"
    log.write_text(";".join(lines))
    return log


def test_propensities_says_first_what_can_be_trusted(run, tmp_path: Path) -> None:
    log, output, html = moving_log(tmp_path), tmp_path / "p.json", tmp_path / "p.html"
    done = run("clicks", "propensities", log, "--trust", "-o", output, "--html", html)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Ranks fall into 2 components: 1-2; 3.\nBetween components ")
    assert "Not identified relative to rank 1: ranks 3." in done.stdout
    assert "P(click) = alpha * relevance + beta" in done.stdout
    assert fp.clicks.Propensities.load(output).at([2])[0] == pytest.approx(1.0)
    page = html.read_text()
    assert page.index("May I trust it?") < page.index("components: 1-2; 3.") < page.index("<svg")
    assert run("clicks", "propensities", log, "--method", "model", "--model", "PBM").returncode == 0
    printed = json.loads(run("clicks", "propensities", log, "--json", "--trust").stdout)
    assert printed["propensity"][2] is None
    assert printed["trust"]["alpha"][0] == 1.0


def test_files_are_written_before_a_reader_of_the_table_closes_the_pipe(tmp_path: Path) -> None:
    """The verdict of the command goes to a program that reads nothing."""
    log, output = moving_log(tmp_path), tmp_path / "p.json"
    command = f'"{sys.executable}" -m firstpage clicks propensities {log} -o {output} | true'
    subprocess.run(command, shell=True, capture_output=True, timeout=PATIENCE, check=True)
    assert fp.clicks.Propensities.load(output).at([2])[0] == pytest.approx(1.0)


def test_nothing_is_written_where_only_the_reference_is_identified(run, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("fox\ta,b : a;fox\ta,b : b")
    done = run("clicks", "propensities", tmp_path / "log", "-o", tmp_path / "p.json")
    assert done.returncode == 1
    assert "no rank but 1 is identified: " in done.stderr
    assert "equal ones" not in done.stdout
    assert not (tmp_path / "p.json").exists()
    sessions = fp.Sessions.from_arrays(query=["fox"], document=["a"], rank=[1], clicked=[1])
    assert fp.clicks.swap_graph(sessions).verdict[0] == (
        "All impressions are at rank 1: there is nothing to compare."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "random"], "has no logged propensities; name their column"),
        (["--reference", "9"], "reference=9 has no impressions; ranks with impressions are 1-3"),
        (["--qrels", "LOG"], "--qrels requires --trust"),
        (["--method", "model"], "which needs one, such as model='PBM'"),
        (["--model", "PBM"], "--model requires --method model"),
        (["--method", "model", "--model", "QBM"], "QBM"),
        (["--method", "dual"], "features are for regression-em and dual, which need them"),
        (["--features", "LOG"], "--features requires --method regression-em or dual"),
    ],
)
def test_propensities_refuses_in_one_line(run, tmp_path: Path, options, message) -> None:
    log = moving_log(tmp_path)
    done = run("clicks", "propensities", log, *[str(log) if o == "LOG" else o for o in options])
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def log_of(queries: int) -> str:
    """Return a log of random orders, clicked by attractiveness and rank."""
    rng = random.Random(0)
    pages = []
    for n in range(400):
        shown = rng.sample(range(8), 6)
        clicks = [d for r, d in enumerate(shown, 1) if rng.random() < (1 + d % 3) / (3 * r)]
        pages.append(f"q{n % queries}\t{','.join(map(str, shown))}:{','.join(map(str, clicks))};")
    return "\n".join(pages)


def test_fit_compares_models_and_writes_the_best_one(run, tmp_path: Path) -> None:
    log, model, html = tmp_path / "log", tmp_path / "model.json", tmp_path / "page.html"
    log.write_text(log_of(3))
    done = run("clicks", "fit", log, "-m", "GlobalCTR", "-m", "PBM", "-o", model, "--html", html)
    assert done.returncode == 0
    rows = done.stdout.splitlines()
    assert [row.split()[0] for row in rows[2:4]] == ["PBM", "GlobalCTR"]
    assert "480 impressions of 80 pages" in rows[4]
    assert f"wrote PBM to {model}; `firstpage clicks judge --model` and" in done.stderr
    judged = run("clicks", "judge", log, "--model", model, "-o", tmp_path / "clicks.qrels")
    assert judged.returncode == 0
    assert len((tmp_path / "clicks.qrels").read_text().splitlines()) == 24
    stored = fp.clicks.load_model(model)
    assert stored.impressions_ == 2400  # of the whole log
    assert "Examination by rank" in html.read_text()


def test_fit_reads_features_of_documents(run, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log_of(queries=3))
    rows = [f"q{q},{d},{d}" for q in range(3) for d in range(9)]
    (tmp_path / "data.csv").write_text("\n".join(["qid,docid,length", *rows]))
    options = ["-m", "PBM", "-m", "RankCTR", "--features", tmp_path / "data.csv"]
    done = run("clicks", "fit", tmp_path / "log", *options, "-o", tmp_path / "m.json")
    assert done.returncode == 0, done.stderr
    assert "PBM(features=" in done.stdout
    assert "\nRankCTR  " in done.stdout
    (tmp_path / "other.csv").write_text("qid,docid,length\nx,y,1\n")
    options[-1] = tmp_path / "other.csv"
    done = run("clicks", "fit", tmp_path / "log", *options)
    assert done.returncode == 1
    assert "other.csv: none of the documents of" in done.stderr


def test_fit_predicts_another_log(run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(log_of(1))
    done = run("clicks", "fit", log, "--test", log, "-m", "RankCTR", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert result["impressions"] == 2400
    (score,) = result["scores"]
    assert score["low"] is None  # one query has no interval
    assert 1 < score["perplexity"] < 2
    plain = run("clicks", "fit", log, "-m", "RankCTR", "-m", "UBM", "--html", tmp_path / "x.html")
    assert plain.returncode == 0


def test_fit_refuses_in_one_line(run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(log_of(2))
    unknown = run("clicks", "fit", log, "-m", "UMB")
    assert unknown.returncode == 1
    assert "there is no click model 'UMB'. Did you mean 'UBM'?" in unknown.stderr
    twice = run("clicks", "fit", log, "-m", "UBM", "-m", "ubm")
    assert "UBM is compared with itself" in twice.stderr
    both = run("clicks", "fit", log, "--test", log, "--split", "0.3")
    assert "--split requires no --test" in both.stderr


def old_and_new(folder: Path) -> list[str]:
    """Write a log, propensities and two runs; return the arguments that name them."""
    rng = random.Random(4)
    qrels = {f"q{n}": {f"d{i}": rng.randrange(5) for i in range(5)} for n in range(30)}
    qrels["q0"]["d0"] = 4
    runs = {
        "old": {q: {d: rng.random() for d in row} for q, row in qrels.items()},
        "new": {q: {d: g + rng.random() for d, g in row.items()} for q, row in qrels.items()},
    }
    for name, table in runs.items():
        fp.write_run(fp.Run.from_dict(table, name=name), folder / f"{name}.run")
    sessions = fp.clicks.simulate(runs["old"], qrels, n_sessions=3000, noise=2.0, seed=1)
    pytest.importorskip("polars")
    fp.clicks.write_sessions(sessions, folder / "log.parquet")
    fp.clicks.estimate_propensities(sessions).save(folder / "p.json")
    files = [str(folder / name) for name in ("log.parquet", "p.json", "old.run", "new.run")]
    return ["--clicks", files[0], "--propensities", *files[1:]]


def test_rankings_are_measured_by_old_clicks(run, tmp_path: Path) -> None:
    arguments = old_and_new(tmp_path)
    done = run("evaluate", *arguments)
    assert done.returncode == 0, done.stderr
    assert "old: 30 queries, policy-aware" in done.stdout
    assert "effective impressions" in done.stdout
    rows = {r["system"]: r for r in json.loads(run("evaluate", *arguments, "--json").stdout)}
    assert rows["new"]["measures"]["Clicks@10"] > rows["old"]["measures"]["Clicks@10"]
    page = run("evaluate", *arguments, "-f", "csv", "--per-query", tmp_path / "values.csv")
    assert page.returncode == 0, page.stderr
    assert (tmp_path / "values.csv").read_text().count("\n") > 60
    options = ["--baseline", "old", "--test", "t", "-m", "DCG@3", "--json"]
    compared = json.loads(run("compare", *arguments, *options).stdout)
    assert compared["differences"][0]["difference"] > 0
    assert compared["differences"][0]["p"] < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--estimator", "best"], "the method is one of policy-aware, ips"),
        (["--ci"], "--ci requires no --clicks"),
        (["--estimator", "dr"], "rewards are for dr and dm, which need them"),
        (["-m", "NDCG@10"], "clicks estimate Clicks@k and DCG@k"),
    ],
)
def test_estimates_from_clicks_are_refused_in_one_line(run, tmp_path, options, message) -> None:
    done = run("evaluate", *old_and_new(tmp_path), *options)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_options_of_clicks_need_clicks(run, tmp_path: Path) -> None:
    arguments = old_and_new(tmp_path)
    assert "--clip requires --clicks" in run("evaluate", "--clip", "3", arguments[-1]).stderr
    assert "give at least two" in run("compare", *arguments[:-1]).stderr


def test_a_safe_ranking_is_a_run_that_evaluates_no_worse(run, tmp_path: Path) -> None:
    _, log, _, known, old, new = old_and_new(tmp_path)
    options = ["--old", old, "--new", new, "--propensities", known]
    served = tmp_path / "served.run"
    done = run("clicks", "safe", log, *options, "--ratio", "10", "-o", served)
    assert done.returncode == 0, done.stderr
    rows = json.loads(run("clicks", "safe", log, *options, "--ratio", "10", "--json").stdout)
    count = rows["served"].count("new")
    assert 0 < count < 30
    assert f"served for {count} of 30 queries" in done.stdout
    table, runs = fp.read_run(served).to_dict(), [fp.read_run(r).to_dict() for r in (old, new)]
    for query, ranker in zip(rows["query"], rows["served"], strict=True):
        assert table[query] == runs[ranker == "new"][query]
    assert run("evaluate", "--clicks", log, "--propensities", known, served).returncode == 0
    refused = run("clicks", "safe", log, *options, "--level", "2")
    assert "a level from 0.5 to below 1" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_preferences_of_clicks_are_learned(run, tmp_path: Path) -> None:
    log = old_and_new(tmp_path)[1]
    qrels, output = tmp_path / "grades.qrels", tmp_path / "prefs.jsonl"
    rng = random.Random(4)
    rows = [f"q{n} 0 d{i} {rng.randrange(5)}" for n in range(30) for i in range(5)]
    qrels.write_text("\n".join(rows) + "\n")
    done = run("clicks", "preferences", log, "--qrels", qrels, "-o", output, "--lists", "10")
    assert done.returncode == 0, done.stderr
    assert f"learn from it by: firstpage dcglearn learn {output}" in done.stderr
    measure = tmp_path / "measure.json"
    arguments = ["--K", "5", "--C", "0.1", "--rounds", "0", "--test-rounds", "0", "-o", measure]
    learned = run("dcglearn", "learn", output, *arguments)
    assert learned.returncode == 0, learned.stderr
    gains = fp.dcglearn.read_utility(measure).gains
    assert gains[-1] == max(gains)
    qrels.write_text("other 0 d0 1\n")
    refused = run("clicks", "preferences", log, "--qrels", qrels, "-o", output)
    assert refused.returncode != 0
    assert "none of the documents of" in refused.stderr
