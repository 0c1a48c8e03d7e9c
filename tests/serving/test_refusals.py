"""Refused requests: their status, and a message that says what to do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.serving.app import Serving
from firstpage.serving.limits import Limits
from firstpage.serving.watched_model import WatchedModel
from tests.serving.conftest import (
    ARROW,
    NAMES,
    NPY,
    arrow,
    body,
    clients,
    dataset,
    npy,
    write_model,
)

X = np.asarray(dataset()[0].X, np.float64)
ONES = np.ones((3, 4))


def changed(at: int, **features: object) -> dict:
    message = body(X)
    message["candidates"][at]["features"] |= features
    return message


def lacking(name: str) -> dict:
    message = body(X)
    del message["candidates"][2]["features"][name]
    return message


def fewer() -> dict:
    return {"candidates": [{"id": "d", "features": [1, 2, 3]}]}


JSON = {
    "a feature is missing": (lacking("clicks"), "candidate 'd2' lacks the feature 'clicks'"),
    "too few": (fewer(), "candidate 'd' has 3 features, but the model has 4"),
    "null": (changed(1, age=None), "candidate 'd1': feature 'age' is null, and this model needs"),
    "text in a list": (
        {"candidates": [{"features": [1, 2, 3, 4]}, {"features": [1, 2, 3, "4"]}]},
        "candidate 1: feature 'age' is '4', not a number.",
    ),
    "text beyond the list": (
        {"candidates": [{"features": [1, 2, 3, 4, 5, "6"]}]}, "candidate 0 has 6 features, but the model has 4.",
    ),
    "text": (changed(1, age="7"), "feature 'age' is '7', not a number"),
    "too large": (changed(1, age=1e999), "is not valid JSON"),  # Python writes Infinity
    "no candidates": ({"candidates": []}, "has no candidates"),
    "no list": ({"candidates": 3}, "the body: 'candidates' must be a list of candidates."),
    "no object": ([1], "the body must be an object with 'candidates'."),
    "no candidate": ({"candidates": [{"features": [1, 2, 3, 4]}, 7]}, "candidate 1 must be an object with 'features'."),
    "no features": ({"candidates": [{"id": 1}]}, "candidate 0 must be an object with 'features'"),
    "features of a wrong type": (
        {"candidates": [{"id": 1, "features": 3}]}, "must be an object by name, or a list",
    ),
    "one id twice": (
        {"candidates": [{"id": 1, "features": [1, 2, 3, 4]}] * 2}, "two candidates with the id 1",
    ),
    "an id of a wrong type": (
        {"candidates": [{"id": [1], "features": [1, 2, 3, 4]}]},
        "candidate 0: 'id' must be a string or an integer.",
    ),
    "a query of a wrong type": ({**body(X), "query": [[]]}, "'query' must be a string or an integer, or left out."),
    "explain": ({**body(X), "explain": "much"}, "'explain' must be true, false or a number"),
    "top": ({**body(X), "top": 0}, "'top' must be a number"),
    "an id is missing": (
        {"candidates": [{"id": 1, "features": [1, 2, 3, 4]}, {"features": [1, 2, 3, 4]}]},
        "candidate 1 has no id; give ids to all candidates, or to none.",
    ),
    "an integer without end": (changed(1, age=10**4000), "a feature is too large"),
}  # fmt: skip


@pytest.mark.parametrize("name", JSON)
def test_invalid_json_is_refused(client, name: str) -> None:
    sent, words = JSON[name]
    response = client.post(
        "/rank", content=json.dumps(sent), headers={"content-type": "application/json"}
    )
    assert response.status_code == 422
    detail = response.json()["detail"]
    assert "\n" not in detail
    assert words is None or words in detail


FEATURES = '"features": {"bm25": 1, "pagerank": 2, "age": 3, "clicks": 4'
REPEATED = {
    '{"candidates": [{FEATURES}}], "candidates": []}': "candidates",
    '{"candidates": [{FEATURES}}], "query": 1, "query": null}': "query",
    '{"candidates": [{FEATURES}, "features": [1, 2, 3, 4]}]}': "features",
    '{"candidates": [{FEATURES, "age": 9}}]}': "age",
    '{"candidates": [{FEATURES, "age" \t: 9}}], "query": null}': "age",
    '{"candidates": [{FEATURES, "\\u0061ge": 9}}]}': "age",
    '{"candidates": [{"id": "a:b", "id": "c", FEATURES}}]}': "id",
    '{"candidates": [{"id": "\\u003a", FEATURES, "age": 9}}]}': "age",
    '{"query": "\\":", "candidates": [{FEATURES, "bm25": 9}}]}': "bm25",
}
UNREPEATED = [
    '{"candidates": [{FEATURES}}], "explain": false, "top": null, "query": null}',
    '{"candidates" : [{"id": "http://a:b", FEATURES}}], "query" :"c: d"}',
    '{"candidates": [{"id": null, FEATURES, "a:b": 9, "c\\":": 7}}]}',
    '{"candidates": [{"id": "\\u003a\\":", FEATURES, "x": {"y": [{"z": "1"}]}}}]}',
]


@pytest.mark.parametrize("sent", REPEATED)
def test_repeated_keys_are_refused(client, sent: str) -> None:
    """Otherwise the last one would count without a word."""
    query = sent.replace("FEATURES", FEATURES)
    for path, content in (
        ("/rank", query),
        ("/batch", f"[{query}]"),
        ("/batch", f'{{"queries": [{query}]}}'),
    ):
        response = client.post(path, content=content)
        assert response.status_code == 422
        assert f"the key '{REPEATED[sent]}' occurs twice in one" in response.json()["detail"]


@pytest.mark.parametrize("sent", UNREPEATED)
def test_colons_in_strings_are_no_keys(client, sent: str) -> None:
    assert client.post("/rank", content=sent.replace("FEATURES", FEATURES)).status_code == 200


def test_infinite_scores_are_refused(client, model) -> None:
    """The largest features with the signs of their weights have an infinite sum."""
    weights = np.array(json.loads(model.read_text())["scorer"]["weights"])
    assert np.abs(weights).sum() > 1.01
    row = (np.sign(weights) * np.finfo(np.float64).max).tolist()
    response = client.post("/rank", json={"candidates": [{"features": row}] * 2})
    assert (response.status_code, "\n" in response.json()["detail"]) == (422, False)


def test_features_too_large_to_be_explained_are_refused(tmp_path: Path) -> None:
    """XGBoost computes in float32 and rejects them."""
    for client in clients(write_model(tmp_path / "model.json", "xgboost")):
        message = {"candidates": [{"features": [1e300] * 4}] * 2, "explain": 2}
        response = client.post("/rank", json=message)
        assert (response.status_code, "explained" in response.json()["detail"]) == (422, True)
        del message["explain"]
        assert client.post("/rank", json=message).status_code == 200


BINARY = {
    "nan": (npy(np.where(ONES > 0, np.nan, 0)), NPY, 422, "candidate 0: feature 'bm25' is nan"),
    "inf": (npy(np.full((1, 4), np.inf, np.float32)), NPY, 422, "is inf"),
    "wrong count": (npy(np.ones((3, 5))), NPY, 422, "has 5 features, but the model has 4"),
    "no matrix": (npy(np.ones(4)), NPY, 422, "shape (4,)"),
    "integers": (npy(np.ones((3, 4), int)), NPY, 422, "of type int64"),
    "cut": (npy(ONES)[:-8], NPY, 422, "the body has another length"),
    "longer": (npy(ONES) + b"12345678", NPY, 422, "the body has another length"),
    "no npy": (b"{}", NPY, 422, "not a .npy file"),
    "a long header": (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b"{" * 99, NPY, 422, "header"),
    "a wild header": (b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16, NPY, 422, "cannot be read"),
    "no arrow": (b"\x00" * 64, ARROW, 422, None),
    "garbage arrow": (b"abcdefgh" * 9, ARROW, 422, "not an Arrow stream"),
    "a column is missing": (
        arrow(bm25=[1.0], pagerank=[1.0], age=[1.0]), ARROW, 422, "lacks the feature 'clicks'",
    ),
    "a column of texts": (
        arrow(**{name: ["x"] for name in NAMES}), ARROW, 422, "must contain numbers",
    ),
    "unknown type": (b"x", {"content-type": "text/csv"}, 415, "'text/csv' is not supported"),
    "zipped": (b"x", {**NPY, "content-encoding": "gzip"}, 415, "compressed bodies"),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_invalid_binary_bodies_are_refused(client, name: str) -> None:
    content, headers, status, words = BINARY[name]
    response = client.post("/rank", content=content, headers=headers)
    assert response.status_code == status, response.text
    assert words is None or words in response.json()["detail"]


def test_pickles_are_not_read(client) -> None:
    objects = np.array([[print] * 4], object)
    import io

    out = io.BytesIO()
    np.save(out, objects, allow_pickle=True)
    response = client.post("/rank", content=out.getvalue(), headers=NPY)
    assert (response.status_code, "of type object" in response.json()["detail"]) == (422, True)


def test_compressed_and_dictionary_arrow_are_refused(client) -> None:
    pa = pytest.importorskip("pyarrow")
    columns = {name: pa.array(np.zeros(900)) for name in NAMES}
    table = pa.table(columns)
    for codec in ("zstd", "lz4"):
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(sink, table.schema, options=options) as out:
            out.write_table(table)
        response = client.post("/rank", content=bytes(sink.getvalue()), headers=ARROW)
        assert (response.status_code, "compressed" in response.json()["detail"]) == (422, True)
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    sent = arrow(id=words, **{name: np.ones(3) for name in NAMES})
    response = client.post("/rank", content=sent, headers=ARROW)
    assert (response.status_code, "dictionary" in response.json()["detail"]) == (422, True)
    sent = arrow(query=["a", "b", "a"], **{name: np.ones(3) for name in NAMES})
    response = client.post("/batch", content=sent, headers=ARROW)
    assert (response.status_code, "must be adjacent" in response.json()["detail"]) == (422, True)


@pytest.mark.slow
def test_corrupt_arrow_never_fails_the_server(client) -> None:
    sent = arrow(id=["a", "b", "c"], **{name: np.arange(3.0) for name in NAMES})
    rng = np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(sent)
        for at in rng.integers(0, len(sent), 3):
            broken[at] = rng.integers(0, 256)
        response = client.post("/rank", content=bytes(broken), headers=ARROW)
        assert response.status_code in (200, 413, 422), response.text


@pytest.mark.slow
def test_corrupt_json_never_fails_the_server(client) -> None:
    """Replace bytes with characters that are special to parsers."""
    hostile = [b'"', b"\\", b"\\ud800", b"\xff", b"`", b" - at `$.candidates[0].id`", b"{", b"]", b"1e400", b"-", b"9" * 5000, b"null"]  # fmt: skip
    sent = [
        json.dumps(each).encode()
        for each in (body(X[:2], top=1), [body(X[:1])], {"queries": [body(X[:1])]})
    ]
    rng = np.random.default_rng(0)
    for _ in range(400):
        broken = bytearray(sent[rng.integers(len(sent))])
        for at in rng.integers(0, len(broken), 2):
            broken[at : at + rng.integers(0, 9)] = hostile[rng.integers(len(hostile))]
        for path in ("/rank", "/batch"):
            response = client.post(path, content=bytes(broken))
            assert response.status_code in (200, 422), response.text
            assert response.status_code == 200 or len(response.json()["detail"]) < 300


def test_limit_errors_name_their_option(model: Path) -> None:
    small = Limits(candidates=2, queries=1, bytes=4000)
    for client in clients(model, small):
        many = client.post("/rank", content=npy(ONES), headers=NPY)
        assert (many.status_code, "--max-candidates" in many.json()["detail"]) == (413, True)
        many = client.post("/rank", json=body(X[:3]))
        assert (many.status_code, "has 3 candidates" in many.json()["detail"]) == (413, True)
        long = client.post("/rank", content=b"x" * 4001)
        assert (long.status_code, "--max-bytes" in long.json()["detail"]) == (413, True)
        streamed = client.post("/rank", content=iter([b"x" * 3000] * 3))  # without Content-Length
        assert (streamed.status_code, "4,000 bytes" in streamed.json()["detail"]) == (413, True)
        several = client.post("/batch", json=[body(X[:1])] * 2)
        assert (several.status_code, "--max-queries" in several.json()["detail"]) == (413, True)
        assert client.post("/rank", content=npy(ONES[:2]), headers=NPY).status_code == 200


def test_requests_beyond_the_limit_get_503_with_retry_after(model: Path) -> None:
    for client in clients(model, Limits(concurrent_requests=2)):
        client.app.admission.answering = 2
        response = client.post("/rank", content=npy(ONES), headers=NPY)
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert client.get("/health").status_code == 200  # never refused
        client.app.admission.answering = 0
        assert client.post("/rank", content=npy(ONES), headers=NPY).status_code == 200


class SlowRequest:
    """A request whose body continues after `start` only when `resume` is set."""

    def __init__(self, app: Serving, start: bytes, rest: bytes = b"") -> None:
        self.messages = [(start, bool(rest)), (rest, False)]
        self.resume = asyncio.Event()
        self.status: int | None = None
        self.task = asyncio.create_task(app(scope(), self.receive, self.send))

    async def receive(self) -> dict[str, Any]:
        if len(self.messages) == 1:
            await self.resume.wait()
        content, more = self.messages.pop(0)
        return {"type": "http.request", "body": content, "more_body": more}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]


def scope() -> dict[str, Any]:
    return {
        "type": "http", "method": "POST", "path": "/rank", "query_string": b"", "scheme": "http",
        "headers": [(b"content-type", NPY["content-type"].encode())],
    }  # fmt: skip


def test_slow_bodies_occupy_no_slot(model: Path) -> None:
    """More slow bodies than slots do not block other requests; all are answered in the end."""
    watched = WatchedModel(model)
    watched.reload()
    content = npy(ONES)

    async def run() -> None:
        app = Serving(watched, Limits(concurrent_requests=2), poll=None)
        slow = [SlowRequest(app, content[:-9], content[-9:]) for _ in range(5)]
        await asyncio.sleep(0)
        quick = SlowRequest(app, content)
        await quick.task
        assert quick.status == 200
        for request in slow:
            request.resume.set()
            await request.task
        assert [request.status for request in slow] == [200] * 5
        assert (app.admission.answering, app.admission.pending_bytes) == (0, 0)
        assert app.metrics.registry.get_sample_value("firstpage_requests_in_flight") == 0

    asyncio.run(run())


def test_incomplete_bodies_have_a_total_limit(model: Path) -> None:
    watched = WatchedModel(model)
    watched.reload()

    async def run() -> None:
        app = Serving(watched, Limits(concurrent_requests=2, bytes=4000), poll=None)
        slow = [SlowRequest(app, b"x" * 3000, b"x") for _ in range(4)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert [request.status for request in slow] == [None, None, 503, 503]
        assert app.admission.pending_bytes == 6000
        for request in slow:
            request.resume.set()
            await request.task
        assert [request.status for request in slow][:2] == [422, 422]
        assert app.admission.pending_bytes == 0

    asyncio.run(run())


def test_invalid_batch_lengths_are_refused(client) -> None:
    for lengths, words in (("", "?lengths="), ("2,x", "?lengths="), ("2,2", "add up to 4")):
        response = client.post(f"/batch?lengths={lengths}", content=npy(ONES), headers=NPY)
        assert (response.status_code, words in response.json()["detail"]) == (422, True)
    assert client.post("/batch?lengths=1,2", content=npy(ONES), headers=NPY).status_code == 200


ARROW_ONES = arrow(**{name: np.ones(3) for name in NAMES})
ARROW_TWICE = arrow(query=["a", "b", "b"], id=[1, 1, 1], **{name: np.ones(3) for name in NAMES})


@pytest.mark.parametrize(
    ("path", "sent", "headers", "words"),
    [
        ("/rank?top=2", npy(ONES), NPY, "an array of scores has one per row, whatever 'top' is"),
        ("/batch?top=2&lengths=3&answer=scores", npy(ONES), NPY, "set ?answer=order or"),
        ("/rank?answer=order", ARROW_ONES, ARROW, "has the column 'rank'; leave out ?answer=order"),
        ("/rank?top=2", ARROW_ONES, ARROW, "'top' with an Arrow body needs a column 'id'"),
        ("/rank", ARROW_TWICE, ARROW, "the table has two candidates with the id 1."),
        ("/batch", ARROW_TWICE, ARROW, "query 'b' has two candidates with the id 1."),
        ("/rank?answer=order&answer=scores", npy(ONES), NPY, "the query string has 'answer' twice."),
    ],
)  # fmt: skip
def test_binary_requests_that_cannot_be_followed_are_refused(
    client, path: str, sent: bytes, headers: dict[str, str], words: str
) -> None:
    response = client.post(path, content=sent, headers=headers)
    assert response.status_code == 422, response.text
    assert words in response.json()["detail"]


def test_unknown_routes_and_methods_are_refused(client) -> None:
    assert client.get("/nowhere").status_code == 404
    assert client.get("/rank").status_code == 405
    assert client.get("/rank").headers["allow"] == "POST"
    assert client.get("/rank/", follow_redirects=False).status_code == 404
    assert client.post("/health").headers["allow"] == "GET, HEAD"
    for name in ("top", "explain", "answer"):  # an empty value is not a default
        response = client.post(f"/rank?{name}=", content=npy(ONES), headers=NPY)
        assert (response.status_code, name in response.json()["detail"]) == (422, True)
    assert client.post("/rank?answer=csv", content=npy(ONES), headers=NPY).status_code == 422
    assert client.post("/rank?explain=3", content=npy(ONES), headers=NPY).status_code == 422


def test_internal_error_is_one_line_and_is_logged(client, monkeypatch, serving_log) -> None:
    from firstpage.serving import app

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(app, "rank", fails)
    response = client.post("/rank", content=npy(ONES), headers=NPY)
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "secret" in serving_log.getvalue()
