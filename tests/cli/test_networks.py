"""Networks on the command line: train, rank, evaluate, explain and export."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp

pytestmark = pytest.mark.torch

NETWORK = "network(layers=(8, 4), attention=(1, 2), dropout=0.1, norm=layer)"


def test_a_network_with_attention_from_training_to_export(run, tmp_path) -> None:
    data = fp.Synthetic(queries=30, docs="uniform(1, 9)", features=4, grades=3, seed=1).dataset()
    paths = {name: str(tmp_path / name) for name in ("data.txt", "m.json", "s.txt", "m.onnx")}
    fp.write_letor(data, paths["data.txt"])
    trained = run("train", "ListNet", paths["data.txt"], "--set", f"scorer={NETWORK}", "--set",
                  "solver=adam(max_iter=3)", "-o", paths["m.json"])  # fmt: skip
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
    refused = run("train", "ListNet", paths["data.txt"], "--set", "scorer=network(heads=3)",
                  "-o", paths["m.json"])  # fmt: skip
    assert refused.returncode == 1
    assert "Network has no parameter 'heads'" in refused.stderr
