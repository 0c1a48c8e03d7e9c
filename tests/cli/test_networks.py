"""Networks on the command line: train, rank, evaluate, explain and export."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp

pytestmark = pytest.mark.torch

NETWORK = "network(layers=(8, 4), attention=(1, 2), dropout=0.1, norm=layer)"


def test_a_network_with_attention_from_training_to_export(run, tmp_path) -> None:
    data = fp.Synthetic(queries=30, docs="uniform(1, 9)", features=4, grades=3, seed=1).dataset()
    paths = {name: str(tmp_path / name) for name in ("data.txt", "m.json", "s.txt", "m.onnx")}
    fp.write_letor(data, paths["data.txt"])
    trained = run(
        "train",
        "ListNet",
        paths["data.txt"],
        "--set",
        f"scorer={NETWORK}",
        "--set",
        "solver=adam(max_iter=3)",
        "-o",
        paths["m.json"],
    )
    assert trained.returncode == 0, trained.stderr
    assert run("rank", paths["m.json"], paths["data.txt"], "-o", paths["s.txt"]).returncode == 0
    expected = fp.load(paths["m.json"]).predict(fp.read(paths["data.txt"]))
    assert np.loadtxt(paths["s.txt"]) == pytest.approx(expected, rel=1e-6)
    assert "NDCG" in run("evaluate", paths["data.txt"], "--scores", paths["s.txt"]).stdout
    assert "path strength" in run("explain", paths["m.json"]).stdout
    for target, text in (("vespa-onnx", "Vespa"), ("solr", "Solr")):
        refused = run("export", paths["m.json"], "--to", target, "-o", str(tmp_path / target))
        assert refused.returncode == 1
        assert f"is a listwise network, which {text} cannot score" in refused.stderr
        assert refused.stderr.count("\n") == 1
    refused = run(
        "train",
        "ListNet",
        paths["data.txt"],
        "--set",
        "scorer=network(heads=3)",
        "-o",
        paths["m.json"],
    )
    assert refused.returncode == 1
    assert "Network has no parameter 'heads'" in refused.stderr


OWN_LOSS = """
from dataclasses import dataclass
import numpy as np
import firstpage as fp

@dataclass(frozen=True)
class Squares(fp.extend.Loss):
    scale: float = 1.0

    def value_grad(self, scores, truth):
        error = scores - self.scale * truth.labels
        return np.add.reduceat(error**2, truth.offsets[:-1]) / 2, error
"""


def test_a_network_is_fitted_by_a_loss_of_ones_own(run, tmp_path, monkeypatch) -> None:
    data = fp.Synthetic(queries=12, docs=6, features=4, grades=3, seed=1).dataset()
    monkeypatch.chdir(tmp_path)
    fp.write_letor(data, "data.txt")
    Path("own_squares.py").write_text(OWN_LOSS)
    ranker = (
        "LossRanker(loss=own_squares:Squares(scale=2), scorer=network(layers=(4,)), "
        "solver=adam(max_iter=3))"
    )
    trained = run("train", ranker, "data.txt", "-o", "m.json")
    assert trained.returncode == 0, trained.stderr
    table = run("crossval", "data.txt", ranker, "--folds", "3", "-t", "NDCG@3")
    assert "own_squares:Squares(scale=2)" in table.stdout, table.stderr
    Path("own_squares.py").unlink()
    monkeypatch.delitem(sys.modules, "own_squares", raising=False)  # commands run in this process
    importlib.invalidate_caches()
    assert run("rank", "m.json", "data.txt", "-o", "s.txt").returncode == 0
    with pytest.raises(fp.DataError, match="'own_squares' cannot be imported") as raised:
        fp.load("m.json")
    assert "\n" not in str(raised.value)
