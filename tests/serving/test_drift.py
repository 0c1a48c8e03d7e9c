"""Drift: what a model file tells of its training data, and what differs in service."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import firstpage as fp
from firstpage.data.io.json_files import write_json
from firstpage.learning.models import read_distributions
from firstpage.learning.models.distributions import BINS, distributions_of
from firstpage.learning.models.model_files import FILE
from firstpage.serving import drift
from firstpage.serving.app import Serving
from firstpage.serving.drift import Drift
from firstpage.serving.watched_model import WatchedModel
from firstpage.serving.workers import METRICS_FOLDER
from tests.narrow import present
from tests.serving.conftest import NPY, TestClient, npy

DATA = fp.Synthetic(queries=60, docs=20, features=4, grades=3, seed=5).dataset()
NAMED = DATA.with_features(np.asarray(DATA.X, np.float64) / 3, ["bm25", "price", "clicks", "age"])


@pytest.fixture(autouse=True)
def every_ranking_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift, "INTERVAL", 0.0)


def served(path: Path) -> TestClient:
    watched = WatchedModel(path)
    assert watched.reload().accepted
    return TestClient(Serving(watched, poll=None))


def gauges(client: TestClient) -> dict[str, float]:
    """Return the metrics of drift by name."""
    lines = [line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines()]
    return {name.removeprefix("firstpage_"): float(value) for name, value in lines
            if "_drift" in name and not name.startswith("#")}  # fmt: skip


@pytest.mark.parametrize("ranker", [fp.ListMLE(), fp.ListMLE(normalize="minmax")])
def test_a_feature_that_changed_is_seen(tmp_path: Path, ranker: Any) -> None:
    ranker.fit(NAMED).save(tmp_path / "model.json")
    X = np.asarray(NAMED.X, np.float32)  # rounded: no value is to move over an edge
    with served(tmp_path / "model.json") as client:
        assert gauges(client) == {"drift_documents": 0.0}
        assert "this page needs 500" in client.get("/drift").text
        lengths = "?lengths=" + ",".join(["20"] * 60)
        for _ in range(2):
            assert client.post(f"/batch{lengths}", content=npy(X), headers=NPY).status_code == 200
        same = gauges(client)
        assert same.pop("drift_documents") == 2400
        assert set(same) == {"score_drift"} | {
            f'feature_drift{{feature="{name}"}}' for name in present(NAMED.feature_names)
        }
        assert max(same.values()) < 0.001
        assert client.get("/drift").text.count("<td>small</td>") == 5
        X[:, 1] = X[:, 1] ** 2 if ranker.normalize else X[:, 1] * 0.1
        for _ in range(2):
            client.post(f"/batch{lengths}", content=npy(X), headers=NPY)
        changed = gauges(client)
        assert changed['feature_drift{feature="price"}'] > 0.05
        assert max(changed[f'feature_drift{{feature="{n}"}}'] for n in ("bm25", "age")) < 0.01
        text = client.get("/drift").text
        first = text.split('<th scope="row">')
        assert first[1].startswith("Score")
        assert first[2].startswith("<code>price</code>")
        assert client.get("/").text.count('href="/drift"') == 1
        assert "distributions" not in client.get("/model").json()["training"]


def test_missing_values_are_a_bin(tmp_path: Path) -> None:
    X = np.asarray(DATA.X).copy()
    X[::4, 2] = np.nan
    data = DATA.with_features(X, list("abcd"))
    model = fp.LambdaMART(scorer="trees(count=5, leaves=4, min_docs=5)").fit(data)
    bins = present(read_distributions(model.training_, 4))
    assert bins.counts[:, BINS].tolist() == [0, 0, 0, 300, 0]
    assert (bins.counts.sum(axis=1) == 1200).all()
    assert bins.counts[3, :BINS].min() == 180
    model.save(tmp_path / "model.json")
    X[:, 2] = np.nan
    with served(tmp_path / "model.json") as client:
        client.post("/rank", content=npy(X[:900]), headers=NPY)
        row = gauges(client)
    assert row['feature_drift{feature="c"}'] > 1
    assert row['feature_drift{feature="a"}'] < 0.1


def test_bins_have_equal_mass_as_far_as_values_differ() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([
        rng.normal(size=1000), np.repeat([0.0, 0.1, 7.0], [700, 200, 100]), np.full(1000, 3.0),
        rng.integers(0, 2, 1000),
    ])  # fmt: skip
    qid = np.repeat(np.arange(50), 20)
    data = fp.Dataset.from_arrays(X, rng.integers(0, 3, 1000), qid)
    model = fp.ListNet().fit(data)
    bins = present(read_distributions(model.training_, 4))
    assert bins.counts[1].tolist() == [200] * 5 + [0]
    assert bins.counts[2].tolist() == [700, 200, 100, 0, 0, 0]
    assert bins.edges[2].tolist() == [0.05, 3.55, np.inf, np.inf]
    assert bins.counts[3].tolist() == [1000, 0, 0, 0, 0, 0]
    assert bins.counts[4].sum() == 1000
    columns = fp.Dataset.from_arrays(sparse.csr_matrix(X), data.y, qid)
    assert distributions_of(columns, model.model_) == model.training_["distributions"]


def test_long_data_are_sampled_by_whole_queries_and_many_features_are_left_out() -> None:
    large = fp.Synthetic(queries=400, docs=20, features=3).dataset()
    bins = present(read_distributions(fp.ListNet().fit(large).training_, 3))
    assert bins.counts.sum(axis=1).tolist() == [2000] * 4
    wide = fp.Synthetic(queries=5, docs=10, features=1001).dataset()
    assert "distributions" not in fp.ListNet().fit(wide).training_


def test_a_file_without_the_record_is_served(tmp_path: Path) -> None:
    model = fp.ListMLE().fit(DATA)
    model.save(tmp_path / "model.json")
    contents = json.loads((tmp_path / "model.json").read_text())
    for key in ("format", "version", "sha256"):
        del contents[key]
    for wrong in (None, {"edges": [], "counts": [[1]]}, {"edges": 1, "counts": [[-1] * 6] * 5}, 7):
        contents["training"]["distributions"] = wrong
        write_json(FILE.with_header(contents), tmp_path / "model.json")
        with served(tmp_path / "model.json") as client:
            assert client.post("/rank", content=npy(DATA.X[:900]), headers=NPY).status_code == 200
            assert gauges(client) == {}
            assert "does not describe the features" in client.get("/drift").text


def test_without_a_model_there_is_nothing_to_compare(tmp_path: Path) -> None:
    with TestClient(Serving(WatchedModel(tmp_path / "model.json"), poll=None)) as client:
        answer = client.get("/drift")
        assert answer.status_code == 503
        assert "No model yet" in answer.text
        assert gauges(client) == {}


def test_few_rankings_are_counted_and_old_ones_count_half(monkeypatch: pytest.MonkeyPatch) -> None:
    bins = present(read_distributions(fp.ListMLE().fit(DATA).training_, 4))
    counter, X = Drift(bins, "abc"), np.asarray(DATA.X)
    monkeypatch.setattr(drift, "INTERVAL", 60.0)
    assert [counter.is_due() for _ in range(3)] == [True, False, False]
    monkeypatch.setattr(drift, "WINDOW", 3000)
    for _ in range(3):
        counter.add(X, np.zeros(len(X)))
    assert counter.rows(("a", "b", "c", "d"))[0] == 1800


def test_workers_add_what_they_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    bins = present(read_distributions(fp.ListMLE().fit(DATA).training_, 4))
    counters = []
    for pid in (11, 12):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        counters.append(Drift(bins, "abc"))
        counters[-1].add(np.asarray(DATA.X), np.zeros(DATA.n_docs))
    other = Drift(bins, "another model")
    totals = [each.rows(("a", "b", "c", "d"))[0] for each in (*counters, other)]
    assert totals == [2400, 2400, 0]
