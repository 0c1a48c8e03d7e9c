"""Limits on the cost of requests, which are checked before the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core import DataError
from firstpage.learning.models.model_files import read_model
from firstpage.serving import served_model
from firstpage.serving.limits import Limits
from firstpage.serving.rank_request import RawRequest
from firstpage.serving.ranking import TooSlow, rank
from tests.serving.conftest import NPY, arrow, body, clients, dataset, npy, write_model

X = np.asarray(dataset()[0].X)


def test_large_requests_are_processed_in_a_thread(tmp_path: Path) -> None:
    linear = served_model.load(write_model(tmp_path / "linear.json"))
    trees = served_model.load(write_model(tmp_path / "trees.json", "lightgbm"))
    few, many = npy(X), npy(np.ones((6000, 4)))
    lengths = {"lengths": ",".join(["1000"] * 6)}
    explained = {"answer": "json", "explain": "2"}
    media = NPY["content-type"]
    for model, content, params, batch, slow in (
        (linear, few, {}, False, False),
        (linear, few, explained, False, False),
        (trees, few, {}, False, False),
        (trees, few, explained, False, True),
        (linear, many, lengths, True, True),
        (linear, many, {**lengths, **explained, "top": "1"}, True, True),
    ):
        work = (model, RawRequest(media, content, params, batch, model.names, Limits()))
        if slow:
            with pytest.raises(TooSlow):
                rank(*work, inline=True)
            assert rank(*work).queries == (6 if batch else 1)
        else:
            assert rank(*work, inline=True).candidates == len(X)
    for client in clients(tmp_path / "trees.json"):
        hidden = (
            b'{"\\u0065xplain": 1,' + client.build_request("POST", "/", json=body(X)).content[1:]
        )
        answer = client.post("/rank", content=hidden).json()
        assert len(answer["explanations"]) == len(X)


def test_explanations_have_a_limit(model: Path) -> None:
    for client in clients(model, Limits(explained_candidates=20, explanation_terms=30)):
        queries = [body(X)] * 4
        for options, status in (
            ({}, 200),
            ({"explain": 1}, 413),
            ({"explain": 1, "top": 5}, 200),
            ({"explain": 2, "top": 5}, 413),
            ({"explain": 9, "top": 1}, 200),
        ):
            response = client.post("/batch", json={"queries": queries, **options})
            assert response.status_code == status, response.text
        assert "'top'" in client.post("/batch", json={"queries": queries, "explain": 1}).text


def test_forged_matrix_headers_are_refused(client: Any) -> None:
    data = np.ones((1, 4)).tobytes()
    for shape in (
        "(True, 4)",
        "(-1, -4)",
        "(1, 4.0)",
        "(1" + "0" * 3000 + ", 4)",
        "None",
        "(1,) * 9",
    ):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        head = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
        response = client.post("/rank", content=head + data, headers=NPY)
        assert response.status_code == 422
        assert len(response.json()["detail"]) < 200


def test_large_ids_are_returned_in_arrow(client: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    large = pa.array([2**64 - 1, 0, 5], pa.uint64())
    names = ("bm25", "pagerank", "clicks", "age")
    sent = arrow(id=large, query=large, **{name: np.ones(3) for name in names})
    for path in ("/rank", "/batch"):
        response = client.post(
            path, content=sent, headers={"content-type": "application/vnd.apache.arrow.stream"}
        )
        table = pa.ipc.open_stream(response.content).read_all()
        assert table["id"].to_pylist() == large.to_pylist()


def test_too_large_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_model(tmp_path / "model.json")
    assert served_model.load(path).names
    monkeypatch.setattr(served_model, "MAX_FILE_BYTES", 100)
    with pytest.raises(DataError, match="larger"):
        served_model.load(path)


def test_file_replaced_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal bytes before and after are not enough: another file was read in between."""
    path = write_model(tmp_path / "model.json")
    real = read_model

    def swapped(model_path: Path) -> Any:
        path.rename(tmp_path / "aside")
        write_model(path, "stumps")
        contents = real(model_path)
        (tmp_path / "aside").rename(path)
        return contents

    monkeypatch.setattr(served_model, "read_model", swapped)
    with pytest.raises(DataError, match="changed while it was being read"):
        served_model.load(path)
