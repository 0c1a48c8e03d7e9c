"""Answers: scores of the model in every format, order and explanations."""

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
def test_every_format_returns_the_scores_of_the_model(kind: str, tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.json", kind)
    data = dataset()
    X = np.asarray(data[3].X)
    expected = fp.load(path).predict(data[3])
    order = np.argsort(-expected, kind="stable").tolist()
    columns = {name: X[:, i] for i, name in enumerate(NAMES)}
    for client in clients(path):
        response = client.post("/rank", content=npy(X), headers=NPY)
        assert loaded(response.content).tolist() == expected.tolist()
        response = client.post("/rank?answer=order&top=5", content=npy(X), headers=NPY)
        assert loaded(response.content).tolist() == order[:5]
        answer = client.post("/rank", json=body(X)).json()
        assert answer["order"] == [f"d{i}" for i in order]
        np.testing.assert_allclose(answer["scores"], expected[order], rtol=1e-5)
        response = client.post("/rank", content=arrow(**columns), headers=ARROW)
        table = pytest.importorskip("pyarrow").ipc.open_stream(response.content).read_all()
        assert table["score"].to_pylist() == expected.tolist()
        assert [order[r - 1] for r in table["rank"].to_pylist()] == list(range(len(X)))


@pytest.mark.parametrize("kind", RANKERS)
def test_contributions_add_up_to_the_score(kind: str, tmp_path: Path) -> None:
    X = np.asarray(dataset()[5].X, np.float64)
    for client in clients(write_model(tmp_path / "model.json", kind)):
        answer = client.post("/rank", json=body(X, explain=len(NAMES), top=4)).json()
        assert len(answer["explanations"]) == len(answer["order"]) == 4
        for score, explanation, name in zip(
            answer["scores"], answer["explanations"], answer["order"], strict=True
        ):
            contributions = [abs(p["part"]) for p in explanation["parts"]]
            assert contributions == sorted(contributions, reverse=True)
            if kind == "cascade":
                assert answer["explained"] == "score of a voter"
                continue
            total = explanation["base"] + sum(p["part"] for p in explanation["parts"])
            assert total == pytest.approx(score, rel=1e-5, abs=1e-6)
            row = X[int(name[1:])]
            assert all(p["value"] == row[NAMES.index(p["feature"])] for p in explanation["parts"])


def test_contributions_of_a_network_are_gradients_times_distances(tmp_path: Path) -> None:
    """Compare contributions with finite differences of the scores, all over HTTP."""
    path = write_model(tmp_path / "model.json", "network")
    mean = np.array(json.loads(path.read_text())["scorer"]["mean"])
    X, step = np.asarray(dataset()[5].X, np.float64)[:6], 1e-4

    for client in clients(path):
        answer = client.post("/rank", json=body(X, explain=4)).json()
        assert answer["explained"] == "value x gradient"
        contributions = np.zeros(X.shape)
        for name, explanation in zip(answer["order"], answer["explanations"], strict=True):
            for part in explanation["parts"]:
                contributions[int(name[1:]), NAMES.index(part["feature"])] = part["part"]
        for j in range(4):
            shift = step * np.eye(4)[j]
            more, less = (
                loaded(client.post("/rank", content=npy(rows), headers=NPY).content)
                for rows in (X + shift, X - shift)
            )
            gradient = (more - less) / (2 * step)
            np.testing.assert_allclose(
                contributions[:, j], gradient * (X[:, j] - mean[j]), atol=1e-6
            )
        assert np.abs(contributions).max() > 0.1


def test_batch_equals_single_queries(tmp_path: Path) -> None:
    data = dataset()
    few = data[2:5]
    X, lengths = np.asarray(few.X), np.diff(few.offsets)
    for client in clients(write_model(tmp_path / "model.json", "scaled")):
        single = [
            loaded(client.post("/rank", content=npy(np.asarray(few[i].X)), headers=NPY).content)
            for i in range(3)
        ]
        headers = {**NPY, "x-lengths": ", ".join(map(str, lengths))}
        batch_scores = loaded(client.post("/batch", content=npy(X), headers=headers).content)
        assert batch_scores.tolist() == np.concatenate(single).tolist()
        queries = [body(np.asarray(few[i].X), query=f"q{i}") for i in range(3)]
        answer = client.post("/batch", json={"queries": queries, "top": 2, "explain": 1}).json()
        assert [query_answer["query"] for query_answer in answer["answers"]] == ["q0", "q1", "q2"]
        for query_answer, scores in zip(answer["answers"], single, strict=True):
            assert query_answer["order"] == [
                f"d{i}" for i in np.argsort(-scores, kind="stable")[:2]
            ]
            assert len(query_answer["explanations"]) == 2
        bare = client.post("/batch", json=queries).json()
        assert len(bare["answers"][0]["order"]) == lengths[0]
        pa = pytest.importorskip("pyarrow")
        flat = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
        sent = arrow(query=np.repeat(["a", "b", "c"], lengths), features=flat)
        response = client.post("/batch", content=sent, headers=ARROW)
        table = pa.ipc.open_stream(response.content).read_all()
        assert table["score"].to_pylist() == np.concatenate(single).tolist()
        assert table["query"].to_pylist() == np.repeat(["a", "b", "c"], lengths).tolist()


def test_top_limits_an_arrow_answer(client) -> None:
    few = dataset()[2:5]
    X, lengths = np.asarray(few.X), np.diff(few.offsets)
    columns = dict(zip(NAMES, X.T, strict=True), id=np.arange(len(X)))
    sent = arrow(query=np.repeat(["a", "b", "c"], lengths), **columns)
    tables = [
        pytest.importorskip("pyarrow").ipc.open_stream(response.content).read_all()
        for response in (
            client.post("/batch", content=sent, headers=ARROW),
            client.post("/batch?top=2", content=sent, headers=ARROW),
        )
    ]
    best = [row for row in tables[0].to_pylist() if row["rank"] <= 2]
    assert tables[1].to_pylist() == best
    assert [row["query"] for row in best] == ["a", "a", "b", "b", "c", "c"]


def test_features_may_be_lists_or_have_extra_names_and_ids_are_optional(client) -> None:
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


def test_fortran_order_and_json_answers_of_a_matrix(client) -> None:
    X = np.asarray(dataset()[0].X, np.float64)
    plain = loaded(client.post("/rank", content=npy(X), headers=NPY).content)
    turned = client.post("/rank", content=npy(np.asfortranarray(X)), headers=NPY).content
    assert loaded(turned).tolist() == plain.tolist()
    answer = client.post("/rank?answer=json&explain=2", content=npy(X), headers=NPY).json()
    assert answer["order"] == np.argsort(-plain, kind="stable").tolist()
    assert len(answer["explanations"][0]["parts"]) == 2


def test_ids_of_any_size_are_returned_exactly(client) -> None:
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
        response = client.post(path, json=sent)
        assert response.status_code == 422
        assert f"unknown field {name!r}" in response.json()["detail"]
    response = client.post("/rank?answer=order&topk=3", content=npy(X), headers=NPY)
    assert (response.status_code, "unknown field 'topk'" in response.json()["detail"]) == (
        422,
        True,
    )
