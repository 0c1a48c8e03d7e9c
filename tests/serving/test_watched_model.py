"""The model in service: health, description, metrics and replacement."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from dataclasses import replace
from html import unescape
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from firstpage.learning.models.model_files import FILE
from firstpage.learning.scorers.linear import LinearScoring
from firstpage.serving.app import Serving
from firstpage.serving.served_model import ServedModel
from firstpage.serving.watched_model import WatchedModel
from tests.narrow import present
from tests.serving.conftest import (
    NAMES,
    NPY,
    TestClient,
    body,
    clients,
    dataset,
    linear_model,
    loaded,
    npy,
    overflowing,
    write_model,
)

X = np.asarray(dataset()[0].X)


def test_health_and_model_describe_the_model(client, model: Path) -> None:
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    health = client.get("/health").json()
    assert (health["status"], health["model"], health["digest"]) == ("ok", "ListMLE", digest)
    description = client.get("/model").json()
    assert description["features"] == {
        "count": 4,
        "names": ["bm25", "pagerank", "clicks", "age"],
        "missing": False,
    }
    assert description["by_query"] is False
    assert "curve" not in description["training"]
    assert description["training"]["iterations"] > 0
    assert client.post("/rank", json=body(X)).headers["x-model"] == digest


def test_requests_without_a_model_are_503_until_one_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for client in clients(path, token="t"):
        for response in (client.get("/health"), client.post("/rank", json=body(X))):
            assert response.status_code == 503
        assert client.get("/model").headers["retry-after"] == "1"
        write_model(path)
        assert client.post("/reload", headers={"authorization": "Bearer t"}).status_code == 200
        assert client.post("/rank", json=body(X)).status_code == 200


def test_reload_needs_the_token(model: Path) -> None:
    for client in clients(model):
        assert client.post("/reload").status_code == 403
    for client in clients(model, token="right"):
        assert client.post("/reload").status_code == 401
        wrong = client.post("/reload", headers={"authorization": "Bearer wrong"})
        assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, "Bearer")
        good = client.post("/reload", headers={"authorization": "Bearer right"})
        assert good.json()["reloads"] == 0  # the file is the same


def test_invalid_file_is_refused_and_the_old_model_stays(model: Path) -> None:
    for client in clients(model, token="t"):
        authorized = {"authorization": "Bearer t"}
        before = client.post("/rank", content=npy(X), headers=NPY)
        valid = model.read_bytes()
        for broken in (valid[:-40], valid.replace(b"ListMLE", b"ListMLX"), b"", b"{}"):
            model.write_bytes(broken)
            response = client.post("/reload", headers=authorized)
            assert (response.status_code, "refused" in response.json()["detail"]) == (422, True)
            after = client.post("/rank", content=npy(X), headers=NPY)
            assert after.content == before.content
            health = client.get("/health")
            assert health.status_code == 200
            assert health.json()["refused"]
        model.unlink()
        assert client.post("/reload", headers=authorized).status_code == 422
        assert "firstpage_model_refusals_total 5" in client.get("/metrics").text
        assert "firstpage_model_stale 1" in client.get("/metrics").text
        write_model(model, "lightgbm")
        assert client.post("/reload", headers=authorized).json()["reloads"] == 1
        assert client.get("/health").json()["refused"] is None
        assert "firstpage_model_stale 0" in client.get("/metrics").text
        other = client.post("/rank", content=npy(X), headers=NPY)
        assert loaded(other.content).tolist() != loaded(before.content).tolist()


@pytest.mark.parametrize("kind", ["linear", "scaled", "global"])
def test_a_model_whose_scores_overflow_is_refused(
    tmp_path: Path, kind: str, serving_log: StringIO
) -> None:
    model = write_model(tmp_path / "model.json", kind)
    for client in clients(model, token="t"):
        before = client.post("/rank", json=body(X)).json()
        overflowing(model)
        response = client.post("/reload", headers={"authorization": "Bearer t"})
        reason = "model.json: computes scores that are not finite: its largest weight is 1e+308"
        assert response.status_code == 422
        for text in (
            response.json()["detail"],
            client.get("/health").json()["refused"],
            serving_log.getvalue(),
        ):
            assert reason in text
        assert client.get("/health").json()["status"] == "degraded"
        assert client.post("/rank", json=body(X)).json() == before
    watched = WatchedModel(model)
    assert not watched.reload().accepted
    assert watched.model is None


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [("inf", "computes scores that are not finite"), ("x", "lightgbm refuses: no conversion")],
)
def test_trees_with_a_damaged_leaf_are_refused(tmp_path: Path, leaf: str, reason: str) -> None:
    """A single leaf, which no probe may reach; LightGBM ended the process at one that it refuses."""
    model = write_model(tmp_path / "model.json", "lightgbm")
    contents = json.loads(model.read_text())
    contents["scorer"]["text"] = re.sub(
        r"(leaf_value=\S+ )\S+", rf"\1{leaf}", contents["scorer"]["text"], count=1
    )
    for key in ("format", "version", "sha256"):
        del contents[key]
    model.write_text(json.dumps(FILE.with_header(contents)))
    report = WatchedModel(model).reload()
    assert reason in str(report.refused)


def test_a_model_is_at_fault_if_features_are_ordinary(model: Path, serving_log: StringIO) -> None:
    """Probes find most of such models; a request finds the others."""
    watched = WatchedModel(model)
    watched.reload()
    scoring = LinearScoring(np.full(4, 1e308))
    broken = replace(present(watched.model).model, scoring=scoring)
    watched.model = ServedModel(broken, present(watched.model).digest)
    with TestClient(Serving(watched, poll=None)) as client:
        for _ in range(2):
            response = client.post("/rank", json=body(np.ones((2, 4))))
            assert (response.status_code, "model of this server" in response.text) == (500, True)
        assert serving_log.getvalue().count("a score is not finite") == 1
        response = client.post("/rank", json=body(np.full((2, 4), 1e200)))
        assert response.status_code == 422
        assert "a score is not finite: feature 'bm25' is 1e+200" in response.json()["detail"]


OTHER = {  # features of the next model, and the message about them
    "fewer": (NAMES[:3], "3 instead of 4; removed: 'age'"),
    "more": ([*NAMES, "price"], "5 instead of 4; added: 'price'"),
    "renamed": ([*NAMES[:3], "price"], "4 instead of 4; added: 'price'; removed: 'age'"),
    "in another order": (NAMES[::-1], "the same names in another order"),
    "without names": (None, "added: '1', '2', '3', '4'; removed: 'bm25'"),
    "many": ([f"f{i}" for i in range(50)], "'f4' and 45 more"),
}


@pytest.mark.parametrize("kind", OTHER)
def test_model_with_other_features_is_refused_and_the_old_one_stays(
    model: Path, kind: str, serving_log: StringIO
) -> None:
    names, expected = OTHER[kind]
    for client in clients(model, token="t"):
        before = client.get("/health").json()
        linear_model(model, names)
        response = client.post("/reload", headers={"authorization": "Bearer t"})
        report = response.json()
        assert (response.status_code, report["accepted"], report["changed"]) == (422, False, False)
        assert expected in report["detail"]
        assert "--allow-new-features" in report["refused"]
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
        assert health.json()["refused"] == report["refused"]
        assert health.json()["digest"] == before["digest"]
        assert "firstpage_model_stale 1" in client.get("/metrics").text
        assert "firstpage_model_refusals_total 1" in client.get("/metrics").text
        assert expected in serving_log.getvalue()
        assert expected in unescape(client.get("/").text)
        assert client.post("/rank", json=body(X)).status_code == 200
        write_model(model)
        assert client.post("/reload", headers={"authorization": "Bearer t"}).status_code == 200
        assert client.get("/health").json()["status"] == "ok"


def test_valid_file_after_a_refused_one_is_logged(model: Path, serving_log: StringIO) -> None:
    """This holds also if the valid file has the model in service."""
    good, watched = model.read_bytes(), WatchedModel(model)
    assert watched.reload().accepted
    assert "recovered" not in serving_log.getvalue()
    model.write_bytes(b"half")
    assert not watched.reload().accepted
    model.write_bytes(good)
    assert watched.reload().accepted
    assert f"recovered: {model} is valid again" in serving_log.getvalue()
    serving_log.truncate(0)
    assert watched.reload().accepted
    assert "recovered" not in serving_log.getvalue()


def test_reload_reports_what_changed(model: Path) -> None:
    first = hashlib.sha256(model.read_bytes()).hexdigest()
    old = {"digest": first, "ranker": "ListMLE", "features": 4}
    for client in clients(model, token="t"):

        def reload(client=client) -> dict:
            return client.post("/reload", headers={"authorization": "Bearer t"}).json()

        report = reload()
        assert (report["accepted"], report["changed"], report["old"], report["new"]) == (
            True,
            False,
            old,
            old,
        )
        write_model(model, "stumps")
        second = hashlib.sha256(model.read_bytes()).hexdigest()
        new = {"digest": second, "ranker": "RankBoost", "features": 4}
        report = reload()
        assert (report["accepted"], report["changed"], report["old"], report["new"]) == (
            True,
            True,
            old,
            new,
        )
        assert report["features"] == {"added": [], "removed": []}
        assert (report["reloads"], report["refused"]) == (1, None)
        linear_model(model, [*NAMES[:2], "price"])
        assert reload()["features"] == {"added": ["price"], "removed": ["clicks", "age"]}
        model.write_bytes(b"half")
        assert reload()["new"] == {
            "digest": hashlib.sha256(b"half").hexdigest(),
            "ranker": None,
            "features": None,
        }
        model.unlink()
        assert reload()["new"] is None


def test_other_features_are_accepted_if_allowed(model: Path, serving_log: StringIO) -> None:
    watched = WatchedModel(model, allow_new_features=True)
    assert watched.reload().accepted
    linear_model(model, [*NAMES, "price"])
    assert watched.reload().features["added"] == ["price"]
    assert (watched.reloads, watched.refused) == (1, None)
    assert present(watched.model).names[-1] == "price"
    assert "the features changed: 5 instead of 4; added: 'price'" in serving_log.getvalue()


def test_watcher_loads_a_new_file_once(model: Path) -> None:
    watched = WatchedModel(model)
    assert watched.reload().accepted
    app = Serving(watched, poll=0.01)

    async def until(done) -> None:
        watching = asyncio.create_task(app.watch())
        for _ in range(1000):
            if done():
                break
            await asyncio.sleep(0.01)
        watching.cancel()

    first = watched.model
    os.utime(model, (1, 1))  # touched: looked at, and still the same
    asyncio.run(until(lambda: not watched.changed()))
    assert watched.model is first
    write_model(model, "stumps")
    asyncio.run(until(lambda: watched.model is not first))
    assert (watched.reloads, present(watched.model).model.ranker) == (1, "RankBoost")
    model.write_bytes(b"half")
    asyncio.run(until(lambda: watched.refused))
    assert (watched.refusals, present(watched.model).model.ranker) == (1, "RankBoost")


def test_metrics_are_parsed_by_prometheus(client) -> None:
    for _ in range(3):
        client.post("/rank", content=npy(X), headers=NPY)
    client.post("/rank", content=b"no", headers=NPY)
    client.get("/some/where/else")
    text = client.get("/metrics").text
    sample = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.match(line), line
    assert 'firstpage_requests_total{route="/rank",status="200"} 3' in text
    assert 'firstpage_requests_total{route="/rank",status="422"} 1' in text
    assert 'firstpage_requests_total{route="other",status="404"} 1' in text
    assert 'firstpage_request_seconds_count{route="/rank"} 4' in text
    assert 'firstpage_request_seconds_bucket{le="+Inf",route="/rank"} 4' in text
    assert f"firstpage_candidates_total {3 * len(X)}" in text
    assert "firstpage_requests_in_flight 1" in text
