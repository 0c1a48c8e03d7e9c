"""Answers: the scores of the model in every format, their order, their reasons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from tests.serving.conftest import (
    ARROW,
    NAMES,
    NPY,
    RANKERS,
    arrow,
    body,
    clients,
    dataset,
    loaded,
    npy,
    write_model,
)


@pytest.mark.parametrize("kind", RANKERS)
def test_every_format_has_the_scores_of_the_model(kind: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.json", kind)
    data = dataset()
    X = np.asarray(data[3].X)
    expected = fp.load(path).predict(data[3])
    order = np.argsort(-expected, kind="stable").tolist()
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    for client in clients(path):
        found = client.post("/rank", content=npy(X), headers=NPY)
        assert loaded(found.content).tolist() == expected.tolist()
        found = client.post("/rank?answer=order&top=5", content=npy(X), headers=NPY)
        assert loaded(found.content).tolist() == order[:5]
        told = client.post("/rank", json=body(X)).json()
        assert told["order"] == [f"d{i}" for i in order]
        np.testing.assert_allclose(told["scores"], expected[order], rtol=1e-5)
        found = client.post("/rank", content=arrow(**columns), headers=ARROW)
        table = pytest.importorskip("pyarrow").ipc.open_stream(found.content).read_all()
        assert table["score"].to_pylist() == expected.tolist()
        assert [order[r - 1] for r in table["rank"].to_pylist()] == list(range(len(X)))


@pytest.mark.parametrize("kind", RANKERS)
def test_parts_add_up_to_the_score(kind: str, tmp_path: Path) -> None:
    X = np.asarray(dataset()[5].X, np.float64)
    for client in clients(write_model(tmp_path / "model.json", kind)):
        told = client.post("/rank", json=body(X, explain=len(NAMES), top=4)).json()
        assert len(told["explanations"]) == len(told["order"]) == 4
        for score, why, name in zip(
            told["scores"], told["explanations"], told["order"], strict=True
        ):
            parts = [abs(p["part"]) for p in why["parts"]]
            assert parts == sorted(parts, reverse=True)
            if kind == "cascade":
                assert told["explained"] == "score of a voter"
                continue
            total = why["base"] + sum(p["part"] for p in why["parts"])
            assert total == pytest.approx(score, rel=1e-5, abs=1e-6)
            row = X[int(name[1:])]
            assert all(p["value"] == row[NAMES.index(p["feature"])] for p in why["parts"])


def test_parts_of_a_network_are_slopes_times_distances(tmp_path: Path) -> None:
    """The slope by finite differences, all of it through HTTP."""
    path = write_model(tmp_path / "model.json", "network")
    mean = np.array(json.loads(path.read_text())["scorer"]["mean"])
    X, step = np.asarray(dataset()[5].X, np.float64)[:6], 1e-4

    for client in clients(path):
        told = client.post("/rank", json=body(X, explain=4)).json()
        assert told["explained"] == "value x gradient"
        parts = np.zeros(X.shape)
        for name, why in zip(told["order"], told["explanations"], strict=True):
            for part in why["parts"]:
                parts[int(name[1:]), NAMES.index(part["feature"])] = part["part"]
        for j in range(4):
            shift = step * np.eye(4)[j]
            more, less = (
                loaded(client.post("/rank", content=npy(rows), headers=NPY).content)
                for rows in (X + shift, X - shift)
            )
            slope = (more - less) / (2 * step)
            np.testing.assert_allclose(parts[:, j], slope * (X[:, j] - mean[j]), atol=1e-6)
        assert np.abs(parts).max() > 0.1


def test_a_batch_is_its_queries_one_by_one(tmp_path: Path) -> None:
    data = dataset()
    few = data[2:5]
    X, lengths = np.asarray(few.X), np.diff(few.offsets)
    for client in clients(write_model(tmp_path / "model.json", "scaled")):
        single = [
            loaded(client.post("/rank", content=npy(np.asarray(few[i].X)), headers=NPY).content)
            for i in range(3)
        ]
        said = {**NPY, "x-lengths": ", ".join(map(str, lengths))}
        found = loaded(client.post("/batch", content=npy(X), headers=said).content)
        assert found.tolist() == np.concatenate(single).tolist()
        queries = [body(np.asarray(few[i].X), query=f"q{i}") for i in range(3)]
        told = client.post("/batch", json={"queries": queries, "top": 2, "explain": 1}).json()
        assert [one["query"] for one in told["answers"]] == ["q0", "q1", "q2"]
        for one, scores in zip(told["answers"], single, strict=True):
            assert one["order"] == [f"d{i}" for i in np.argsort(-scores, kind="stable")[:2]]
            assert len(one["explanations"]) == 2
        bare = client.post("/batch", json=queries).json()
        assert len(bare["answers"][0]["order"]) == lengths[0]
        pa = pytest.importorskip("pyarrow")
        flat = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
        sent = arrow(query=np.repeat(["a", "b", "c"], lengths), features=flat)
        found = client.post("/batch", content=sent, headers=ARROW)
        table = pa.ipc.open_stream(found.content).read_all()
        assert table["score"].to_pylist() == np.concatenate(single).tolist()
        assert table["query"].to_pylist() == np.repeat(["a", "b", "c"], lengths).tolist()


def test_features_as_lists_more_features_and_no_ids(client) -> None:
    X = np.asarray(dataset()[0].X, np.float64)
    by_name = client.post("/rank", json=body(X)).json()
    rows = [{"features": row} for row in X.tolist()]
    by_place = client.post("/rank", json={"candidates": rows}).json()
    assert [f"d{i}" for i in by_place["order"]] == by_name["order"]
    assert by_place["scores"] == by_name["scores"]
    more = body(X)
    for candidate in more["candidates"]:
        candidate["features"]["not of the model"] = "x"
    assert client.post("/rank", json=more).json() == by_name


def test_columns_first_and_json_for_a_matrix(client) -> None:
    X = np.asarray(dataset()[0].X, np.float64)
    plain = loaded(client.post("/rank", content=npy(X), headers=NPY).content)
    turned = client.post("/rank", content=npy(np.asfortranarray(X)), headers=NPY).content
    assert loaded(turned).tolist() == plain.tolist()
    told = client.post("/rank?answer=json&explain=2", content=npy(X), headers=NPY).json()
    assert told["order"] == np.argsort(-plain, kind="stable").tolist()
    assert len(told["explanations"][0]["parts"]) == 2


def test_ids_of_any_size_come_back_exactly(client) -> None:
    for ids in ([2**64 - 1, -(2**63)], [10**20, 10**20 + 1], ["", "\u00e9\n"]):
        rows = [{"id": each, "features": [1, 2, 3, 4]} for each in ids]
        assert client.post("/rank", json={"candidates": rows}).json()["order"] == ids


def test_unknown_fields_are_refused_by_name(client) -> None:
    X = np.asarray(dataset()[0].X, np.float64)
    good = body(X)
    inside = {**good, "candidates": [{**good["candidates"][0], "Id": "x"}, *good["candidates"][1:]]}
    for path, sent, name in (
        ("/rank", {**good, "topk": 3}, "topk"),
        ("/rank?top=3", good, "top"),
        ("/rank", inside, "Id"),
        ("/batch", {"queries": [good], "topk": 3}, "topk"),
        ("/batch", [{**good, "top": 3}], "top"),
    ):
        told = client.post(path, json=sent)
        assert told.status_code == 422
        assert f"unknown field {name!r}" in told.json()["detail"]
    told = client.post("/rank?answer=order&topk=3", content=npy(X), headers=NPY)
    assert (told.status_code, "unknown field 'topk'" in told.json()["detail"]) == (422, True)
