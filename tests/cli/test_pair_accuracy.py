"""`firstpage evaluate --pairs`."""

import csv
import json
from pathlib import Path

import numpy as np

import firstpage as fp


def test_scores_models_and_runs(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = fp.Synthetic(queries=6, docs=5, features=3, seed=1).dataset()
    names = [f"d{row}" for row in range(30)]
    data = fp.Dataset.from_arrays(made.X, made.y, np.repeat(np.arange(6), 5), names)
    votes = fp.PreferencePairs.from_arrays(
        np.repeat(np.arange(6), 4),
        np.delete(names, np.s_[4::5]),
        np.delete(names, np.s_[::5]),
        weight=np.arange(1, 25),
    )
    fp.write(data, "data.npz")
    fp.write_pairs(votes, "votes.csv")
    ranker = fp.RankNet().fit(data)
    ranker.save("model.json")
    expected = fp.pair_accuracy(ranker.predict(data), votes, data, ci=True)
    result = run(
        "evaluate",
        "data.npz",
        "--model",
        "model.json",
        "--pairs",
        "votes.csv",
        "--ci",
        "--json",
        "--per-query",
        "each.csv",
    )
    assert json.loads(result.stdout) == expected.to_dict()
    with Path("each.csv").open() as file:
        values = [float(row["PairAccuracy"]) for row in csv.DictReader(file)]
    assert values == expected.values.tolist()
    run("rank", "model.json", "data.npz", "-o", "ours.run")
    run("rank", "model.json", "data.npz", "-o", "ours.txt")
    text = run("evaluate", "--run", "ours.run", "--pairs", "votes.csv", "-f", "csv").stdout
    same = run("evaluate", "data.npz", "--scores", "ours.txt", "--pairs", "votes.csv", "-f", "csv")
    assert text.replace("RankNet", "ours.txt") == same.stdout  # a run is named by its tag
    text = run("evaluate", "--run", "ours.run", "--pairs", "votes.csv").stdout
    assert f"{expected.value:.4f}" in text
    assert (
        "<table"
        in run("evaluate", "--run", "ours.run", "--pairs", "votes.csv", "-f", "html").stdout
    )
    for arguments, message in (
        (["--run", "ours.run", "-m", "AP"], "--measure requires labels, not --pairs"),
        (["--model", "model.json"], "give DATA with --scores or --model"),
    ):
        failed = run("evaluate", *arguments, "--pairs", "votes.csv")
        assert failed.returncode == 2
        assert message in failed.stderr
